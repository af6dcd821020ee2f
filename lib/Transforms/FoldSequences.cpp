//===- FoldSequences.cpp - Items of sequences that are known --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Transforms/Passes.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace sardonyx {
#define GEN_PASS_DEF_ONNXFOLDSEQUENCES
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

/// Longer chains of insertions are left to the run.
constexpr unsigned kLongestChain = 64;

/// A constant position in a list with places 0 to `most`, from its beginning.
std::optional<int64_t> placeOf(Value position, int64_t size, int64_t most) {
  DenseElementsAttr value;
  if (!matchPattern(position, m_Constant(&value)) ||
      !value.getElementType().isInteger() || value.getNumElements() != 1)
    return std::nullopt;
  int64_t place = (*value.value_begin<APInt>()).getSExtValue();
  place += place < 0 ? size : 0;
  return place < 0 || place > most ? std::nullopt : std::optional(place);
}

/// The tensors in a sequence, if they are known.
std::optional<SmallVector<Value>> itemsOf(Value sequence, unsigned depth = 0) {
  Operation *op = sequence.getDefiningOp();
  if (!op || depth == kLongestChain)
    return std::nullopt;
  if (isa<onnx::SequenceEmptyOp>(op))
    return SmallVector<Value>();
  if (auto construct = dyn_cast<onnx::SequenceConstructOp>(op))
    return SmallVector<Value>(construct.getInputs());
  if (auto identity = dyn_cast<onnx::IdentityOp>(op))
    return itemsOf(identity.getInput(), depth + 1);
  auto insert = dyn_cast<onnx::SequenceInsertOp>(op);
  auto erase = dyn_cast<onnx::SequenceEraseOp>(op);
  if (!insert && !erase)
    return std::nullopt;
  auto items = itemsOf(
      insert ? insert.getInputSequence() : erase.getInputSequence(), depth + 1);
  if (!items)
    return std::nullopt;
  int64_t size = items->size(), most = insert ? size : size - 1;
  Value position = insert ? insert.getPosition() : erase.getPosition();
  auto place =
      position ? placeOf(position, size, most) : std::optional<int64_t>(most);
  if (!place || *place < 0)
    return std::nullopt;
  if (insert)
    items->insert(items->begin() + *place, insert.getTensor());
  else
    items->erase(items->begin() + *place);
  return items;
}

/// The type of the result is as it was: inference makes it that of the item.
struct FoldSequenceAt : OpRewritePattern<onnx::SequenceAtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(onnx::SequenceAtOp op,
                                PatternRewriter &rewriter) const override {
    auto items = itemsOf(op.getInputSequence());
    if (!items)
      return rewriter.notifyMatchFailure(op, "the items are not known");
    int64_t size = items->size();
    auto place = placeOf(op.getPosition(), size, size - 1);
    if (!place)
      return rewriter.notifyMatchFailure(op, "the position is not known");
    rewriter.replaceOpWithNewOp<onnx::IdentityOp>(op, op.getType(),
                                                  (*items)[*place]);
    return success();
  }
};

struct OnnxFoldSequencesPass
    : sardonyx::impl::OnnxFoldSequencesBase<OnnxFoldSequencesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldSequenceAt>(&getContext());
    // No folding: that wants types which are not inferred yet.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    config.enableConstantCSE(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
