//===- LinearizeQuantizedSums.cpp - Sums of bytes by multiply-adds --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of two quantised numbers, quantised, is a function of two whole numbers
// of 8 bits: of 65,536 pairs. Two multiply-adds take the place of what the
// model says, three products, a sum and a division, if they give the same
// integer for each pair, whether or not products are rounded before they are
// added.
//
//===----------------------------------------------------------------------===//

#include "Rounding.h"
#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

namespace sardonyx {
#define GEN_PASS_DEF_SDXLINEARIZEQUANTIZEDSUMS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// What there are at most of whole numbers that an operand can be.
static constexpr int64_t kMostValues = 256;

namespace {

/// An f32 that is a whole number from `lowest` to `highest`.
struct Leaf {
  Value value;
  int64_t lowest, highest;

  int64_t count() const { return highest - lowest + 1; }

  static std::optional<Leaf> get(Value value);
};

/// An expression of two leaves, x and y, as x * a + y * b + c.
struct Linear {
  double a, b, c;
};

/// What computes a value from two leaves, an operation after the other.
class Expression {
public:
  /// Null if `value` is no sum of multiples of two leaves.
  static std::optional<Expression> get(Value value);

  const Leaf &left() const { return leaves[0]; }
  const Leaf &right() const { return leaves[1]; }
  const Linear &linear() const { return steps.back().linear; }
  /// How many operations on floats there are.
  size_t countOperations() const { return steps.size() - leaves.size(); }

  /// The results, as f32 round them, for one x and every y.
  void evaluate(float x, MutableArrayRef<float> results) const;

private:
  enum class Kind { Leaf, Constant, Add, Sub, Mul, Div };
  struct Step {
    Kind kind;
    /// Operands among the steps before; of a leaf its number.
    size_t lhs = 0, rhs = 0;
    float constant = 0;
    Linear linear{0, 0, 0};
  };

  std::optional<size_t> append(Value value);
  std::optional<size_t> append(Kind kind, Operation *op);

  SmallVector<Leaf, 2> leaves;
  SmallVector<Step> steps;
};

} // namespace

std::optional<Leaf> Leaf::get(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.getType().isF32())
    return std::nullopt;
  if (isa<arith::UIToFPOp, arith::SIToFPOp>(op) &&
      op->getOperand(0).getType().isInteger(8))
    return isa<arith::UIToFPOp>(op) ? Leaf{value, 0, 255}
                                    : Leaf{value, -128, 127};
  // What sdx-fold-requantization makes of a byte.
  auto sub = dyn_cast<arith::SubFOp>(op);
  auto add = sub ? sub.getLhs().getDefiningOp<arith::AddFOp>() : nullptr;
  if (!add || getNumber(add.getRhs()) != kNoFraction)
    return std::nullopt;
  std::optional<double> less = getNumber(sub.getRhs());
  std::optional<Bounded> bounded = Bounded::get(add.getLhs());
  if (!less || !bounded || bounded->lowest != std::round(bounded->lowest) ||
      bounded->highest != std::round(bounded->highest) ||
      bounded->highest - bounded->lowest >= kMostValues)
    return std::nullopt;
  const auto moved = static_cast<int64_t>(kNoFraction - *less);
  return Leaf{value, static_cast<int64_t>(bounded->lowest) + moved,
              static_cast<int64_t>(bounded->highest) + moved};
}

std::optional<Expression> Expression::get(Value value) {
  Expression expression;
  if (!expression.append(value) || expression.leaves.size() != 2)
    return std::nullopt;
  return expression;
}

std::optional<size_t> Expression::append(Value value) {
  Step step;
  if (std::optional<double> number = getNumber(value)) {
    step = {Kind::Constant, 0, 0, static_cast<float>(*number), {0, 0, *number}};
  } else if (std::optional<Leaf> leaf = Leaf::get(value)) {
    auto *known = llvm::find_if(
        leaves, [&](const Leaf &other) { return other.value == value; });
    step = {Kind::Leaf, static_cast<size_t>(known - leaves.begin())};
    if (known == leaves.end())
      leaves.push_back(*leaf);
    if (leaves.size() > 2)
      return std::nullopt;
    (step.lhs == 0 ? step.linear.a : step.linear.b) = 1;
  } else if (Operation *op = value.getDefiningOp()) {
    if (isa<arith::AddFOp>(op))
      return append(Kind::Add, op);
    if (isa<arith::SubFOp>(op))
      return append(Kind::Sub, op);
    if (isa<arith::MulFOp>(op))
      return append(Kind::Mul, op);
    if (isa<arith::DivFOp>(op))
      return append(Kind::Div, op);
    return std::nullopt;
  } else {
    return std::nullopt;
  }
  steps.push_back(step);
  return steps.size() - 1;
}

std::optional<size_t> Expression::append(Kind kind, Operation *op) {
  constexpr size_t kMostSteps = 24;
  if (steps.size() > kMostSteps)
    return std::nullopt;
  std::optional<size_t> lhs = append(op->getOperand(0));
  std::optional<size_t> rhs = lhs ? append(op->getOperand(1)) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  Linear l = steps[*lhs].linear, r = steps[*rhs].linear;
  auto isConstant = [](const Linear &x) { return x.a == 0 && x.b == 0; };
  auto times = [](const Linear &x, double factor) {
    return Linear{x.a * factor, x.b * factor, x.c * factor};
  };
  Linear linear;
  switch (kind) {
  case Kind::Add:
    linear = {l.a + r.a, l.b + r.b, l.c + r.c};
    break;
  case Kind::Sub:
    linear = {l.a - r.a, l.b - r.b, l.c - r.c};
    break;
  case Kind::Mul:
    if (!isConstant(l) && !isConstant(r))
      return std::nullopt;
    linear = isConstant(r) ? times(l, r.c) : times(r, l.c);
    break;
  default:
    if (!isConstant(r) || r.c == 0)
      return std::nullopt;
    linear = times(l, 1 / r.c);
    break;
  }
  steps.push_back({kind, *lhs, *rhs, 0, linear});
  return steps.size() - 1;
}

void Expression::evaluate(float x, MutableArrayRef<float> results) const {
  SmallVector<SmallVector<float, 0>> values;
  for (const Step &step : steps) {
    auto &value = values.emplace_back(results.size(), step.constant);
    for (size_t i = 0; i < results.size(); ++i) {
      const float l = step.kind > Kind::Constant ? values[step.lhs][i] : 0;
      const float r = step.kind > Kind::Constant ? values[step.rhs][i] : 0;
      if (step.kind == Kind::Leaf)
        value[i] = step.lhs == 0 ? x : static_cast<float>(right().lowest + i);
      else if (step.kind == Kind::Add)
        value[i] = l + r;
      else if (step.kind == Kind::Sub)
        value[i] = l - r;
      else if (step.kind == Kind::Mul)
        value[i] = l * r;
      else if (step.kind == Kind::Div)
        value[i] = l / r;
    }
  }
  llvm::copy(values.back(), results.begin());
}

namespace {

/// x * a + (y * b + c) in f32.
struct TwoMultiplyAdds {
  float a, b, c;
};

/// Finds multiply-adds that give the integers of an expression.
class Search {
public:
  Search(const Expression &expression, const Bounded &bounds)
      : expression(expression), bounds(bounds) {
    SmallVector<float> row(expression.right().count());
    for (int64_t x = 0; x < expression.left().count(); ++x) {
      expression.evaluate(static_cast<float>(expression.left().lowest + x),
                          row);
      for (float value : row)
        wanted.push_back(round(value));
    }
  }

  std::optional<TwoMultiplyAdds> run() const {
    // Neighbours round other pairs in another way: nearest ones first.
    constexpr int kFarthest = 3;
    const Linear &linear = expression.linear();
    // No neighbours of zero: subnormal numbers are slow.
    const Leaf &right = expression.right();
    const double step = std::ldexp(
        std::max({std::abs(linear.c), std::abs(linear.b * double(right.lowest)),
                  std::abs(linear.b * double(right.highest))}),
        -std::numeric_limits<float>::digits);
    for (int far = 0; far <= kFarthest; ++far)
      for (int i = -far; i <= far; ++i)
        for (int j = -far; j <= far; ++j)
          for (int k = -far; k <= far; ++k) {
            if (std::max({std::abs(i), std::abs(j), std::abs(k)}) != far)
              continue;
            TwoMultiplyAdds form{neighbour(linear.a, i), neighbour(linear.b, j),
                                 static_cast<float>(linear.c + k * step)};
            if (isRight(form))
              return form;
          }
    return std::nullopt;
  }

private:
  static float neighbour(double number, int steps) {
    float value = static_cast<float>(number);
    const float towards = steps > 0 ? INFINITY : -INFINITY;
    for (int i = 0; i < std::abs(steps); ++i)
      value = std::nextafter(value, towards);
    return value;
  }

  float round(float value) const {
    value = bounds.lowest < value ? value : static_cast<float>(bounds.lowest);
    value = value < bounds.highest ? value : static_cast<float>(bounds.highest);
    return std::nearbyint(value);
  }

  bool isRight(const TwoMultiplyAdds &form) const {
    const Leaf &left = expression.left(), &right = expression.right();
    for (int64_t j = 0; j < right.count(); ++j) {
      const float y = static_cast<float>(right.lowest + j);
      const float rounded = y * form.b;
      const float fused = std::fma(y, form.b, form.c);
      const float apart = rounded + form.c;
      for (int64_t i = 0; i < left.count(); ++i) {
        const float x = static_cast<float>(left.lowest + i);
        const float product = x * form.a;
        const float sum = product + apart;
        const float want = wanted[i * right.count() + j];
        if (round(std::fma(x, form.a, fused)) != want || round(sum) != want)
          return false;
      }
    }
    return true;
  }

  const Expression &expression;
  const Bounded &bounds;
  SmallVector<float, 0> wanted;
};

struct LinearizeQuantizedSumsPass
    : sardonyx::impl::SDXLinearizeQuantizedSumsBase<
          LinearizeQuantizedSumsPass> {
  void runOnOperation() override {
    SmallVector<math::RoundEvenOp> roundings;
    getOperation().walk([&](math::RoundEvenOp op) { roundings.push_back(op); });
    for (math::RoundEvenOp op : roundings)
      linearize(op);
    eraseDeadInBodies(getOperation());
  }

private:
  static void linearize(math::RoundEvenOp op) {
    std::optional<Bounded> bounded = Bounded::get(op.getOperand());
    if (!bounded || !op.getType().isF32())
      return;
    std::optional<Expression> expression = Expression::get(bounded->value);
    // Two multiply-adds are no better than two operations.
    if (!expression || expression->countOperations() <= 2)
      return;
    std::optional<TwoMultiplyAdds> form = Search(*expression, *bounded).run();
    if (!form)
      return;
    ImplicitLocOpBuilder b(op.getLoc(), bounded->value.getDefiningOp());
    auto constant = [&](float value) -> Value {
      return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
    };
    Value inner = math::FmaOp::create(b, expression->right().value,
                                      constant(form->b), constant(form->c));
    Value sum = math::FmaOp::create(b, expression->left().value,
                                    constant(form->a), inner);
    bounded->replaceValue(sum);
  }
};

} // namespace
