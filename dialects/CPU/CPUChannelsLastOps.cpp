//===- CPUChannelsLastOps.cpp - Images with channels last -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/SDX/SDXDps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using sdx::DenseWork;
using sdx::Effects;
using sdx::getDpsEffects;
using sdx::mayEqual;
using sdx::reifyFromInits;
using sdx::verifyDps;

/// The type of the same elements with channels before the spatial dimensions;
/// their rank has been verified.
static RankedTensorType withChannelsFirst(ShapedType type) {
  SmallVector<int64_t> shape(type.getShape());
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return RankedTensorType::get(shape, type.getElementType());
}

template <typename OpT> static sdx::ConvWindow getWindow(OpT op) {
  return {op.getKernelShape(), op.getStrides(), op.getDilations(),
          op.getPadsBegin(), op.getPadsEnd()};
}

/// What images of all operations here have in common.
template <typename OpT> static LogicalResult verifyImages(OpT op) {
  if (failed(verifyDps(op, op.getDpsInits(), op->getResultTypes())))
    return failure();
  const int64_t rank = op.getInput().getType().getRank();
  if (rank < 3 || rank > 5)
    return op.emitOpError("input must be [N,S...,C] with one to three spatial "
                          "dimensions, got rank ")
           << rank;
  if (op.getInit().getType().getRank() != rank)
    return op.emitOpError("init must have the rank of input, ")
           << rank << ", got " << op.getInit().getType().getRank();
  return success();
}

/// What convolutions have in common: the sizes, and what pads hold.
template <typename OpT> static LogicalResult verifyConv(OpT op, int64_t group) {
  if (failed(verifyImages(op)) ||
      failed(sdx::verifyConvSizes(
          op, withChannelsFirst(op.getInput().getType()),
          withChannelsFirst(op.getInit().getType()), getWindow(op), group)))
    return failure();
  for (ShapedType type : {op.getInput().getType(), op.getInit().getType()})
    if (ShapedType::isDynamic(type.getShape().back()))
      return op.emitOpError("channels of input and init must be known");
  if (!op.getWeights().getType().hasStaticShape())
    return op.emitOpError("the sizes of the weights must be known");
  if (op.getPadding() > UINT8_MAX)
    return op.emitOpError("'padding' must be 0 to 255, got ")
           << int64_t(op.getPadding());
  return success();
}

template <typename OpT>
static DenseWork countFlopsOfDepth(OpT op, int64_t depth) {
  DenseWork work{2};
  work.multiplyAllDims(op.getInit());
  work.factor *= depth;
  return work;
}

//===----------------------------------------------------------------------===//
// NarrowConvOp
//===----------------------------------------------------------------------===//

bool NarrowConvOp::isRoot() { return true; }
bool NarrowConvOp::isContraction() { return true; }
StringRef NarrowConvOp::getKernelName() { return "conv"; }
std::string NarrowConvOp::describeForm() {
  return sdx::describeConv(getWindow(*this), getGroup()) +
         (getPacking().isOfBytes() ? " of bytes" : " of bf16");
}
DenseWork NarrowConvOp::countFlops() {
  return countFlopsOfDepth(*this, getDepth());
}

LogicalResult NarrowConvOp::verify() {
  if (failed(verifyConv(*this, getGroup())))
    return failure();
  if (getPacking().getDepthGroup() == 1)
    return emitOpError("'packing' must be of i8, i16 or bf16");
  Builder b(getContext());
  const bool areBytes = getPacking().isOfBytes();
  Type operand = getPacking().getStoredType();
  Type sum = areBytes ? Type(b.getI32Type()) : b.getF32Type();
  if (getInput().getType().getElementType() != operand ||
      getWeights().getType().getElementType() != operand ||
      getInit().getType().getElementType() != sum)
    return emitOpError("input and weights must be of ")
           << operand << ", as 'packing' says, and init of " << sum;
  if (!areBytes && getPadding() != 0)
    return emitOpError("'padding' of bf16 must be 0");
  ArrayRef<int64_t> weights = getWeights().getType().getShape();
  const int64_t panels = int64_t(getGroup()) *
                         llvm::divideCeil(getGroupFilters(), getPanelWidth());
  const int64_t groups =
      llvm::divideCeil(getDepth(), getPacking().getDepthGroup());
  if (weights.size() != 3 || weights[0] != panels || weights[1] < groups ||
      weights[2] != getPacking().getRowSize())
    return emitOpError("weights must be [")
           << panels << ",Q," << getPacking().getRowSize() << "], Q at least "
           << groups << ", got " << getWeights().getType();
  return success();
}

void NarrowConvOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
NarrowConvOp::reifyResultShapes(OpBuilder &b,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// DepthwiseNarrowConvOp
//===----------------------------------------------------------------------===//

bool DepthwiseNarrowConvOp::isRoot() { return true; }
bool DepthwiseNarrowConvOp::isContraction() { return true; }
StringRef DepthwiseNarrowConvOp::getKernelName() { return "conv"; }
std::string DepthwiseNarrowConvOp::describeForm() {
  return sdx::describeConv(getWindow(*this), /*group=*/1) +
         (isOfBytes() ? " of single channels of bytes"
                      : " of single channels of bf16");
}
DenseWork DepthwiseNarrowConvOp::countFlops() {
  return countFlopsOfDepth(*this, countTaps());
}

LogicalResult DepthwiseNarrowConvOp::verify() {
  if (failed(verifyConv(*this, /*group=*/1)))
    return failure();
  const int64_t channels = getInput().getType().getShape().back();
  if (getInit().getType().getShape().back() != channels)
    return emitOpError("init must have the channels of input, ") << channels;
  const bool areBytes = isOfBytes();
  Type taps = getWeights().getType().getElementType();
  Type sum = getInit().getType().getElementType();
  if (areBytes ? taps.isBF16() || !sum.isInteger(32)
               : !taps.isBF16() || !sum.isF32())
    return emitOpError("input, weights and init must be of i8, i8 or i16 and "
                       "i32, or of bf16, bf16 and f32");
  if (!areBytes && getPadding() != 0)
    return emitOpError("'padding' of bf16 must be 0");
  const int64_t size = getLineGroup();
  const int64_t groups = llvm::divideCeil(countLines(), size);
  const int64_t shape[] = {groups * getLineTaps(), size * channels};
  if (getWeights().getType().getShape() != ArrayRef(shape))
    return emitOpError("weights must be [")
           << shape[0] << "," << shape[1] << "], got "
           << getWeights().getType();
  return success();
}

void DepthwiseNarrowConvOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
DepthwiseNarrowConvOp::reifyResultShapes(OpBuilder &b,
                                         ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// ChannelsLastMaxPoolOp
//===----------------------------------------------------------------------===//

bool ChannelsLastMaxPoolOp::isRoot() { return true; }
StringRef ChannelsLastMaxPoolOp::getKernelName() { return "max_pool"; }
std::string ChannelsLastMaxPoolOp::describeForm() {
  return sdx::describeWindow("max pool", getKernelShape(), getStrides()) +
         " of bytes";
}
DenseWork ChannelsLastMaxPoolOp::countFlops() {
  DenseWork work{1};
  work.multiplyAllDims(getInit());
  work.factor *= ShapedType::getNumElements(getKernelShape());
  return work;
}

LogicalResult ChannelsLastMaxPoolOp::verify() {
  if (failed(verifyImages(*this)))
    return failure();
  ArrayRef<int64_t> input = getInput().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (!mayEqual(input.front(), init.front()) ||
      !mayEqual(input.back(), init.back()))
    return emitOpError("init must have the images and channels of input");
  if (getInput().getType().getElementType() !=
      getInit().getType().getElementType())
    return emitOpError("input and init must both be of f32, or both of i8");
  return sdx::verifyWindow(*this, getNumSpatialDims(),
                           {{"kernel_shape", getKernelShape(), 1},
                            {"strides", getStrides(), 1},
                            {"pads_begin", getPadsBegin(), 0}});
}

void ChannelsLastMaxPoolOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
ChannelsLastMaxPoolOp::reifyResultShapes(OpBuilder &b,
                                         ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}
