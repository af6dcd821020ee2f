//===- ChannelsLast.cpp - Regions of images with channels last ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/ChannelsLast.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"

using namespace mlir;
using namespace sardonyx;

SmallVector<int64_t> sardonyx::orderLast(int64_t rank) {
  SmallVector<int64_t> order = {0};
  for (int64_t dim = 2; dim < rank; ++dim)
    order.push_back(dim);
  order.push_back(1);
  return order;
}

SmallVector<int64_t> sardonyx::orderFirst(int64_t rank) {
  SmallVector<int64_t> order = {0, rank - 1};
  for (int64_t dim = 1; dim < rank - 1; ++dim)
    order.push_back(dim);
  return order;
}

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

Value ChannelsLast::findLast(Value value) {
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

void ChannelsLast::run(Operation *root) {
  SmallVector<Operation *> ops;
  bool isWorthIt = false;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<sdx::ConvOp, sdx::MaxPoolOp, linalg::GenericOp,
            tensor::InsertSliceOp, tensor::ExtractSliceOp,
            tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            linalg::TransposeOp>(op))
      ops.push_back(op);
    if (auto conv = dyn_cast<sdx::ConvOp>(op))
      isWorthIt |= isWorth(conv);
  });
  if (!isWorthIt)
    return;
  for (Operation *op : ops)
    visit(op);
  dropUnused();
}

/// Whether `op` computes an image from pixels that its body picks from images
/// with channels last, all of them of the channel that it computes; these are
/// added to `picks`. Other operands are the same for all channels, or lists of
/// them.
static bool findPicks(linalg::GenericOp op, function_ref<Value(Value)> findLast,
                      SmallVectorImpl<tensor::ExtractOp> &picks) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1)
    return false;
  const int64_t rank = rankOf(op->getResult(0));
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  if (rank < 3 || !map.isProjectedPermutation())
    return false;
  const unsigned channel = map.getDimPosition(1);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap of = op.getMatchingIndexingMap(input);
    if (of.isFunctionOfDim(channel) && of.getNumResults() != 1)
      return false;
  }
  for (auto extract : op.getBody()->getOps<tensor::ExtractOp>()) {
    if (!findLast(extract.getTensor()))
      continue;
    if (rankOf(extract.getTensor()) != rank)
      return false;
    auto index = extract.getIndices()[1].getDefiningOp<linalg::IndexOp>();
    if (!index || index.getDim() != channel)
      return false;
    picks.push_back(extract);
  }
  return !picks.empty();
}

static bool isSameRank(tensor::InsertSliceOp op) {
  return op.getSourceType().getRank() == op.getType().getRank();
}

void ChannelsLast::visit(Operation *op) {
  b.setInsertionPoint(op);
  if (auto conv = dyn_cast<sdx::ConvOp>(op)) {
    if (isWorth(conv) || (findLast(conv.getInput()) && canConvert(conv)))
      convertDense(conv);
  } else if (auto pool = dyn_cast<sdx::MaxPoolOp>(op)) {
    if (findLast(pool.getInput()) && canConvert(pool))
      convertDense(pool);
  } else if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    SmallVector<tensor::ExtractOp> picks;
    if (canPickPixels() && findPicks(generic, findLast, picks))
      convertPicks(generic, picks);
    else if (shouldConvert(generic))
      convert(generic);
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (findLast(insert.getSource()) && isSameRank(insert))
      convert(insert);
  } else if (auto extract = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (findLast(extract.getSource()) &&
        extract.getType().getRank() == extract.getSourceType().getRank())
      convert(extract);
  } else {
    convertBlocks(op);
  }
}

/// Erases the transposes that nobody needs.
void ChannelsLast::dropUnused() {
  for (Operation *op : llvm::reverse(made))
    if (op->use_empty())
      b.eraseOp(op);
}

/// Whether a product, a convolution, a pooling or a reduction may make `value`,
/// into whose kernel operations on its elements go, looking past `depth` of
/// these.
static bool isMadeByRoot(Value value, int64_t depth = 3) {
  Operation *op = value.getDefiningOp();
  while (isa_and_present<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    op = op->getOperand(0).getDefiningOp();
  if (isa_and_present<linalg::GenericOp>(op))
    return depth == 0 ||
           cast<linalg::GenericOp>(op).getNumReductionLoops() != 0 ||
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return isMadeByRoot(operand, depth - 1);
           });
  auto dense = dyn_cast_if_present<sdx::DenseOpInterface>(op);
  return dense && dense.isRoot();
}

/// `op`, whose only result has channels first, with channels last, from the
/// same operands; null where it is more than an operation on elements that were
/// there before: the copy into another order computes them.
Value ChannelsLast::computeLast(linalg::GenericOp op) {
  if (!isElementwiseGeneric(op) || !op.hasPureTensorSemantics() ||
      op->getNumResults() != 1 || op.hasIndexSemantics() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)) ||
      llvm::any_of(
          capturedValues(op),
          [](Value value) { return isa<ShapedType>(value.getType()); }) ||
      llvm::any_of(op.getDpsInputs(),
                   [](Value input) { return isMadeByRoot(input); }))
    return nullptr;
  const SmallVector<int64_t> order = orderLast(op.getNumLoops());
  SmallVector<AffineExpr> loops(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    loops[from] = b.getAffineDimExpr(to);
  AffineMap permutation =
      AffineMap::get(loops.size(), 0, loops, b.getContext());
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands())
    maps.push_back(op.getMatchingIndexingMap(input).compose(permutation));
  maps.push_back(b.getMultiDimIdentityMap(loops.size()));
  Value init = emptyLast(op->getResult(0));
  auto last = linalg::GenericOp::create(
      b, op.getLoc(), TypeRange(init.getType()), op.getDpsInputs(), init, maps,
      op.getIteratorTypesArray());
  b.cloneRegionBefore(op.getRegion(), last.getRegion(),
                      last.getRegion().begin());
  return last.getResult(0);
}

/// `value` with channels last.
Value ChannelsLast::toLast(Value value) {
  if (Value last = findLast(value))
    return last;
  OpBuilder::InsertionGuard guard(b);
  const Location loc = value.getLoc();
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(b, loc, fill.getInputs()[0], emptyLast(value))
        .getResult(0);
  if (value.getDefiningOp<tensor::EmptyOp>())
    return emptyLast(value);
  Value &known = transposed[value];
  if (!known) {
    b.setInsertionPointAfterValue(value);
    if (auto generic = value.getDefiningOp<linalg::GenericOp>())
      known = computeLast(generic);
    if (!known)
      known = createTranspose(b, loc, value, orderLast(rankOf(value)));
    made.push_back(known.getDefiningOp());
  }
  return known;
}

/// An empty tensor of the sizes of `value`, channels last.
Value ChannelsLast::emptyLast(Value value) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, value.getLoc(), value);
  SmallVector<OpFoldResult> last;
  for (int64_t dim : orderLast(sizes.size()))
    last.push_back(sizes[dim]);
  return tensor::EmptyOp::create(b, value.getLoc(), last,
                                 getElementTypeOrSelf(value));
}

/// The transpose of `last` takes the place of `old`.
void ChannelsLast::replace(Value old, Value last) {
  Value first =
      createTranspose(b, old.getLoc(), last, orderFirst(rankOf(last)));
  made.push_back(first.getDefiningOp());
  b.replaceAllUsesWith(old, first);
}

/// Puts the target's operation in the place of `op`.
template <typename OpT> void ChannelsLast::convertDense(OpT op) {
  Value input = toLast(op.getInput()), init = toLast(op.getInit());
  replace(op.getResult(), convert(op, input, init));
  b.eraseOp(op);
}

static SmallVector<OpFoldResult> reorder(ArrayRef<OpFoldResult> values) {
  SmallVector<OpFoldResult> last;
  for (int64_t dim : orderLast(values.size()))
    last.push_back(values[dim]);
  return last;
}

void ChannelsLast::convert(tensor::InsertSliceOp op) {
  Value inserted = tensor::InsertSliceOp::create(
      b, op.getLoc(), toLast(op.getSource()), toLast(op.getDest()),
      reorder(op.getMixedOffsets()), reorder(op.getMixedSizes()),
      reorder(op.getMixedStrides()));
  replace(op.getResult(), inserted);
  b.eraseOp(op);
}

void ChannelsLast::convert(tensor::ExtractSliceOp op) {
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

/// Whether an operand of this rank, most elements of which are different, has
/// its channels before the others.
static bool isOtherImage(linalg::GenericOp op, OpOperand &operand, int64_t rank,
                         bool isLast) {
  return rankOf(operand.get()) == rank && !isLast &&
         op.getMatchingIndexingMap(&operand).isPermutation();
}

/// Whether most images that it reads are there with channels last.
bool ChannelsLast::shouldConvert(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || !canConvert(op))
    return false;
  int64_t last = 0, others = 0, rank = 0;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (!findLast(operand->get()))
      continue;
    if (rank && rank != rankOf(operand->get()))
      return false;
    rank = rankOf(operand->get());
    ++last;
  }
  if (last == 0)
    return false;
  for (OpOperand *operand : op.getDpsInputOperands())
    others +=
        isOtherImage(op, *operand, rank, findLast(operand->get()) != nullptr);
  return last >= others;
}

/// `operand` without the dimensions of size 1 that `map` reads at 0, which the
/// map loses: a list along the channels is one then.
static Value dropUnitDims(OpBuilder &b, Value operand, AffineMap &map) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return operand;
  llvm::SmallBitVector dropped(type.getRank());
  SmallVector<AffineExpr> kept;
  SmallVector<int64_t> shape;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    dropped[i] =
        constant && constant.getValue() == 0 && type.getDimSize(i) == 1;
    if (dropped[i])
      continue;
    kept.push_back(expr);
    shape.push_back(type.getDimSize(i));
  }
  if (dropped.none())
    return operand;
  map = AffineMap::get(map.getNumDims(), 0, kept, b.getContext());
  return tensor::CollapseShapeOp::create(
      b, operand.getLoc(), type.clone(shape), operand,
      kept.empty() ? SmallVector<ReassociationIndices>()
                   : groupWithDropped(dropped));
}

void ChannelsLast::convert(linalg::GenericOp op) {
  int64_t rank = 0;
  for (Value input : op.getDpsInputs())
    if (findLast(input))
      rank = rankOf(input);
  SmallVector<Value> inputs, inits;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    const bool wasLast = findLast(operand->get()) != nullptr;
    const bool isLast = wasLast || isOtherImage(op, *operand, rank, wasLast);
    inputs.push_back(isLast ? toLast(operand->get())
                            : dropUnitDims(b, operand->get(), map));
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

/// Computes an image with channels last from pixels of others.
void ChannelsLast::convertPicks(linalg::GenericOp op,
                                ArrayRef<tensor::ExtractOp> picks) {
  for (tensor::ExtractOp pick : picks) {
    SmallVector<Value> indices;
    for (int64_t dim : orderLast(pick.getIndices().size()))
      indices.push_back(pick.getIndices()[dim]);
    b.modifyOpInPlace(pick, [&] {
      pick.getTensorMutable().assign(findLast(pick.getTensor()));
      pick.getIndicesMutable().assign(indices);
    });
  }
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps.back() = makeLast(maps.back());
  Value init = toLast(op.getDpsInits()[0]);
  auto made = linalg::GenericOp::create(
      b, op.getLoc(), TypeRange(init.getType()), op.getDpsInputs(), init, maps,
      op.getIteratorTypesArray());
  b.inlineRegionBefore(op.getRegion(), made.getRegion(),
                       made.getRegion().begin());
  b.setInsertionPointAfter(made);
  replace(op->getResult(0), made->getResult(0));
  b.eraseOp(op);
  orderLoops(made, {true});
}

/// Has the loops go over the first image that it computes as that lies.
void ChannelsLast::orderLoops(linalg::GenericOp op, ArrayRef<bool> areLast) {
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
