//===- AssignLayouts.cpp - Convolutions with channels last ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Regions of images with channels last around convolutions for tensor cores.
//
//===----------------------------------------------------------------------===//

#include "Common/ChannelsLast.h"
#include "Kernel/Block.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVASSIGNLAYOUTS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// A sum over an image of more elements is computed where these follow each
/// other.
static constexpr int64_t kMostSummed = 256;

/// Channels of a group; those of an only group are filled up.
static int64_t countChannels(sdx::ConvOp op) {
  const int64_t channels = op.getWeights().getType().getDimSize(1);
  const int64_t piece = nv::countInPiece(getElementTypeOrSelf(op.getInput()));
  return op.getGroup() == 1 ? llvm::alignTo(channels, piece) : channels;
}

/// Whether tiles are for the convolution with channels last.
static bool hasTilesLast(sdx::ConvOp op) {
  auto weights = cast<RankedTensorType>(op.getWeights().getType());
  Type element = weights.getElementType();
  return weights.hasStaticShape() &&
         element == getElementTypeOrSelf(op.getInput()) &&
         nv::hasLastTiles(op, element, getElementTypeOrSelf(op.getInit()),
                          weights.getDimSize(0), countChannels(op),
                          op.getGroup());
}

/// Whether it sums up whole images that are not small.
static bool sumsLargeImages(linalg::GenericOp op, OpOperand &image) {
  AffineMap map = op.getMatchingIndexingMap(&image);
  auto kinds = op.getIteratorTypesArray();
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(image.get().getType()).getShape();
  int64_t summed = 1;
  for (auto [expr, size] :
       llvm::zip_equal(map.getResults().drop_front(2), shape.drop_front(2))) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || kinds[dim.getPosition()] != utils::IteratorType::reduction)
      continue;
    if (ShapedType::isDynamic(size))
      return true;
    summed *= size;
  }
  return summed > kMostSummed;
}

namespace {

class LayoutAssigner : public ChannelsLast {
public:
  using ChannelsLast::ChannelsLast;

protected:
  bool isWorth(sdx::ConvOp op) override { return hasTilesLast(op); }

  /// A convolution without tiles is computed as well with channels last.
  bool canConvert(sdx::ConvOp op) override {
    return cast<RankedTensorType>(op.getWeights().getType()).hasStaticShape();
  }
  bool canConvert(sdx::MaxPoolOp) override { return true; }
  bool canConvert(linalg::GenericOp op) override {
    return llvm::none_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
      return findLast(operand->get()) && sumsLargeImages(op, *operand);
    });
  }

  Value convert(sdx::ConvOp op, Value input, Value init) override {
    const int64_t rank = op.getWeights().getType().getRank();
    Value weights =
        createTranspose(b, op.getLoc(), op.getWeights(), orderLast(rank));
    const int64_t channels = countChannels(op);
    if (hasTilesLast(op) &&
        channels != op.getWeights().getType().getDimSize(1)) {
      input = padChannels(input, channels);
      weights = padChannels(weights, channels);
    }
    auto conv = nv::ConvOp::create(b, op.getLoc(), init.getType(), input,
                                   weights, init, op.getStridesAttr(),
                                   op.getDilationsAttr(), op.getPadsBeginAttr(),
                                   op.getPadsEndAttr(), op.getGroupAttr());
    for (StringRef name : {nv::kTF32Attr, nv::kBF16x3Attr})
      if (op->hasAttr(name))
        conv->setAttr(name, b.getUnitAttr());
    return conv.getResult();
  }

  Value convert(sdx::MaxPoolOp op, Value input, Value init) override {
    return nv::MaxPoolOp::create(b, op.getLoc(), init.getType(), input, init,
                                 op.getKernelShapeAttr(), op.getStridesAttr(),
                                 op.getPadsBeginAttr())
        .getResult();
  }

private:
  /// `tensor` [...,C] with zeros behind its channels.
  Value padChannels(Value tensor, int64_t channels) {
    Location loc = tensor.getLoc();
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
    SmallVector<OpFoldResult> padded(sizes);
    padded.back() = b.getIndexAttr(channels);
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
        steps(sizes.size(), b.getIndexAttr(1));
    auto type = cast<RankedTensorType>(tensor.getType());
    Value zeros = createZeros(b, loc, padded, type.getElementType());
    return tensor::InsertSliceOp::create(b, loc, tensor, zeros, offsets, sizes,
                                         steps);
  }
};

struct AssignLayoutsPass
    : sardonyx::impl::NVAssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    LayoutAssigner(rewriter).run(getOperation());
  }
};

} // namespace
