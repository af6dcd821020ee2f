//===- ApproximateMath.cpp - Math functions on vectors --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/MathExpansions.h"
#include "MicroKernels/VectorOps.h"
#include "dialects/CPU/CPU.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUAPPROXIMATEMATH
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// value * 2^exponent by `vscalefps`, for whole exponents of any size, on
/// registers of AVX-512; null for vectors that fill none.
Value emitScale(MathLanes v, Value value, Value exponent) {
  auto type = dyn_cast<VectorType>(v.type);
  if (!type || type.getRank() != 1)
    return {};
  OpBuilder &b = v.b;
  Location loc = v.loc;
  auto scale = [&](ValueRange parts) -> Value {
    Value from = parts[1];
    int64_t lanes = cast<VectorType>(from.getType()).getNumElements();
    Type maskType = b.getIntegerType(std::max<int64_t>(lanes, 8));
    Value mask = LLVM::ConstantOp::create(b, loc, maskType, -1);
    SmallVector<Value> args{from, parts[0], from, mask};
    constexpr int64_t kCurrentRounding = 4;
    if (lanes == 16)
      args.push_back(
          LLVM::ConstantOp::create(b, loc, b.getI32Type(), kCurrentRounding));
    auto name =
        b.getStringAttr("llvm.x86.avx512.mask.scalef.ps." + Twine(lanes * 32));
    return LLVM::CallIntrinsicOp::create(b, loc, from.getType(), name, args)
        .getResult(0);
  };
  return cpu::emitByRegisters(b, loc, /*registerBits=*/512, {exponent, value},
                              scale);
}

/// A multiply-add that is one instruction where the processor has it and two
/// where it hasn't; math.fma would be a call of the library there, lane by
/// lane.
struct RelaxFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FmaOp op,
                                PatternRewriter &b) const override {
    if (isa<VectorType>(op.getType()))
      b.replaceOpWithNewOp<vector::FMAOp>(op, op.getA(), op.getB(), op.getC());
    else
      b.replaceOpWithNewOp<LLVM::FMulAddOp>(op, op.getA(), op.getB(),
                                            op.getC());
    return success();
  }
};

/// The number that all lanes of `value` are, if it is a constant.
std::optional<APFloat> getConstantLanes(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValue();
  if (auto lanes = dyn_cast<SplatElementsAttr>(attr))
    return lanes.getSplatValue<APFloat>();
  return std::nullopt;
}

/// A whole number that a quotient by a constant is rounded to, as quantisation
/// does: x * (1 / c), and once more what that leaves over, round as the
/// division does, whose instruction takes as long as ten others. A fused
/// multiply-add makes the rest exact where the quotient is no subnormal number,
/// which is rounded to zero.
void multiplyByReciprocal(math::RoundEvenOp op) {
  auto division = op.getOperand().getDefiningOp<arith::DivFOp>();
  auto type = dyn_cast<VectorType>(op.getType());
  if (!division || !type || !type.getElementType().isF32() ||
      !division->hasOneUse())
    return;
  std::optional<APFloat> divisor = getConstantLanes(division.getRhs());
  if (!divisor || !divisor->isNormal())
    return;
  APFloat inverse(1.0f);
  inverse.divide(*divisor, APFloat::rmNearestTiesToEven);
  if (!inverse.isNormal())
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value x = division.getLhs(), c = division.getRhs();
  Value factor =
      arith::ConstantOp::create(b, DenseElementsAttr::get(type, inverse));
  Value quotient = arith::MulFOp::create(b, x, factor);
  Value minus = arith::NegFOp::create(b, quotient);
  Value rest = vector::FMAOp::create(b, minus, c, x);
  Value better = vector::FMAOp::create(b, rest, factor, quotient);
  // Of infinity nothing is left over.
  Value isNumber =
      arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, better, better);
  op.setOperand(arith::SelectOp::create(b, isNumber, better, quotient));
  division.erase();
}

/// Functions that are instructions, or that LLVM calls the library for by
/// itself, and that convert-math-to-libm would split into scalar calls.
bool isIntrinsic(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CosOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::ExpOp, math::Exp2Op, math::FloorOp,
             math::LogOp, math::Log10Op, math::Log2Op, math::PowFOp,
             math::RoundOp, math::RoundEvenOp, math::SinOp, math::SqrtOp,
             math::TruncOp, math::IsNaNOp, math::IsFiniteOp, math::IsInfOp>(op);
}

struct ApproximateMathPass
    : sardonyx::impl::CPUApproximateMathBase<ApproximateMathPass> {
  using Base::Base;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    // vscalefps comes with all of AVX-512.
    const bool hasScale =
        cpu::getTargetOrDefault(getOperation()).getVectorBits() >= 512;
    if (cpu::getTargetOrDefault(getOperation())
            .has(cpu::TargetTraits::FusedMultiplyAdd))
      getOperation()->walk(multiplyByReciprocal);
    MathScale scale;
    if (hasScale)
      scale = emitScale;
    prepareMath(getOperation(), scale);
    {
      RewritePatternSet patterns(context);
      populateMathExpansions(patterns, scale);
      patterns.add<RelaxFma>(context, /*benefit=*/2);
      GreedyRewriteConfig config;
      config.enableFolding(false).enableConstantCSE(false);
      if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                       config)))
        return signalPassFailure();
    }
    LLVMTypeConverter converter(context);
    RewritePatternSet patterns(context);
    populateMathToLLVMConversionPatterns(converter, patterns,
                                         /*approximateLog1p=*/false);
    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, arith::ArithDialect>();
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) { return !isIntrinsic(op); });
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
