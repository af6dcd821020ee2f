//===- ApproximateMath.cpp - Math functions on vectors --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/MathExpansions.h"
#include "Kernel/GuardedMath.h"
#include "MicroKernels/VectorOps.h"
#include "dialects/CPU/CPU.h"
#include "lib/Dispatch/Rounding.h"
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
/// registers of AVX-512; null for vectors that fill none. Lanes that `isKept`
/// leaves out are 0; it may be null.
Value emitScale(MathLanes v, Value value, Value exponent, Value isKept) {
  auto type = dyn_cast<VectorType>(v.type);
  if (!type || type.getRank() != 1)
    return {};
  OpBuilder &b = v.b;
  Location loc = v.loc;
  auto scale = [&](ValueRange parts) -> Value {
    Value from = parts.back(), others = from, mask;
    int64_t lanes = cast<VectorType>(from.getType()).getNumElements();
    const int64_t bits = std::max<int64_t>(lanes, 8);
    Type maskType = b.getIntegerType(bits);
    if (isKept) {
      mask = parts.front();
      if (lanes < bits) {
        auto type = VectorType::get(bits, b.getI1Type());
        mask = vector::InsertStridedSliceOp::create(
            b, loc, mask,
            arith::ConstantOp::create(b, loc, b.getZeroAttr(type)),
            ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
      }
      mask = LLVM::BitcastOp::create(b, loc, maskType, mask);
      others = arith::ConstantOp::create(b, loc, b.getZeroAttr(from.getType()));
    } else {
      mask = LLVM::ConstantOp::create(b, loc, maskType, -1);
    }
    SmallVector<Value> args{from, parts.drop_back().back(), others, mask};
    constexpr int64_t kCurrentRounding = 4;
    if (lanes == 16)
      args.push_back(
          LLVM::ConstantOp::create(b, loc, b.getI32Type(), kCurrentRounding));
    auto name =
        b.getStringAttr("llvm.x86.avx512.mask.scalef.ps." + Twine(lanes * 32));
    return LLVM::CallIntrinsicOp::create(b, loc, from.getType(), name, args)
        .getResult(0);
  };
  SmallVector<Value> operands{exponent, value};
  if (isKept)
    operands.insert(operands.begin(), isKept);
  return cpu::emitByRegisters(b, loc, /*registerBits=*/512, operands, scale);
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

/// The scalar that all lanes of `value` are, or a constant; null if they are
/// not one.
Value getLanes(Value value) {
  if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    return broadcast.getSource();
  return value.getDefiningOp<arith::ConstantOp>() ? value : Value();
}

/// 1 / `divisor` in all lanes, if both are normal numbers; null if that is not
/// known.
Value emitReciprocal(ImplicitLocOpBuilder &b, Value divisor) {
  auto type = cast<VectorType>(divisor.getType());
  Value lanes = getLanes(divisor);
  auto argument = dyn_cast_or_null<BlockArgument>(lanes);
  if (argument) {
    Block *entry = argument.getOwner();
    auto kernel = dyn_cast<func::FuncOp>(entry->getParentOp());
    if (!kernel || !entry->isEntryBlock() || !argument.getType().isF32() ||
        !kernel.getArgAttr(argument.getArgNumber(), sdx::kNormalAttr))
      return nullptr;
    // Once for each kernel.
    Value inverse;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(entry);
      Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1));
      inverse = arith::DivFOp::create(b, one, argument);
    }
    return vector::BroadcastOp::create(b, type, inverse);
  }
  Attribute attr;
  if (!lanes || !matchPattern(lanes, m_Constant(&attr)))
    return nullptr;
  APFloat number =
      isa<FloatAttr>(attr) ? cast<FloatAttr>(attr).getValue() : APFloat(0.0f);
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    number = splat.getSplatValue<APFloat>();
  APFloat inverse(1.0f);
  inverse.divide(number, APFloat::rmNearestTiesToEven);
  if (!number.isNormal() || !inverse.isNormal())
    return nullptr;
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, inverse));
}

/// `value`, of so many uses, as it was before a select bounded it by a limit,
/// which NaN becomes; null if none did.
Value skipBound(Value value, unsigned uses, bool isLower) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto less = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                     : arith::CmpFOp();
  if (!less || less.getPredicate() != arith::CmpFPredicate::OLT ||
      !value.hasNUses(uses))
    return nullptr;
  Value number = select.getTrueValue(), limit = select.getFalseValue();
  auto isLimit = [&](Value other) {
    Value lanes = getLanes(limit);
    return other == limit || (lanes && getLanes(other) == lanes);
  };
  Value least = isLower ? less.getLhs() : less.getRhs();
  Value other = isLower ? less.getRhs() : less.getLhs();
  return isLimit(least) && other == number ? number : Value();
}

/// `value` as it was before a limit took the place of what is larger, of what
/// saturates by itself elsewhere, as NaN does at the lower end; null if none
/// did.
Value skipHighest(Value value) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto less = select ? select.getCondition().getDefiningOp<arith::CmpFOp>()
                     : arith::CmpFOp();
  return less && less.getPredicate() == arith::CmpFPredicate::OLT &&
                 less.getLhs() == select.getTrueValue() &&
                 less.getRhs() == select.getFalseValue() && value.hasNUses(1)
             ? select.getFalseValue()
             : Value();
}

/// The operand of an operation that rounds to a whole number: also one that
/// adds a number that leaves no bits for a fraction, as sdx-fold-requantization
/// has it.
Value getRounded(Operation *op) {
  if (auto round = dyn_cast<math::RoundEvenOp>(op))
    return round.getOperand();
  auto sum = dyn_cast<arith::AddFOp>(op);
  Value lanes = sum ? getLanes(sum.getRhs()) : Value();
  APFloat number(0.0f);
  return lanes && matchPattern(lanes, m_ConstantFloat(&number)) &&
                 number.convertToDouble() == kNoFraction
             ? sum.getLhs()
             : Value();
}

/// A whole number that a quotient is rounded to, as quantisation does: x * (1 /
/// c), and once more what that leaves over, round as the division does, whose
/// instruction takes as long as ten others. A fused multiply-add makes the rest
/// exact where the quotient is no subnormal number, which is rounded to zero.
void multiplyByReciprocal(Operation *op) {
  Value number = getRounded(op);
  auto type = dyn_cast_or_null<VectorType>(number ? number.getType() : Type());
  if (!type || !type.getElementType().isF32())
    return;
  // Bounds are compared with and selected from.
  unsigned uses = 1;
  if (Value below = skipBound(number, 1, /*isLower=*/false))
    if (Value unbounded = skipBound(below, 2, /*isLower=*/true)) {
      number = unbounded;
      uses = 2;
    }
  if (Value unbounded = skipHighest(number)) {
    number = unbounded;
    uses = 2;
  }
  auto division = number.getDefiningOp<arith::DivFOp>();
  if (!division || !number.hasNUses(uses))
    return;
  ImplicitLocOpBuilder b(op->getLoc(), division);
  Value x = division.getLhs(), c = division.getRhs();
  Value factor = emitReciprocal(b, c);
  if (!factor)
    return;
  Value quotient = arith::MulFOp::create(b, x, factor);
  // Of infinity nothing is left over. Where bounds follow, and NaN becomes the
  // lower one, that does for the negative, and the largest number for the
  // positive.
  const bool isBounded = uses == 2;
  if (isBounded) {
    Value largest = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type,
                                  APFloat::getLargest(APFloat::IEEEsingle())));
    Value isLess =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, quotient, largest);
    quotient = arith::SelectOp::create(b, isLess, quotient, largest);
  }
  Value minus = arith::NegFOp::create(b, quotient);
  Value rest = vector::FMAOp::create(b, minus, c, x);
  Value exact = vector::FMAOp::create(b, rest, factor, quotient);
  if (!isBounded) {
    Value isNumber =
        arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, exact, exact);
    exact = arith::SelectOp::create(b, isNumber, exact, quotient);
  }
  division.replaceAllUsesWith(exact);
  division.erase();
}

/// An integer of 32 bits that a number is rounded to is one instruction.
void roundToInteger(arith::FPToSIOp op) {
  auto round = op.getIn().getDefiningOp<math::RoundEvenOp>();
  auto type = dyn_cast<VectorType>(op.getType());
  if (!round || !type || !type.getElementType().isInteger(32) ||
      !getElementTypeOrSelf(round.getType()).isF32())
    return;
  OpBuilder b(op);
  op.replaceAllUsesWith(
      LLVM::LrintOp::create(b, op.getLoc(), type, round.getOperand())
          .getResult());
  op.erase();
}

/// Numbers of f32 that are rounded to bf16 are an instruction for a register,
/// or for two, where those that become subnormal may become zero (afn).
void roundToBf16(arith::TruncFOp op) {
  auto type = dyn_cast<VectorType>(op.getType());
  const int64_t lanes = type ? type.getNumElements() : 0;
  constexpr int64_t kLanes = 16;
  if (!arith::bitEnumContainsAll(
          op.getFastmath().value_or(arith::FastMathFlags::none),
          arith::FastMathFlags::afn) ||
      !type || type.getRank() != 1 || !type.getElementType().isBF16() ||
      !getElementTypeOrSelf(op.getIn()).isF32() || lanes % kLanes != 0 ||
      !llvm::isPowerOf2_64(lanes))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> parts;
  const int64_t width = std::min(lanes, 2 * kLanes);
  for (int64_t first = 0; first < lanes; first += width) {
    auto part = [&](int64_t at) {
      return lanes == kLanes ? op.getIn()
                             : cpu::extractLanes(b, b.getLoc(), op.getIn(),
                                                 first + at, kLanes);
    };
    StringRef name = "llvm.x86.avx512bf16.cvtneps2bf16.512";
    SmallVector<Value> operands = {part(0)};
    if (width > kLanes) {
      name = "llvm.x86.avx512bf16.cvtne2ps2bf16.512";
      operands.insert(operands.begin(), part(kLanes)); // the upper half
    }
    auto rounded = VectorType::get({width}, type.getElementType());
    parts.push_back(LLVM::CallIntrinsicOp::create(
                        b, rounded, b.getStringAttr(name), operands)
                        .getResult(0));
  }
  op.replaceAllUsesWith(cpu::emitConcatenation(b, std::move(parts)));
  op.erase();
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

/// Whether there is anything that the patterns match.
bool hasMath(Operation *root) {
  return root
      ->walk([](Operation *op) {
        return isa<arith::RemFOp>(op) ||
                       isa_and_nonnull<math::MathDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

struct ApproximateMathPass
    : sardonyx::impl::CPUApproximateMathBase<ApproximateMathPass> {
  using Base::Base;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    // vscalefps comes with all of AVX-512.
    cpu::TargetAttr machine = cpu::getTargetOrDefault(getOperation());
    const bool hasScale = machine.getVectorBits() >= 512;
    if (machine.has(cpu::TargetTraits::FusedMultiplyAdd))
      getOperation()->walk(multiplyByReciprocal);
    if (machine.has(cpu::TargetTraits::RoundsToInteger))
      getOperation()->walk(roundToInteger);
    if (machine.getBf16() != cpu::Bf16Product::Generic && hasScale)
      getOperation()->walk(roundToBf16);
    MathScale scale;
    if (hasScale)
      scale = emitScale;
    prepareMath(getOperation(), scale);
    // To make the patterns takes longer than to find that nothing is theirs.
    if (!hasMath(getOperation()))
      return;
    {
      RewritePatternSet patterns(context);
      populateMathExpansions(patterns, scale);
      cpu::populateGuardedExpansions(
          patterns, machine.has(cpu::TargetTraits::FusedMultiplyAdd));
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
