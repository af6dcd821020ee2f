//===- AssignLayouts.cpp - Convolutions with channels last ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations are visited in order. A convolution for tensor cores is made one
// with channels last, between transposes; what follows and takes the result of
// such a transpose takes its operand in its place, and is followed by a
// transpose itself. Those that nobody takes are dropped at the end: what is
// left is a transpose where a region of operations with channels last begins or
// ends.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Block.h"
#include "Layout/ChannelOrder.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVASSIGNLAYOUTS
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using nv::orderFirst;
using nv::orderLast;

/// A sum over an image of more elements is computed where these follow each
/// other.
static constexpr int64_t kMostSummed = 256;

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

/// What `value` is with channels last, if it is the transpose of that.
static Value findLast(Value value) {
  auto transpose = value.getDefiningOp<linalg::TransposeOp>();
  return transpose && rankOf(value) >= 3 &&
                 transpose.getPermutation() ==
                     ArrayRef<int64_t>(orderFirst(rankOf(value)))
             ? transpose.getInput()
             : Value();
}

static AffineMap makeLast(AffineMap map) {
  SmallVector<AffineExpr> results;
  for (int64_t dim : orderLast(map.getNumResults()))
    results.push_back(map.getResult(dim));
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                        map.getContext());
}

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

namespace {

class LayoutAssigner {
public:
  explicit LayoutAssigner(IRRewriter &b) : b(b) {}

  void visit(Operation *op) {
    b.setInsertionPoint(op);
    if (auto conv = dyn_cast<sdx::ConvOp>(op)) {
      if (hasTilesLast(conv) || canFollow(conv))
        convert(conv);
    } else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op)) {
      if (findLast(pool.getInput()))
        convert(pool);
    } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (shouldConvert(generic))
        convert(generic);
    } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
      if (findLast(insert.getSource()) && isSameRank(insert))
        convert(insert);
    } else if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
      if (findLast(extract.getSource()) &&
          extract.getType().getRank() == extract.getSourceType().getRank())
        convert(extract);
    }
  }

  /// Erases the transposes that nobody needs.
  void dropUnused() {
    for (Operation *op : llvm::reverse(made))
      if (op->use_empty())
        b.eraseOp(op);
  }

private:
  /// `value` with channels last.
  Value toLast(Value value) {
    if (Value last = findLast(value))
      return last;
    OpBuilder::InsertionGuard guard(b);
    const Location loc = value.getLoc();
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      return linalg::FillOp::create(b, loc, fill.getInputs()[0],
                                    emptyLast(value))
          .getResult(0);
    if (value.getDefiningOp<tensor::EmptyOp>())
      return emptyLast(value);
    Value &known = transposed[value];
    if (!known) {
      b.setInsertionPointAfterValue(value);
      known = createTranspose(b, loc, value, orderLast(rankOf(value)));
      made.push_back(known.getDefiningOp());
    }
    return known;
  }

  /// An empty tensor of the sizes of `value`, channels last.
  Value emptyLast(Value value) {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, value.getLoc(), value);
    SmallVector<OpFoldResult> last;
    for (int64_t dim : orderLast(sizes.size()))
      last.push_back(sizes[dim]);
    return tensor::EmptyOp::create(b, value.getLoc(), last,
                                   getElementTypeOrSelf(value));
  }

  /// The transpose of `last` takes the place of `old`.
  void replace(Value old, Value last) {
    Value first =
        createTranspose(b, old.getLoc(), last, orderFirst(rankOf(last)));
    made.push_back(first.getDefiningOp());
    b.replaceAllUsesWith(old, first);
  }

  /// Whether a convolution without tiles is computed as well with channels
  /// last, as its input is.
  static bool canFollow(sdx::ConvOp op) {
    return findLast(op.getInput()) &&
           cast<RankedTensorType>(op.getWeights().getType()).hasStaticShape();
  }

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

  void convert(sdx::ConvOp op) {
    Value input = toLast(op.getInput());
    Value weights = createTranspose(b, op.getLoc(), op.getWeights(),
                                    orderLast(rankOf(op.getWeights())));
    const int64_t channels = countChannels(op);
    if (hasTilesLast(op) &&
        channels != op.getWeights().getType().getDimSize(1)) {
      input = padChannels(input, channels);
      weights = padChannels(weights, channels);
    }
    Value init = toLast(op.getInit());
    auto conv = nv::ConvOp::create(b, op.getLoc(), init.getType(), input,
                                   weights, init, op.getStridesAttr(),
                                   op.getDilationsAttr(), op.getPadsBeginAttr(),
                                   op.getPadsEndAttr(), op.getGroupAttr());
    if (op->hasAttr(nv::kTF32Attr))
      conv->setAttr(nv::kTF32Attr, b.getUnitAttr());
    replace(op.getResult(), conv.getResult());
    b.eraseOp(op);
  }

  void convert(sdx::MaxPoolOp op) {
    Value init = toLast(op.getInit());
    auto pool = nv::MaxPoolOp::create(
        b, op.getLoc(), init.getType(), toLast(op.getInput()), init,
        op.getKernelShapeAttr(), op.getStridesAttr(), op.getPadsBeginAttr());
    replace(op.getResult(), pool.getResult());
    b.eraseOp(op);
  }

  static bool isSameRank(tensor::InsertSliceOp op) {
    return op.getSourceType().getRank() == op.getType().getRank();
  }

  static SmallVector<OpFoldResult> reorder(ArrayRef<OpFoldResult> values) {
    SmallVector<OpFoldResult> last;
    for (int64_t dim : orderLast(values.size()))
      last.push_back(values[dim]);
    return last;
  }

  void convert(tensor::InsertSliceOp op) {
    Value inserted = tensor::InsertSliceOp::create(
        b, op.getLoc(), toLast(op.getSource()), toLast(op.getDest()),
        reorder(op.getMixedOffsets()), reorder(op.getMixedSizes()),
        reorder(op.getMixedStrides()));
    replace(op.getResult(), inserted);
    b.eraseOp(op);
  }

  void convert(tensor::ExtractSliceOp op) {
    Value extracted = tensor::ExtractSliceOp::create(
        b, op.getLoc(), toLast(op.getSource()), reorder(op.getMixedOffsets()),
        reorder(op.getMixedSizes()), reorder(op.getMixedStrides()));
    replace(op.getResult(), extracted);
    b.eraseOp(op);
  }

  /// Whether a result of the operation is an image of this rank, each element
  /// of which is computed once.
  static bool isImage(linalg::GenericOp op, OpResult result, int64_t rank) {
    AffineMap map = op.getIndexingMapMatchingResult(result);
    return map.getNumResults() == rank && map.isProjectedPermutation();
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

  /// Whether most images that it reads are there with channels last.
  bool shouldConvert(linalg::GenericOp op) {
    if (!op.hasPureTensorSemantics())
      return false;
    int64_t last = 0, others = 0, rank = 0;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (findLast(operand->get())) {
        if (rank && rank != rankOf(operand->get()))
          return false;
        rank = rankOf(operand->get());
        if (sumsLargeImages(op, *operand))
          return false;
        ++last;
      }
    }
    if (last == 0)
      return false;
    for (OpOperand *operand : op.getDpsInputOperands())
      others += isOtherImage(op, *operand, rank);
    return last >= others;
  }

  /// Whether an operand of this rank, most elements of which are different, has
  /// its channels before the others.
  static bool isOtherImage(linalg::GenericOp op, OpOperand &operand,
                           int64_t rank) {
    return rankOf(operand.get()) == rank && !findLast(operand.get()) &&
           op.getMatchingIndexingMap(&operand).isPermutation();
  }

  void convert(linalg::GenericOp op) {
    int64_t rank = 0;
    for (Value input : op.getDpsInputs())
      if (findLast(input))
        rank = rankOf(input);
    SmallVector<Value> inputs, inits;
    SmallVector<AffineMap> maps;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      const bool isLast = findLast(operand->get()) != nullptr ||
                          isOtherImage(op, *operand, rank);
      inputs.push_back(isLast ? toLast(operand->get()) : operand->get());
      maps.push_back(isLast ? makeLast(map) : map);
    }
    SmallVector<bool> areLast;
    for (OpResult result : op->getResults()) {
      Value init = op.getDpsInitOperand(result.getResultNumber())->get();
      AffineMap map = op.getIndexingMapMatchingResult(result);
      areLast.push_back(isImage(op, result, rank));
      inits.push_back(areLast.back() ? toLast(init) : init);
      maps.push_back(areLast.back() ? makeLast(map) : map);
    }
    auto made = linalg::GenericOp::create(
        b, op.getLoc(), TypeRange(ValueRange(inits)), inputs, inits, maps,
        op.getIteratorTypesArray());
    b.inlineRegionBefore(op.getRegion(), made.getRegion(),
                         made.getRegion().begin());
    b.setInsertionPointAfter(made);
    for (auto [old, result, isLast] :
         llvm::zip_equal(op->getResults(), made->getResults(), areLast)) {
      if (isLast)
        replace(old, result);
      else
        b.replaceAllUsesWith(old, result);
    }
    b.eraseOp(op);
    orderLoops(made, areLast);
  }

  /// Has the loops go over the first image that it computes as that lies.
  void orderLoops(linalg::GenericOp op, ArrayRef<bool> areLast) {
    auto first = llvm::find(areLast, true);
    if (first == areLast.end())
      return;
    AffineMap map =
        op.getIndexingMapMatchingResult(op->getResult(first - areLast.begin()));
    SmallVector<unsigned> order;
    for (AffineExpr expr : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        order.push_back(dim.getPosition());
    for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
      if (!llvm::is_contained(order, loop))
        order.push_back(loop);
    if (llvm::is_sorted(order))
      return;
    FailureOr<linalg::GenericOp> ordered =
        linalg::interchangeGenericOp(b, op, order);
    (void)ordered; // an order of all loops is always possible
  }

  IRRewriter &b;
  llvm::DenseMap<Value, Value> transposed;
  SmallVector<Operation *> made;
};

struct AssignLayoutsPass
    : sardonyx::impl::NVAssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    bool isWorth = false;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<sdx::ConvOp, sdx::MaxPoolOp, linalg::GenericOp,
              tensor::InsertSliceOp, tensor::ExtractSliceOp>(op))
        ops.push_back(op);
      if (auto conv = dyn_cast<sdx::ConvOp>(op))
        isWorth |= hasTilesLast(conv);
    });
    if (!isWorth)
      return;
    IRRewriter rewriter(&getContext());
    LayoutAssigner assigner(rewriter);
    for (Operation *op : ops)
      assigner.visit(op);
    assigner.dropUnused();
  }
};

} // namespace
