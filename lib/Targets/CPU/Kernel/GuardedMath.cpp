//===- GuardedMath.cpp - Functions of usual operands on vectors -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/GuardedMath.h"
#include "Common/Doubles.h"
#include "Common/MathExpansions.h"
#include "dialects/SDX/RareElse.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using doubles::Double;

/// On an operation that is left to the library.
static constexpr StringLiteral kCalledAttr = "cpu.called";

/// Whether `op` is on a vector of floats of so many bits that may be expanded.
static bool isExpanded(Operation *op, unsigned bits = 32) {
  auto type = dyn_cast<VectorType>(op->getResult(0).getType());
  return type && type.getRank() == 1 &&
         isa<Float32Type, Float64Type>(type.getElementType()) &&
         type.getElementTypeBitWidth() == bits && !op->hasAttr(kCalledAttr);
}

/// Puts `result` in the place of `op` where all lanes of `isUsual` are set, and
/// calls of the library elsewhere.
static void replaceWhereUsual(PatternRewriter &b, Operation *op, Value isUsual,
                              Value result) {
  Location loc = op->getLoc();
  Value all =
      vector::ReductionOp::create(b, loc, vector::CombiningKind::AND, isUsual);
  auto branch = scf::IfOp::create(
      b, loc, all,
      [&](OpBuilder &then, Location at) {
        scf::YieldOp::create(then, at, result);
      },
      [&](OpBuilder &otherwise, Location at) {
        Operation *called = otherwise.clone(*op);
        called->setAttr(kCalledAttr, otherwise.getUnitAttr());
        scf::YieldOp::create(otherwise, at, called->getResults());
      });
  branch->setAttr(sdx::kRareElseAttr, b.getUnitAttr());
  b.replaceOp(op, branch);
}

namespace {

/// x = k * pi / 2 + r with |r| <= pi / 4, but for the rounding of k.
struct Quadrant {
  /// An integer whose low bits are those of k.
  Value bits;
  Value sin, cos; // of r

  /// pi / 2 is the sum of five numbers. The first three have so few bits that
  /// their products by k are exact up to 2^13, and so are the differences where
  /// they cancel; a multiply-add leaves nothing of longer products out. The
  /// polynomials are the best in the relative error (4e-9, and 2e-10 for the
  /// cosine).
  Quadrant(MathLanes v, Value x) {
    OpBuilder &b = v.b;
    Location loc = v.loc;
    Value magic = v.constant(12582912.0);
    Value shifted = v.fma(x, v.constant(0.636619772367581343), magic);
    Value k = arith::SubFOp::create(b, loc, shifted, magic);
    bits = arith::BitcastOp::create(b, loc, v.withElement(b.getI32Type()),
                                    shifted);
    Value r = x;
    for (double part : {0x1.92p+0, 0x1.fb8p-12, -0x1.5dcp-23, -0x1.e973dcp-35,
                        -1.2177051777973966e-18})
      r = v.fma(k, v.constant(-part), r);
    Value square = arith::MulFOp::create(b, loc, r, r);
    Value p =
        v.polynomial(square, square, 1,
                     {-1.9506942772e-4, 8.3320997655e-3, -1.6666653752e-1});
    sin = v.fma(arith::MulFOp::create(b, loc, r, square), p, r);
    sin = math::CopySignOp::create(b, loc, sin, r); // of zero
    p = v.polynomial(square, square, 1,
                     {2.4423625291e-5, -1.3887233799e-3, 4.1666645557e-2});
    cos = v.fma(square, v.constant(-0.5), v.constant(1));
    cos = v.fma(arith::MulFOp::create(b, loc, square, square), p, cos);
  }

  /// `value`, negated where `bit` of `number` is set.
  static Value negate(MathLanes v, Value value, Value number, int bit) {
    Value sign = arith::AndIOp::create(v.b, v.loc, number, v.integer(bit));
    sign = arith::ShLIOp::create(
        v.b, v.loc, sign, v.integer(31 - llvm::countr_zero<unsigned>(bit)));
    Value from = arith::BitcastOp::create(v.b, v.loc, number.getType(), value);
    return arith::BitcastOp::create(
        v.b, v.loc, v.type, arith::XOrIOp::create(v.b, v.loc, from, sign));
  }

  static Value isOdd(MathLanes v, Value number) {
    Value low = arith::AndIOp::create(v.b, v.loc, number, v.integer(1));
    return arith::CmpIOp::create(v.b, v.loc, arith::CmpIPredicate::ne, low,
                                 v.integer(0));
  }
};

/// Angles of at most `limit`; larger ones, infinity and NaN are the library's.
/// The results are at most 2.5 units in the last place from the exact numbers,
/// those of tan 5.
template <typename OpTy> struct ExpandAngle : OpRewritePattern<OpTy> {
  ExpandAngle(MLIRContext *context, double limit)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), limit(limit) {}
  const double limit;

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    if (!isExpanded(op))
      return b.notifyMatchFailure(op, "no vector of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, op.getType()};
    Value x = op.getOperand();
    Value isUsual =
        v.compare(arith::CmpFPredicate::OLE, math::AbsFOp::create(b, loc, x),
                  v.constant(limit));
    replaceWhereUsual(b, op, isUsual, emit(v, Quadrant(v, x)));
    return success();
  }

private:
  static Value emit(MathLanes v, Quadrant at) {
    Value number = at.bits;
    if constexpr (std::is_same_v<OpTy, math::TanOp>) {
      Value isOdd = Quadrant::isOdd(v, number);
      Value quotient =
          arith::DivFOp::create(v.b, v.loc, v.select(isOdd, at.cos, at.sin),
                                v.select(isOdd, at.sin, at.cos));
      return Quadrant::negate(v, quotient, number, 1);
    }
    if constexpr (std::is_same_v<OpTy, math::CosOp>)
      number = arith::AddIOp::create(v.b, v.loc, number, v.integer(1));
    Value isOdd = Quadrant::isOdd(v, number);
    return Quadrant::negate(v, v.select(isOdd, at.cos, at.sin), number, 2);
  }
};

/// The remainder of a division with a quotient of at most 2^22, by one
/// multiply-add: the difference is exact. A quotient that was rounded up to a
/// whole number is one too many.
struct ExpandRemainder : OpRewritePattern<arith::RemFOp> {
  ExpandRemainder(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::RemFOp op,
                                PatternRewriter &b) const override {
    if (!isExpanded(op))
      return b.notifyMatchFailure(op, "no vector of f32");
    Location loc = op.getLoc();
    MathLanes v{b, loc, op.getType()};
    Value x = op.getLhs(), y = op.getRhs(), zero = v.constant(0);
    Value quotient = arith::DivFOp::create(b, loc, x, y);
    Value whole = math::TruncOp::create(b, loc, quotient);
    Value size = math::AbsFOp::create(b, loc, quotient);
    Value isUsual =
        v.compare(arith::CmpFPredicate::OLE, size, v.constant(0x1p22));
    Value rest = v.fma(arith::NegFOp::create(b, loc, whole), y, x);
    Value signs = arith::MulFOp::create(
        b, loc, rest, math::CopySignOp::create(b, loc, v.constant(1), x));
    Value isPast = v.compare(arith::CmpFPredicate::OLT, signs, zero);
    Value more = arith::AddFOp::create(b, loc, rest,
                                       math::CopySignOp::create(b, loc, y, x));
    rest = v.select(isPast, more, rest);
    rest = math::CopySignOp::create(b, loc, rest, x);
    // An infinite divisor leaves all of x.
    Value isWhole = v.compare(arith::CmpFPredicate::OEQ, whole, zero);
    replaceWhereUsual(b, op, isUsual, v.select(isWhole, x, rest));
    return success();
  }
};

/// log2(x) of a normal number: its exponent, and 2 * atanh(s) / ln(2) of what
/// is between sqrt(1/2) and sqrt(2), with s = (m - 1) / (m + 1). The polynomial
/// in s^2 has a relative error of 2^-45.
Double emitLog2(Double x) {
  auto [e, m] = splitExponent(x);
  Double s = (m - x.constant(1)) / (m + x.constant(1));
  Double p = polynomial(s * s, {0.2828979577423797, 0.31990592442531673,
                                0.4122092445152395, 0.5770779424753333,
                                0.9617966941127988, 2.88539008177785});
  return fma(s, p, e);
}

/// 2^t for |t| < 1000, with a relative error of 2^-34.
Double emitExp2(Double t) {
  OpBuilder &b = *t.b;
  Double shifted = t + 0x1.8p52, n = shifted - t.constant(0x1.8p52);
  Double p = polynomial(t - n, {1.520192258461165e-05, 0.0001546929119433975,
                                0.00133339225597701, 0.009618027253491304,
                                0.05550410353451155, 0.2402265119815886,
                                0.6931471807284468, 0.9999999999616819});
  Value power =
      arith::ShLIOp::create(b, t.loc, shifted.toBits(), t.integer(52));
  return t.fromBits(arith::AddIOp::create(b, t.loc, p.toBits(), power));
}

/// x^y = 2^(y * log2(x)) in f64, of positive x, where the result is no
/// subnormal number: rounded to f32 it is at most 1 unit in the last place from
/// the exact one.
struct ExpandPower : OpRewritePattern<math::PowFOp> {
  ExpandPower(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &b) const override {
    if (!isExpanded(op))
      return b.notifyMatchFailure(op, "no vector of f32");
    Location loc = op.getLoc();
    auto type = cast<VectorType>(op.getType());
    auto extend = [&](Value x) {
      Type f64 = type.clone(b.getF64Type());
      return Double{&b, loc, arith::ExtFOp::create(b, loc, f64, x)};
    };
    Double x = extend(op.getLhs()), y = extend(op.getRhs());
    Double t = y * emitLog2(x);
    Value isUsual = doubles::abs(t) < 125.0;
    for (Value holds : {x > 0.0, x < std::numeric_limits<double>::infinity()})
      isUsual = arith::AndIOp::create(b, loc, isUsual, holds);
    Value power = emitExp2(t).value;
    replaceWhereUsual(b, op, isUsual,
                      arith::TruncFOp::create(b, loc, type, power));
    return success();
  }
};

/// A function of f64 as arithmetic, where multiply-adds are rounded once.
/// Angles from 2^31 on, infinite ones and NaN are the library's.
template <typename OpTy, auto function>
struct ExpandDoubles : OpRewritePattern<OpTy> {
  ExpandDoubles(MLIRContext *context)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    if (!isExpanded(op, /*bits=*/64))
      return b.notifyMatchFailure(op, "no vector of f64");
    auto number = [&](unsigned i) {
      return Double{&b, op.getLoc(), op->getOperand(i)};
    };
    if constexpr (std::is_invocable_v<decltype(function), Double, Double>) {
      b.replaceOp(op, function(number(0), number(1)).value);
    } else {
      Double x = number(0);
      Value result = function(x).value;
      if constexpr (std::is_same_v<OpTy, math::SinOp> ||
                    std::is_same_v<OpTy, math::CosOp> ||
                    std::is_same_v<OpTy, math::TanOp>)
        replaceWhereUsual(b, op, doubles::abs(x) < 0x1p31, result);
      else
        b.replaceOp(op, result);
    }
    return success();
  }
};

} // namespace

void cpu::populateGuardedExpansions(RewritePatternSet &patterns,
                                    bool hasMultiplyAdd) {
  MLIRContext *context = patterns.getContext();
  const double limit = hasMultiplyAdd ? 131072 : 12800;
  patterns.add<ExpandAngle<math::SinOp>, ExpandAngle<math::CosOp>,
               ExpandAngle<math::TanOp>>(context, limit);
  patterns.add<ExpandPower>(context);
  if (hasMultiplyAdd) {
    patterns.add<ExpandRemainder>(context);
    doubles::addPatterns<ExpandDoubles>(patterns);
  }
}
