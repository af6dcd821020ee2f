//===- MathExpansions.cpp - Math functions as arithmetic ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathExpansions.h"
#include "dialects/SDX/SoftmaxTerm.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;

Type MathLanes::withElement(Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

Value MathLanes::constant(double value) {
  return splat(type, b.getF32FloatAttr(value));
}

Value MathLanes::integer(int32_t value) {
  return splat(withElement(b.getI32Type()), b.getI32IntegerAttr(value));
}

Value MathLanes::splat(Type type, TypedAttr attr) {
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

Value MathLanes::fma(Value x, Value y, Value z) {
  return math::FmaOp::create(b, loc, x, y, z);
}

Value MathLanes::compare(arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, loc, predicate, x, y);
}

Value MathLanes::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value MathLanes::atMost(Value x, double most) {
  Value bound = constant(most);
  return select(compare(arith::CmpFPredicate::OGT, x, bound), bound, x);
}

Value MathLanes::atLeast(Value x, double least) {
  Value bound = constant(least);
  return select(compare(arith::CmpFPredicate::OLT, x, bound), bound, x);
}

Value MathLanes::polynomial(Value t, Value power, size_t count,
                            ArrayRef<double> coefficients) {
  assert(coefficients.size() % count == 0);
  Value sum;
  for (; !coefficients.empty(); coefficients = coefficients.drop_front(count)) {
    Value part = constant(coefficients.front());
    for (double c : coefficients.slice(1, count - 1))
      part = fma(part, t, constant(c));
    sum = sum ? fma(sum, power, part) : part;
  }
  return sum;
}

namespace {

/// 2^n times a number that is near one.
struct Scaled {
  Value number, exponent;
  /// Integers whose low nine bits are those of n.
  Value bits;
};

/// exp(sign * t) = 2^n * exp(r) with |r| <= ln(2)/2; the polynomial is that of
/// the Cephes library (expf.c), accurate to about one unit in the last place.
Scaled emitExp(MathLanes v, Value t, double sign) {
  OpBuilder &b = v.b;
  Location loc = v.loc;
  // Adding 1.5 * 2^23 rounds to an integer, which the low bits then hold.
  Value magic = v.constant(12582912.0);
  Value shifted = v.fma(t, v.constant(sign * 1.44269504088896341), magic);
  Value n = arith::SubFOp::create(b, loc, shifted, magic);
  Value from = sign > 0 ? t : arith::NegFOp::create(b, loc, t);
  Value r = v.fma(n, v.constant(-0.693359375), from);
  r = v.fma(n, v.constant(2.12194440e-4), r);
  Value square = arith::MulFOp::create(b, loc, r, r);
  Value p = v.polynomial(r, square, 2,
                         {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                          4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  p = v.fma(p, square, arith::AddFOp::create(b, loc, r, v.constant(1.0)));
  Type ints = v.withElement(b.getI32Type());
  return {p, n, arith::BitcastOp::create(b, loc, ints, shifted)};
}

/// 2^exponent for -127 <= exponent <= 128, whose bits these are; 0 and infinity
/// at the ends.
Value emitPower(MathLanes v, Value exponent) {
  OpBuilder &b = v.b;
  Value bits = arith::ShLIOp::create(b, v.loc, exponent, v.integer(23));
  bits = arith::AddIOp::create(b, v.loc, bits, v.integer(0x3f800000));
  return arith::BitcastOp::create(b, v.loc, v.type, bits);
}

/// From -104 on exp rounds to 0. Processors take a hundred cycles for that, and
/// for subnormal numbers: what is masked off is 0 without such a step, and a
/// term of a softmax where it would be subnormal. Where no instruction scales
/// by 2^n it is two factors, which overflow and underflow as the result does.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  ExpandExp(MLIRContext *context, MathScale scale)
      : OpRewritePattern(context, /*benefit=*/2), scale(std::move(scale)) {}
  const MathScale scale;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, type};
    const bool isTerm = sdx::isSoftmaxTerm(op);
    // Beyond, the result is infinity or 0. A NaN is on neither side and passes
    // through.
    Value x = op.getOperand();
    Value isKept = v.compare(arith::CmpFPredicate::UGE, x,
                             v.constant(isTerm ? -87.33654 : -104));
    Value t = isTerm ? x : v.atMost(x, 89.0);
    if (scale) {
      auto [p, n, bits] = emitExp(v, t, 1);
      if (Value scaled = scale(v, p, n, isKept)) {
        b.replaceOp(op, scaled);
        return success();
      }
    }
    auto [p, n, bits] = emitExp(v, v.select(isKept, t, v.constant(0)), 1);
    Value scaled;
    if (isTerm) {
      scaled = arith::MulFOp::create(b, loc, p, emitPower(v, bits));
    } else {
      Value whole = arith::SubIOp::create(b, loc, bits, v.integer(0x4b400000));
      Value half = arith::ShRSIOp::create(b, loc, whole, v.integer(1));
      p = arith::MulFOp::create(b, loc, p, emitPower(v, half));
      Value rest = arith::SubIOp::create(b, loc, whole, half);
      scaled = arith::MulFOp::create(b, loc, p, emitPower(v, rest));
    }
    b.replaceOp(op, v.select(isKept, scaled, v.constant(0)));
    return success();
  }
};

/// 1 / (1 + exp(-x)) and its products: one factor is enough, since exp(-x) may
/// be 0 where it is below 2^-126, and infinite where the result is.
void simplifySigmoid(arith::DivFOp op, const MathScale &scale) {
  Type type = op.getType();
  if (!getElementTypeOrSelf(type).isF32())
    return;
  auto one = [](Value value) {
    if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
      value = broadcast.getSource();
    return matchPattern(value, m_OneFloat());
  };
  auto sum = op.getRhs().getDefiningOp<arith::AddFOp>();
  if (!one(op.getLhs()) || !sum || !sum->hasOneUse())
    return;
  auto exp = (one(sum.getLhs()) ? sum.getRhs() : sum.getLhs())
                 .getDefiningOp<math::ExpOp>();
  if (!(one(sum.getLhs()) || one(sum.getRhs())) || !exp || !exp->hasOneUse())
    return;
  auto neg = exp.getOperand().getDefiningOp<arith::NegFOp>();
  if (!neg)
    return;
  OpBuilder b(exp);
  MathLanes v{b, op.getLoc(), type};
  Value x = v.atLeast(v.atMost(neg.getOperand(), 88.0), -89.0);
  auto [p, n, bits] = emitExp(v, x, -1);
  Value result = scale ? scale(v, p, n, /*isKept=*/Value()) : Value();
  if (!result)
    result = arith::MulFOp::create(b, v.loc, p, emitPower(v, bits));
  exp.getResult().replaceAllUsesWith(result);
  exp.erase();

  // What is multiplied by it, as in x * sigmoid(x), is divided instead.
  auto mul = op->hasOneUse() ? dyn_cast<arith::MulFOp>(*op->user_begin())
                             : arith::MulFOp();
  if (!mul || mul.getLhs() == mul.getRhs())
    return;
  b.setInsertionPoint(mul);
  Value other = mul.getLhs() == op ? mul.getRhs() : mul.getLhs();
  Value quotient = arith::DivFOp::create(b, mul.getLoc(), other, op.getRhs());
  mul.getResult().replaceAllUsesWith(quotient);
  mul.erase();
}

/// log(x) = e * ln(2) + log(m) with sqrt(1/2) <= m < sqrt(2); the polynomial is
/// that of the Cephes library (logf.c). Subnormal numbers are scaled up first.
struct ExpandLog : OpRewritePattern<math::LogOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::LogOp op,
                                PatternRewriter &b) const override {
    using arith::CmpFPredicate;
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, type};
    Type ints = v.withElement(b.getI32Type());
    Value x = op.getOperand();
    Value zero = v.constant(0.0), one = v.constant(1.0);
    Value infinity = v.constant(std::numeric_limits<float>::infinity());
    Value isSmall = v.compare(CmpFPredicate::OLT, x,
                              v.constant(std::numeric_limits<float>::min()));
    Value scaled = arith::MulFOp::create(b, loc, x, v.constant(0x1p23));
    Value bits =
        arith::BitcastOp::create(b, loc, ints, v.select(isSmall, scaled, x));
    Value bias = v.select(isSmall, v.integer(126 + 23), v.integer(126));
    Value exponent = arith::SubIOp::create(
        b, loc, arith::ShRUIOp::create(b, loc, bits, v.integer(23)), bias);
    Value e = arith::SIToFPOp::create(b, loc, type, exponent);
    // The mantissa as a number from 1/2 to 1.
    bits = arith::AndIOp::create(b, loc, bits, v.integer(0x007fffff));
    bits = arith::OrIOp::create(b, loc, bits, v.integer(0x3f000000));
    Value m = arith::BitcastOp::create(b, loc, type, bits);
    Value isLow =
        v.compare(CmpFPredicate::OLT, m, v.constant(0.707106781186547524));
    e = arith::SubFOp::create(b, loc, e, v.select(isLow, one, zero));
    m = arith::AddFOp::create(b, loc, arith::SubFOp::create(b, loc, m, one),
                              v.select(isLow, m, zero));
    Value square = arith::MulFOp::create(b, loc, m, m);
    Value cube = arith::MulFOp::create(b, loc, square, m);
    Value p =
        v.polynomial(m, cube, 3,
                     {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                      -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                      2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    p = arith::MulFOp::create(b, loc, p, cube);
    p = v.fma(e, v.constant(-2.12194440e-4), p);
    p = v.fma(square, v.constant(-0.5), p);
    Value result = arith::AddFOp::create(b, loc, m, p);
    result = v.fma(e, v.constant(0.693359375), result);
    // Zero of either sign, infinity, and what has no logarithm.
    result =
        v.select(v.compare(CmpFPredicate::OEQ, x, infinity), infinity, result);
    result =
        v.select(v.compare(CmpFPredicate::OEQ, x, zero),
                 v.constant(-std::numeric_limits<float>::infinity()), result);
    Value nan = v.constant(std::numeric_limits<float>::quiet_NaN());
    b.replaceOp(op,
                v.select(v.compare(CmpFPredicate::ULT, x, zero), nan, result));
    return success();
  }
};

/// erf(x) = x * p(x^2) up to 3.92, from where on it rounds to 1. With
/// t = 2 * x^2 / 3.92^2 - 1 as its variable, from -1 to 1, one polynomial
/// serves all of that range without cancellation. It is the best in the
/// relative error (2.5e-8), found by Lawson's weights on least squares; with
/// its own rounding at most 4 units in the last place (2.7e-7) with fused
/// multiply-adds, and 4.6 without. A factor that x has been multiplied by, as
/// Gelu does it, goes into the constants.
struct ExpandErf : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, type};
    auto [x, factor] = getScaled(op.getOperand());
    constexpr double kEnd = 3.92;
    const double end = kEnd / factor;
    Value square = arith::MulFOp::create(b, loc, x, x);
    Value t = v.atMost(
        v.fma(square, v.constant(2 / (end * end)), v.constant(-1.0)), 1.0);
    SmallVector<double> coefficients = {
        -8.4391603e-4, 2.0987538e-3, -1.3945802e-3, 1.9199878e-3,
        -7.66047e-3,   1.420993e-2,  -1.999507e-2,  2.969758e-2,
        -4.3436848e-2, 5.8395993e-2, -7.401982e-2,  9.0596974e-2,
        -1.0917923e-1, 1.3408455e-1, -1.8010862e-1, 3.6073682e-1};
    for (double &c : coefficients)
      c *= factor;
    Value t2 = arith::MulFOp::create(b, loc, t, t);
    Value t4 = arith::MulFOp::create(b, loc, t2, t2);
    Value product =
        arith::MulFOp::create(b, loc, x, v.polynomial(t, t4, 4, coefficients));
    b.replaceOp(op, v.atMost(v.atLeast(product, -1.0), 1.0));
    return success();
  }

private:
  /// `value` as the product of another one and a constant.
  static std::pair<Value, double> getScaled(Value value) {
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (!product)
      return {value, 1.0};
    Value right = product.getRhs();
    if (auto spread = right.getDefiningOp<vector::BroadcastOp>())
      right = spread.getSource();
    llvm::APFloat factor(1.0f);
    if (!matchPattern(right, m_ConstantFloat(&factor)))
      return {value, 1.0};
    double known = factor.convertToDouble();
    // Others would bring its end, or the square, out of a number's range.
    bool isUsual = std::abs(known) > 0x1p-10 && std::abs(known) < 0x1p10;
    return isUsual ? std::pair(product.getLhs(), known) : std::pair(value, 1.0);
  }
};

/// Where a function of `type` is computed by lanes of f32.
bool isOfF32(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// pi / 2 and pi, and what rounding takes from them.
constexpr double kHalfPi = 1.57079637, kHalfPiRest = -4.37113883e-8;
constexpr double kPi = 3.14159274, kPiRest = -8.74227766e-8;

/// atan(x) = t + t^3 * p(t^2) up to 1, and pi / 2 less that of 1 / x beyond.
/// The polynomial is the best in the relative error (2.6e-9); with rounding at
/// most 2 units in the last place.
struct ExpandAtan : OpRewritePattern<math::AtanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AtanOp op,
                                PatternRewriter &b) const override {
    if (!isOfF32(op))
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, op.getType()};
    Value x = op.getOperand(), size = math::AbsFOp::create(b, loc, x);
    Value one = v.constant(1);
    Value isLarge = v.compare(arith::CmpFPredicate::OGT, size, one);
    Value t = arith::DivFOp::create(b, loc, v.select(isLarge, one, size),
                                    v.select(isLarge, size, one));
    Value square = arith::MulFOp::create(b, loc, t, t);
    Value cube = arith::MulFOp::create(
        b, loc, arith::MulFOp::create(b, loc, square, square), square);
    Value p =
        v.polynomial(square, cube, 3,
                     {-1.7936222721e-3, 1.0914608836e-2, -3.1177850440e-2,
                      5.7957600802e-2, -8.4034509957e-2, 1.0952185839e-1,
                      -1.4264242351e-1, 1.9998548925e-1, -3.3333298564e-1});
    Value angle = v.fma(arith::MulFOp::create(b, loc, t, square), p, t);
    Value rest = arith::SubFOp::create(b, loc, angle, v.constant(kHalfPiRest));
    Value large = arith::SubFOp::create(b, loc, v.constant(kHalfPi), rest);
    b.replaceOpWithNewOp<math::CopySignOp>(op, v.select(isLarge, large, angle),
                                           x);
    return success();
  }
};

/// Of |x|, asin up to 1/2 as s + s^3 * p(s^2) with s = |x|, and beyond that
/// half of acos, with s = sqrt((1 - |x|) / 2). The polynomial is the best in
/// the relative error (5e-9).
struct HalfAngle {
  Value isLarge, angle;

  HalfAngle(MathLanes v, Value x) {
    OpBuilder &b = v.b;
    Location loc = v.loc;
    Value size = math::AbsFOp::create(b, loc, x);
    isLarge = v.compare(arith::CmpFPredicate::OGT, size, v.constant(0.5));
    Value square =
        v.select(isLarge, v.fma(size, v.constant(-0.5), v.constant(0.5)),
                 arith::MulFOp::create(b, loc, size, size));
    Value s = v.select(isLarge, math::SqrtOp::create(b, loc, square), size);
    Value p = v.constant(4.2225960642e-2);
    for (double c :
         {2.4146648124e-2, 4.5476548374e-2, 7.4952527881e-2, 1.6666753590e-1})
      p = v.fma(p, square, v.constant(c));
    angle = v.fma(arith::MulFOp::create(b, loc, s, square), p, s);
  }
};

/// At most 3 units in the last place from the exact number.
struct ExpandAsin : OpRewritePattern<math::AsinOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AsinOp op,
                                PatternRewriter &b) const override {
    if (!isOfF32(op))
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, op.getType()};
    HalfAngle half(v, op.getOperand());
    Value rest = v.fma(half.angle, v.constant(2), v.constant(-kHalfPiRest));
    Value large = arith::SubFOp::create(b, loc, v.constant(kHalfPi), rest);
    b.replaceOpWithNewOp<math::CopySignOp>(
        op, v.select(half.isLarge, large, half.angle), op.getOperand());
    return success();
  }
};

/// At most 3 units in the last place from the exact number.
struct ExpandAcos : OpRewritePattern<math::AcosOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::AcosOp op,
                                PatternRewriter &b) const override {
    if (!isOfF32(op))
      return b.notifyMatchFailure(op, "not of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, op.getType()};
    Value x = op.getOperand(), zero = v.constant(0);
    HalfAngle half(v, x);
    // From pi / 2 on, or from 0 or pi with twice the half of the angle.
    Value isLow = v.compare(arith::CmpFPredicate::OLT, x, zero);
    auto choose = [&](double middle, double low) {
      return v.select(half.isLarge, v.select(isLow, v.constant(low), zero),
                      v.constant(middle));
    };
    Value factor = v.select(half.isLarge, v.constant(2), v.constant(-1));
    Value angle = math::CopySignOp::create(b, loc, half.angle, x);
    Value sum = v.fma(angle, factor, choose(kHalfPiRest, kPiRest));
    b.replaceOpWithNewOp<arith::AddFOp>(op, choose(kHalfPi, kPi), sum);
    return success();
  }
};

/// 1 / sqrt(x): the processors' estimates are not accurate enough.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &b) const override {
    TypedAttr one = b.getFloatAttr(getElementTypeOrSelf(op.getType()), 1.0);
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      one = DenseElementsAttr::get(vector, Attribute(one));
    Value root = math::SqrtOp::create(b, op.getLoc(), op.getOperand());
    b.replaceOpWithNewOp<arith::DivFOp>(
        op, arith::ConstantOp::create(b, op.getLoc(), one), root);
    return success();
  }
};

/// Upstream's tanh stops at its value for 8 or so, which rounding leaves below
/// one or not: here it is one where tanh rounds to it.
void saturateTanh(math::TanhOp op) {
  Type type = op.getType();
  if (!getElementTypeOrSelf(type).isF32())
    return;
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  MathLanes v{b, op.getLoc(), type};
  Value x = op.getOperand();
  Value size = math::AbsFOp::create(b, op.getLoc(), x);
  Value isLarge =
      v.compare(arith::CmpFPredicate::OGE, size, v.constant(9.0109));
  Value one = math::CopySignOp::create(b, op.getLoc(), v.constant(1.0), x);
  Value result = v.select(isLarge, one, op.getResult());
  op.getResult().replaceAllUsesExcept(result, result.getDefiningOp());
}

} // namespace

void sardonyx::prepareMath(Operation *op, const MathScale &scale) {
  op->walk(saturateTanh);
  // It erases what comes later.
  SmallVector<arith::DivFOp> quotients;
  op->walk([&](arith::DivFOp quotient) { quotients.push_back(quotient); });
  for (arith::DivFOp quotient : quotients)
    simplifySigmoid(quotient, scale);
}

void sardonyx::populateMathExpansions(RewritePatternSet &patterns,
                                      const MathScale &scale) {
  MLIRContext *context = patterns.getContext();
  static constexpr StringLiteral kNames[] = {"math.expm1", "math.log1p",
                                             "math.tanh"};
  populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained(kNames, name);
  });
  patterns.add<ExpandAcos, ExpandAsin, ExpandAtan, ExpandErf, ExpandLog,
               ExpandRsqrt>(context, /*benefit=*/2);
  patterns.add<ExpandExp>(context, scale);
}
