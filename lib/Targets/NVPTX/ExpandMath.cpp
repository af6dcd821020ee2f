//===- ExpandMath.cpp - Math functions of kernels -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/Doubles.h"
#include "Common/MathExpansions.h"
#include "dialects/NV/NV.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVEXPANDMATH
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// A function of f64 as arithmetic; one of f32 that has no expansion of its own
/// by way of f64, whose rounding then counts alone.
template <typename OpTy, auto function>
struct ExpandByDoubles : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    Type type = op.getType(), f64 = b.getF64Type();
    if (!type.isF64() && !type.isF32() && !type.isF16() && !type.isBF16())
      return b.notifyMatchFailure(op, "not of f64 or shorter floats");
    Location loc = op.getLoc();
    SmallVector<doubles::Double> numbers;
    for (Value operand : op->getOperands())
      numbers.push_back(
          {&b, loc,
           type.isF64() ? operand
                        : Value(arith::ExtFOp::create(b, loc, f64, operand))});
    Value result = apply(function, numbers).value;
    if (!type.isF64())
      result = arith::TruncFOp::create(b, loc, b.getF32Type(), result);
    if (type.isF16() || type.isBF16())
      result = arith::TruncFOp::create(b, loc, type, result);
    b.replaceOp(op, result);
    return success();
  }

private:
  static doubles::Double apply(doubles::Double (*one)(doubles::Double),
                               ArrayRef<doubles::Double> numbers) {
    return one(numbers[0]);
  }
  static doubles::Double apply(doubles::Double (*two)(doubles::Double,
                                                      doubles::Double),
                               ArrayRef<doubles::Double> numbers) {
    return two(numbers[0], numbers[1]);
  }
};

void populateDoubleMath(RewritePatternSet &patterns) {
  doubles::addPatterns<ExpandByDoubles>(patterns, PatternBenefit(0));
  patterns.add<ExpandByDoubles<arith::RemFOp, doubles::fmod>>(
      patterns.getContext(), /*benefit=*/0);
}

struct ExpandMathPass : sardonyx::impl::NVExpandMathBase<ExpandMathPass> {
  using Base::Base;

  void runOnOperation() override {
    prepareMath(getOperation(), /*scale=*/{});
    RewritePatternSet patterns(&getContext());
    populateMathExpansions(patterns, /*scale=*/{});
    populateDoubleMath(patterns);
    GreedyRewriteConfig config;
    config.enableFolding(false).enableConstantCSE(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
