//===- Prune.cpp - Zeros in the place of small weights --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WeightMath.h"
#include "sardonyx/Transforms/Passes.h"

#include <cmath>

namespace sardonyx {
#define GEN_PASS_DEF_ONNXPRUNE
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

enum class Kind { Magnitude, TwoOfFour, Block };

class Pruner {
public:
  Pruner(ImplicitLocOpBuilder &b, const WeightedOp &layer)
      : math(b), layer(layer), weight(layer.weight->get()) {}

  /// All but `count` weights become zero.
  Value keepLargest(int64_t count) {
    const int64_t all = layer.type.getNumElements();
    Value marks = math.markLargest(
        math.unary<onnx::AbsOp>(math.reshape(weight, {all})), count, 0);
    return apply(math.reshape(marks, layer.type.getShape()));
  }

  /// Of each four in a row of those that are summed up, two become zero. Null
  /// where there are no fours.
  Value keepTwoOfFour() {
    SmallVector<int64_t> shape(layer.type.getShape());
    if (shape[layer.depthDim] % 4)
      return nullptr;
    SmallVector<int64_t> fours(shape);
    fours[layer.depthDim] /= 4;
    fours.insert(fours.begin() + layer.depthDim + 1, 4);
    Value marks =
        math.markLargest(math.unary<onnx::AbsOp>(math.reshape(weight, fours)),
                         2, layer.depthDim + 1);
    return apply(math.reshape(marks, shape));
  }

  /// Of the blocks of `rows` outputs by `columns` inputs the `amount` whose
  /// magnitudes have the smallest sums become zero, at all places of a window.
  /// Null where blocks do not fit.
  Value keepBlocks(int64_t rows, int64_t columns, double amount) {
    ArrayRef<int64_t> shape = layer.type.getShape();
    if (shape[layer.outputDim] % rows || shape[layer.depthDim] % columns)
      return nullptr;
    // Each of the first two dimensions becomes blocks and what is in them.
    int64_t inBlock[2];
    inBlock[layer.outputDim] = rows;
    inBlock[layer.depthDim] = columns;
    SmallVector<int64_t> split = {shape[0] / inBlock[0], inBlock[0],
                                  shape[1] / inBlock[1], inBlock[1]};
    split.append(shape.begin() + 2, shape.end());
    Value blocks = math.reshape(weight, split);
    Value sums = math.reduce<onnx::ReduceSumOp>(
        math.unary<onnx::AbsOp>(blocks), getOtherDims(split.size(), {0, 2}));
    const int64_t all = split[0] * split[2];
    Value marks =
        math.markLargest(math.reshape(sums, {all}), countKept(all, amount), 0);
    SmallVector<int64_t> each(split.size(), 1);
    each[0] = split[0], each[2] = split[2];
    Value kept = math.binary<onnx::MulOp>(blocks, math.reshape(marks, each));
    return math.reshape(kept, shape);
  }

  static int64_t countKept(int64_t all, double amount) {
    return std::max<int64_t>(1, all - std::llround(double(all) * amount));
  }

private:
  Value apply(Value marks) { return math.binary<onnx::MulOp>(weight, marks); }

  WeightMath math;
  const WeightedOp &layer;
  Value weight;
};

struct OnnxPrunePass : sardonyx::impl::OnnxPruneBase<OnnxPrunePass> {
  using OnnxPruneBase::OnnxPruneBase;

  void runOnOperation() override {
    std::optional<Kind> parsed = llvm::StringSwitch<std::optional<Kind>>(kind)
                                     .Case("magnitude", Kind::Magnitude)
                                     .Case("2:4", Kind::TwoOfFour)
                                     .Case("block", Kind::Block)
                                     .Default(std::nullopt);
    if (failed(checkOptions(parsed)) ||
        failed(checkNodeNames(getOperation(), exclude, "exclude")))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      std::optional<WeightedOp> layer = WeightedOp::get(op);
      if (!layer || llvm::is_contained(exclude, getNameOfNode(op)))
        return;
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Value pruned = prune(Pruner(b, *layer), *parsed, *layer);
      if (!pruned)
        remarkOn(op) << "keeps its weights, of " << layer->type
                     << ": their sizes are no multiples of "
                     << (*parsed == Kind::Block ? "the block's" : "4");
      else
        layer->weight->set(pruned);
    });
  }

private:
  LogicalResult checkOptions(std::optional<Kind> parsed) {
    if (kind == "structured")
      return emitError(getOperation().getLoc(),
                       "kind=structured needs data, which a pass has none of: "
                       "use sardonyx.quantization.prune");
    if (!parsed)
      return emitError(getOperation().getLoc(), "kind=")
             << kind << ": must be magnitude, 2:4 or block";
    if (!(amount >= 0 && amount <= 1))
      return emitError(getOperation().getLoc(), "amount=")
             << amount.getValue() << ": must be 0 to 1";
    if (*parsed == Kind::TwoOfFour && amount != 0.5)
      return emitError(getOperation().getLoc(),
                       "amount: of each four weights 2:4 keeps two");
    if (*parsed == Kind::Block &&
        (block.size() != 2 || block[0] < 1 || block[1] < 1))
      return emitError(getOperation().getLoc(),
                       "block: must be two sizes, outputs and inputs");
    return success();
  }

  Value prune(Pruner pruner, Kind which, const WeightedOp &layer) {
    switch (which) {
    case Kind::Magnitude:
      return pruner.keepLargest(
          Pruner::countKept(layer.type.getNumElements(), amount));
    case Kind::TwoOfFour:
      return pruner.keepTwoOfFour();
    case Kind::Block:
      return pruner.keepBlocks(block[0], block[1], amount);
    }
    llvm_unreachable("all kinds are above");
  }
};

} // namespace
