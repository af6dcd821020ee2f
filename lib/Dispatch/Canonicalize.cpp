//===- Canonicalize.cpp - Canonicalize, and fold what is empty ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXCANONICALIZE
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct CanonicalizePass
    : sardonyx::impl::SDXCanonicalizeBase<CanonicalizePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet all(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(all);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      op.getCanonicalizationPatterns(all, context);
    populateFoldEmptyPatterns(all);
    patterns = FrozenRewritePatternSet(std::move(all));
    return success();
  }

  void runOnOperation() override {
    // Whether it has settled is no matter, as in upstream's canonicalizer.
    (void)applyPatternsGreedily(
        getOperation(), patterns,
        GreedyRewriteConfig().setUseTopDownTraversal(true));
  }

private:
  FrozenRewritePatternSet patterns;
};

} // namespace
