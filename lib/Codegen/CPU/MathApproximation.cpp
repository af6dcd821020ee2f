//===- MathApproximation.cpp - Math functions on vectors ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Codegen/CPU/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_APPROXIMATEMATHPASS
#include "sardonyx/Codegen/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

struct ApproximateMathPass
    : sardonyx::impl::ApproximateMathPassBase<ApproximateMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    static constexpr StringLiteral kNames[] = {
        "math.exp", "math.log", "math.tanh", "math.erf", "math.sin", "math.cos"};
    auto isKnown = [](StringRef name) {
      return llvm::is_contained(kNames, name);
    };
    populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
    populateMathPolynomialApproximationPatterns(patterns, isKnown);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
