//===- SplitDepth.cpp - Three dimensions as such over two -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/SplitConvs.h"
#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSPLITDEPTH
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The dimension of images and results that is split.
static constexpr int64_t kDepth = 2;

/// Whether slices of the convolution are such that Winograd's algorithm
/// computes: all else has as many products in three dimensions as in two.
static bool maySplit(sdx::ConvOp op) {
  constexpr int64_t kMinChannels = 16, kMinSide = 4, kSide = 3;
  if (!mayTransform(op, 3))
    return false;
  for (int64_t d : {1, 2})
    if (op.getKernelShape()[d] != kSide || op.getStrides()[d] != 1 ||
        op.getInit().getType().getDimSize(2 + d) < kMinSide)
      return false;
  ArrayRef<int64_t> weights = op.getWeights().getType().getShape();
  return weights[0] >= kMinChannels && weights[1] >= kMinChannels;
}

/// `tensor` with its second and third dimension exchanged, into `init`.
static Value exchange(OpBuilder &b, Location loc, Value tensor, Value init) {
  return linalg::TransposeOp::create(b, loc, tensor, init,
                                     ArrayRef<int64_t>{0, 2, 1, 3, 4})
      ->getResult(0);
}

static SmallVector<OpFoldResult> exchangedSizes(OpBuilder &b, Location loc,
                                                Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  std::swap(sizes[1], sizes[2]);
  return sizes;
}

namespace {

/// Positions along one dimension of a tensor.
struct Slice {
  Slice(OpBuilder &b, Location loc, Value tensor, int64_t dim,
        OpFoldResult first, int64_t size, int64_t step = 1)
      : sizes(tensor::getMixedSizes(b, loc, tensor)),
        offsets(sizes.size(), b.getIndexAttr(0)),
        strides(sizes.size(), b.getIndexAttr(1)) {
    offsets[dim] = first;
    sizes[dim] = b.getIndexAttr(size);
    strides[dim] = b.getIndexAttr(step);
  }

  Value extract(OpBuilder &b, Location loc, Value tensor) const {
    return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes,
                                          strides);
  }
  Value insert(OpBuilder &b, Location loc, Value part, Value tensor) const {
    return tensor::InsertSliceOp::create(b, loc, part, tensor, offsets, sizes,
                                         strides);
  }

  SmallVector<OpFoldResult> sizes, offsets, strides;
};

} // namespace

/// Images [N,C,D,H,W] as [N,D,C,H,W], with their pads along D in place.
static Value spreadImages(OpBuilder &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  Value input = op.getInput();
  const int64_t before = op.getPadsBegin()[0], behind = op.getPadsEnd()[0],
                depth = op.getInput().getType().getDimSize(kDepth);
  SmallVector<OpFoldResult> sizes = exchangedSizes(b, loc, input);
  sizes[1] = b.getIndexAttr(before + depth + behind);
  Value images = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  auto fill = [&](int64_t first, int64_t size) {
    if (size == 0)
      return;
    Slice pads(b, loc, images, 1, b.getIndexAttr(first), size);
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    Value filled =
        linalg::FillOp::create(b, loc, zero, pads.extract(b, loc, images))
            .getResult(0);
    images = pads.insert(b, loc, filled, images);
  };
  fill(0, before);
  fill(before + depth, behind);
  if (before == 0 && behind == 0)
    return exchange(b, loc, input, images);
  Slice inner(b, loc, images, 1, b.getIndexAttr(before), depth);
  return inner.insert(
      b, loc, exchange(b, loc, input, inner.extract(b, loc, images)), images);
}

/// Weights [F,C,k,3,3] as [F,k*C,3,3].
static Value joinWeights(OpBuilder &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  Value weights = op.getWeights();
  Value empty = tensor::EmptyOp::create(b, loc, exchangedSizes(b, loc, weights),
                                        b.getF32Type());
  return tensor::CollapseShapeOp::create(
      b, loc, exchange(b, loc, weights, empty),
      SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
}

/// Position `at` of dimension `dim`, which disappears.
static Value extractAt(OpBuilder &b, Location loc, Value tensor, int64_t dim,
                       OpFoldResult at) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  const Slice slice(b, loc, tensor, dim, at, 1);
  return tensor::ExtractSliceOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      slice.offsets, slice.sizes, slice.strides);
}

/// What else is to be computed of elements of the convolution's result where
/// that is read, in the order of computing.
static SmallVector<linalg::GenericOp> findEpilogue(sdx::ConvOp op) {
  SmallVector<linalg::GenericOp> epilogue;
  for (Value result = op->getResult(0); result.hasOneUse();
       result = epilogue.back().getResult(0)) {
    OpOperand &use = *result.use_begin();
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || !isElementwiseGeneric(generic) ||
        generic.getNumResults() != 1 || !generic.isDpsInput(&use) ||
        !generic.getMatchingIndexingMap(&use).isIdentity() ||
        !generic.getIndexingMapsArray().back().isIdentity() ||
        !llvm::all_of(generic.getIndexingMapsArray(), [](AffineMap map) {
          return map.isProjectedPermutation();
        }))
      break;
    epilogue.push_back(generic);
  }
  return epilogue;
}

/// What `generic` computes at position `at` of the depth, into `init`; `part`
/// is the slice there of `result`.
static Value emitSlice(OpBuilder &b, linalg::GenericOp generic, Value result,
                       Value part, Value init, Value at) {
  Location loc = generic.getLoc();
  const unsigned rank = generic.getNumLoops() - 1;
  // Dimensions behind the depth move up by one.
  SmallVector<AffineExpr> dims;
  for (unsigned d = 0; d <= rank; ++d)
    dims.push_back(b.getAffineDimExpr(d > kDepth ? d - 1 : d));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (OpOperand *operand : generic.getDpsInputOperands()) {
    AffineMap map = generic.getMatchingIndexingMap(operand);
    Value value = operand->get();
    if (auto dim = map.getResultPosition(b.getAffineDimExpr(kDepth))) {
      value = value == result ? part : extractAt(b, loc, value, *dim, at);
      map = map.dropResult(*dim);
    }
    inputs.push_back(value);
    maps.push_back(map.replaceDimsAndSymbols(dims, {}, rank, 0));
  }
  maps.push_back(b.getMultiDimIdentityMap(rank));
  auto sliced = linalg::GenericOp::create(
      b, loc, TypeRange{init.getType()}, inputs, ValueRange{init}, maps,
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel));
  IRMapping mapping;
  generic.getRegion().cloneInto(&sliced.getRegion(), mapping);
  sliced.getRegion().walk([&](linalg::IndexOp index) {
    if (index.getDim() < kDepth)
      return;
    if (index.getDim() > kDepth)
      return index.setDim(index.getDim() - 1);
    index.replaceAllUsesWith(at);
    index.erase();
  });
  return sliced.getResult(0);
}

/// What the sums of the slice `at` are added onto; `init` is a slice that they
/// may be written to.
static Value getStart(OpBuilder &b, sdx::ConvOp op, Value init, Value at) {
  if (auto fill = op.getInit().getDefiningOp<linalg::FillOp>())
    return linalg::FillOp::create(b, op.getLoc(), fill.value(), init)
        .getResult(0);
  return extractAt(b, op.getLoc(), op.getInit(), kDepth, at);
}

/// Computes the slices of `op`, and of what is done with their elements, one
/// after another.
static void splitDepth(IRRewriter &b, sdx::ConvOp op) {
  Location loc = op.getLoc();
  const SmallVector<linalg::GenericOp> epilogue = findEpilogue(op);
  Operation *last = epilogue.empty() ? op.getOperation() : epilogue.back();
  b.setInsertionPoint(last);
  Value images = spreadImages(b, op), weights = joinWeights(b, op);
  const int64_t taps = op.getKernelShape()[0], stride = op.getStrides()[0];
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value).getResult();
  };
  auto type = cast<RankedTensorType>(last->getResult(0).getType());
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, op.getInit()),
      type.getElementType());
  const int64_t depth = type.getDimSize(kDepth);
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(depth), index(1), empty);
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar(), results = loop.getRegionIterArg(0);
  Value first = at;
  if (stride != 1)
    first = arith::MulIOp::create(b, loc, at, index(stride));
  Value window = Slice(b, loc, images, 1, first, taps, op.getDilations()[0])
                     .extract(b, loc, images);
  window = tensor::CollapseShapeOp::create(
      b, loc, window, SmallVector<ReassociationIndices>{{0}, {1, 2}, {3}, {4}});
  auto makeInit = [&](Operation *producer) -> Value {
    if (producer == last)
      return extractAt(b, loc, results, kDepth, at);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, loc, op.getInit());
    sizes.erase(sizes.begin() + kDepth);
    return tensor::EmptyOp::create(
        b, loc, sizes, getElementTypeOrSelf(producer->getResult(0).getType()));
  };
  auto ofPlane = [](ArrayRef<int64_t> values) { return values.drop_front(); };
  Value start = getStart(b, op, makeInit(op), at);
  Value part =
      sdx::ConvOp::create(b, loc, window, weights, start,
                          ofPlane(op.getStrides()), ofPlane(op.getDilations()),
                          ofPlane(op.getPadsBegin()), ofPlane(op.getPadsEnd()),
                          /*group=*/1)
          ->getResult(0);
  Value whole = op->getResult(0);
  for (linalg::GenericOp generic : epilogue) {
    part = emitSlice(b, generic, whole, part, makeInit(generic), at);
    whole = generic.getResult(0);
  }
  const Slice slice(b, loc, results, kDepth, at, 1);
  Value inserted = slice.insert(b, loc, part, results);
  scf::YieldOp::create(b, loc, inserted);
  b.replaceOp(last, loop);
  for (linalg::GenericOp generic : llvm::reverse(epilogue))
    if (generic != last)
      b.eraseOp(generic);
  if (op != last)
    b.eraseOp(op);
}

namespace {

struct SplitDepthPass : sardonyx::impl::CPUSplitDepthBase<SplitDepthPass> {
  void runOnOperation() override {
    splitConvs(getOperation(), maySplit, splitDepth);
  }
};

} // namespace
