//===- Arithmetic.cpp - Arithmetic, logic and comparison ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops without attributes that matter are rows of tables: a name and a function
// that writes the scalar body.
//
//===----------------------------------------------------------------------===//

#include "Elementwise/Arithmetic.h"
#include "Support/Checks.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/ShapeArithmetic.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// The pattern behind the tables
//===----------------------------------------------------------------------===//

namespace {

class TablePattern : public ConversionPattern {
public:
  TablePattern(const TypeConverter &converter, MLIRContext *context,
               const ElementwiseRow &row)
      : ConversionPattern(converter, row.name, /*benefit=*/1, context),
        body(row.body) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    return lowerElementwise(rewriter, *getTypeConverter(), op, operands, body);
  }

private:
  ElementwiseBody body;
};

} // namespace

/// Whether the host program can compute the op on scalars: everything on
/// integers, of the floats' functions those that call no library.
static bool mayScalarise(Operation *op) {
  bool anyFloat = llvm::any_of(op->getOperands(), [](Value operand) {
    return isa<FloatType>(getOnnxElementType(operand));
  });
  return !anyFloat || op->hasTrait<onnx::Arithmetic>();
}

using Args = ValueRange;

/// Binary methods of ScalarBuilder, folded over all operands from the left.
template <Value (ScalarBuilder::*method)(Value, Value)>
static Value fold(ScalarBuilder &s, Operation *, Args args) {
  Value result = args.front();
  for (Value arg : args.drop_front())
    result = (s.*method)(result, arg);
  return result;
}

/// Leaves at most 16 inputs of a variadic op, by combining the first of them
/// in loops of their own: what the code generator does with the addresses of a
/// kernel's tensors takes time that grows with the square of their number.
static LogicalResult combineFirst(OpBuilder &b, Operation *op,
                                  SmallVectorImpl<TypedTensor> &inputs) {
  constexpr size_t limit = 16;
  Value (*combine)(ScalarBuilder &, Operation *, Args) = nullptr;
  if (isa<onnx::SumOp, onnx::MeanOp>(op))
    combine = fold<&ScalarBuilder::add>;
  else if (isa<onnx::MinOp>(op))
    combine = fold<&ScalarBuilder::min>;
  else if (isa<onnx::MaxOp>(op))
    combine = fold<&ScalarBuilder::max>;
  if (!combine)
    return success();
  Type element = inputs.front().onnxElementType;
  ArrayRef<TypedTensor> rest = inputs;
  SmallVector<TypedTensor> next;
  while (next.size() + rest.size() > limit) {
    size_t count = limit - next.size();
    llvm::append_range(next, rest.take_front(count));
    rest = rest.drop_front(count);
    FailureOr<Value> combined = createElementwise(
        b, op->getLoc(), next, element, /*declared=*/nullptr,
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          ScalarBuilder s(builder, loc, element);
          return combine(s, op, args);
        });
    if (failed(combined))
      return failure();
    next = {{*combined, element}};
  }
  llvm::append_range(next, rest);
  inputs = std::move(next);
  return success();
}

LogicalResult lowerElementwise(ConversionPatternRewriter &rewriter,
                               const TypeConverter &converter, Operation *op,
                               ValueRange operands, ElementwiseBody body) {
  Value result = op->getResult(0);
  RankedTensorType declared = getConvertedType(result);
  if (!declared)
    return refuse(op, "its result's type has no lowering");
  SmallVector<TypedTensor> inputs;
  for (auto [original, converted] : llvm::zip(op->getOperands(), operands)) {
    Type element = getOnnxElementType(original);
    if (!element || !convertElementType(element))
      return refuse(op, "an operand's type has no lowering");
    inputs.push_back({converted, element});
  }
  auto scalarBody = [&](OpBuilder &b, Location loc, ValueRange args) {
    ScalarBuilder s(b, loc, inputs.front().onnxElementType);
    return body(s, op, args);
  };
  if (mayScalarise(op))
    if (Value small =
            scalariseElementwise(rewriter, op->getLoc(), inputs,
                                 getOnnxElementType(result), scalarBody))
      return replaceOp(rewriter, converter, op, small);
  // Unlike everything else, a slope may not make the result larger.
  if (isa<onnx::PReluOp>(op) &&
      failed(
          checkBroadcastsTo(rewriter, op->getLoc(), operands[1],
                            getSizes(rewriter, op->getLoc(), operands[0])))) {
    noteContradiction(op, "the slope does not fit X");
    return failure();
  }
  if (failed(combineFirst(rewriter, op, inputs)))
    return refuse(op, "the shapes can't be broadcast");
  auto same = op->getAttrOfType<DenseI64ArrayAttr>("onnx.same_dims");
  FailureOr<Value> lowered = createElementwise(
      rewriter, op->getLoc(), inputs, getOnnxElementType(result), declared,
      scalarBody, same ? same.asArrayRef() : ArrayRef<int64_t>());
  if (failed(lowered))
    return refuse(op, "the shapes can't be broadcast");
  return replaceOp(rewriter, converter, op, *lowered);
}

void addElementwiseRows(const TypeConverter &converter,
                        RewritePatternSet &patterns,
                        ArrayRef<ElementwiseRow> rows) {
  for (const ElementwiseRow &row : rows)
    patterns.add(
        std::make_unique<TablePattern>(converter, patterns.getContext(), row));
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

template <typename IntOp>
static Value integerOp(ScalarBuilder &s, Operation *, Args args) {
  return s.createOrFold<IntOp>(args[0], args[1]);
}

static Value mean(ScalarBuilder &s, Operation *op, Args args) {
  Value sum = fold<&ScalarBuilder::add>(s, op, args);
  return s.div(sum, s.constant(op->getNumOperands()));
}

static Value logicalNot(ScalarBuilder &s, Operation *, Args args) {
  return s.logicalNot(args[0]);
}

static Value bitwiseNot(ScalarBuilder &s, Operation *, Args args) {
  return s.createOrFold<arith::XOrIOp>(args[0], s.integer(-1));
}

static Value where(ScalarBuilder &s, Operation *, Args args) {
  return s.select(args[0], args[1], args[2]);
}

static Value mod(ScalarBuilder &s, Operation *op, Args args) {
  return cast<onnx::ModOp>(op).getFmod() ? s.rem(args[0], args[1])
                                         : s.mod(args[0], args[1]);
}

/// Shift amounts outside of [0, width) leave only the fill.
static Value bitShift(ScalarBuilder &s, Operation *op, Args args) {
  Value x = args[0], amount = args[1];
  int64_t width = x.getType().getIntOrFloatBitWidth();
  bool right = cast<onnx::BitShiftOp>(op).getDirection() == "RIGHT";
  // Compared as unsigned, a negative amount is too large as well.
  Value inside = s.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult,
                                               amount, s.integer(width));
  Value zero = s.integer(0);
  if (right && !s.isUnsigned()) {
    Value clamped = s.select(inside, amount, s.integer(width - 1));
    return s.createOrFold<arith::ShRSIOp>(x, clamped);
  }
  Value safe = s.select(inside, amount, zero);
  Value shifted = right ? s.createOrFold<arith::ShRUIOp>(x, safe)
                        : s.createOrFold<arith::ShLIOp>(x, safe);
  return s.select(inside, shifted, zero);
}

/// x ^ y on integers by squaring; wraps around, negative exponents truncate.
static Value integerPow(ScalarBuilder &s, Value x, Value y, Type exponentOnnx) {
  Value zero = s.integer(0), one = s.integer(1);
  Type exponentType = y.getType();
  auto exponent = [&](int64_t value) {
    return createIntConstant(s, s.getLoc(), exponentType, value);
  };
  unsigned width = exponentType.getIntOrFloatBitWidth();
  unsigned steps = width;
  std::optional<double> known = getConstantScalar(y);
  if (known && *known >= 0)
    for (steps = 0; steps < 64 && *known >= std::ldexp(1.0, steps);)
      ++steps;
  Value result = one, power = x;
  for (unsigned i = 0; i < steps; ++i) {
    Value bit = s.createOrFold<arith::AndIOp>(
        s.createOrFold<arith::ShRUIOp>(y, exponent(i)), exponent(1));
    Value isSet = s.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, bit,
                                                exponent(0));
    result = s.select(isSet, s.mul(result, power), result);
    if (i + 1 < steps)
      power = s.mul(power, power);
  }
  if (isUnsignedType(exponentOnnx) || (known && *known >= 0))
    return result;
  // 1 / x^n: 1 for 1, the sign for -1, else 0.
  Value negative =
      s.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, y, exponent(0));
  Value odd = s.createOrFold<arith::CmpIOp>(
      arith::CmpIPredicate::ne, s.createOrFold<arith::AndIOp>(y, exponent(1)),
      exponent(0));
  Value inverse = s.select(s.eq(x, one), one, zero);
  if (!s.isUnsigned()) {
    Value sign = s.select(odd, s.integer(-1), one);
    inverse = s.select(s.eq(x, s.integer(-1)), sign, inverse);
  }
  return s.select(negative, inverse, result);
}

static Value power(ScalarBuilder &s, Operation *op, Args args) {
  Value x = args[0], y = args[1];
  Type base = getOnnxElementType(op->getOperand(0));
  Type exponent = getOnnxElementType(op->getOperand(1));
  bool floatBase = isa<FloatType>(base),
       floatExponent = isa<FloatType>(exponent);
  if (!floatBase && !floatExponent)
    return integerPow(s, x, y, exponent);
  // Integers to a fractional power go through f64, like numpy.
  Type common = floatBase ? base : Type(s.getF64Type());
  x = castScalar(s, s.getLoc(), x, base, common);
  y = castScalar(s, s.getLoc(), y, exponent, common);
  return castScalar(s, s.getLoc(), s.pow(x, y), common, base);
}

static Value prelu(ScalarBuilder &s, Operation *, Args args) {
  return s.select(s.lt(args[0], s.constant(0)), s.mul(args[0], args[1]),
                  args[0]);
}

//===----------------------------------------------------------------------===//
// Ops with optional operands
//===----------------------------------------------------------------------===//

namespace {

LogicalResult lowerClip(Lowering<onnx::ClipOp> &b) {
  bool hasMin = bool(b.op.getMin()), hasMax = bool(b.op.getMax());
  return lowerElementwise(b.rewriter, b.converter, b.op, b.in.getOperands(),
                          [=](ScalarBuilder &s, Operation *, Args args) {
                            Value x = args[0];
                            if (hasMin)
                              x = s.atLeast(x, args[1]);
                            if (hasMax)
                              x = s.atMost(x, args[hasMin ? 2 : 1]);
                            return x;
                          });
}

} // namespace

void populateElementwisePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  static const ElementwiseRow rows[] = {
      {"onnx.Add", fold<&ScalarBuilder::add>},
      {"onnx.Sub", fold<&ScalarBuilder::sub>},
      {"onnx.Mul", fold<&ScalarBuilder::mul>},
      {"onnx.Div", fold<&ScalarBuilder::div>},
      {"onnx.Sum", fold<&ScalarBuilder::add>},
      {"onnx.Min", fold<&ScalarBuilder::min>},
      {"onnx.Max", fold<&ScalarBuilder::max>},
      {"onnx.Mean", mean},
      {"onnx.Mod", mod},
      {"onnx.Pow", power},
      {"onnx.PRelu", prelu},
      {"onnx.Where", where},
      {"onnx.Equal", fold<&ScalarBuilder::eq>},
      {"onnx.Less", fold<&ScalarBuilder::lt>},
      {"onnx.LessOrEqual", fold<&ScalarBuilder::le>},
      {"onnx.Greater", fold<&ScalarBuilder::gt>},
      {"onnx.GreaterOrEqual", fold<&ScalarBuilder::ge>},
      {"onnx.Not", logicalNot},
      {"onnx.And", integerOp<arith::AndIOp>},
      {"onnx.Or", integerOp<arith::OrIOp>},
      {"onnx.Xor", integerOp<arith::XOrIOp>},
      {"onnx.BitwiseAnd", integerOp<arith::AndIOp>},
      {"onnx.BitwiseOr", integerOp<arith::OrIOp>},
      {"onnx.BitwiseXor", integerOp<arith::XOrIOp>},
      {"onnx.BitwiseNot", bitwiseNot},
      {"onnx.BitShift", bitShift},
  };
  addElementwiseRows(converter, patterns, rows);
  addLowering<onnx::ClipOp, lowerClip>(patterns, converter);
}

} // namespace sardonyx
