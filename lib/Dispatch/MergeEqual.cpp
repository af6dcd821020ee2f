//===- MergeEqual.cpp - Operations that compute the same are one ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Transforms/CSE.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXMERGEEQUAL
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Holds the hash of an operation's regions while equal ones are looked for.
static constexpr StringLiteral kBodyHash = "sdx.body_hash";

/// A number that equal regions have in common: what is defined inside counts by
/// its order, what is defined outside by itself.
static llvm::hash_code hashBody(Operation *op) {
  llvm::DenseMap<Value, unsigned> inside;
  auto define = [&](ValueRange values) {
    for (Value value : values)
      inside.try_emplace(value, inside.size());
  };
  llvm::hash_code hash(op->getNumRegions());
  for (Region &region : op->getRegions())
    region.walk<WalkOrder::PreOrder>([&](Block *block) {
      define(block->getArguments());
      for (Operation &inner : *block) {
        auto number = [&](Value value) -> llvm::hash_code {
          auto it = inside.find(value);
          return it == inside.end() ? mlir::hash_value(value)
                                    : llvm::hash_code(it->second);
        };
        hash = llvm::hash_combine(
            hash, OperationEquivalence::computeHash(
                      &inner, number, OperationEquivalence::ignoreHashValue,
                      OperationEquivalence::IgnoreLocations));
        define(inner.getResults());
      }
    });
  return hash;
}

void sardonyx::mergeEqual(Operation *root) {
  // MLIR's elimination compares the bodies of operations, but does not hash
  // them: all that are applied to the same tensors would be compared with each
  // other.
  Type i64 = IntegerType::get(root->getContext(), 64);
  root->walk([&](linalg::GenericOp op) {
    op->setDiscardableAttr(
        kBodyHash,
        IntegerAttr::get(i64, static_cast<int64_t>(size_t(hashBody(op)))));
  });
  IRRewriter rewriter(root->getContext());
  DominanceInfo dominance(root);
  eliminateCommonSubExpressions(rewriter, dominance, root);
  root->walk(
      [](linalg::GenericOp op) { op->removeDiscardableAttr(kBodyHash); });
}

namespace {

struct MergeEqualPass : sardonyx::impl::SDXMergeEqualBase<MergeEqualPass> {
  void runOnOperation() override { mergeEqual(getOperation()); }
};

} // namespace
