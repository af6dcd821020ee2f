//===- NVConv.cpp - Convolutions and pools with channels last -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/NV/NV.h"
#include "dialects/SDX/SDXDps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

/// The type of the same elements with channels before the spatial dimensions.
static RankedTensorType withChannelsFirst(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return RankedTensorType::get(shape, type.getElementType());
}

/// What a convolution and a pool have in common.
template <typename OpT> static LogicalResult verifyImage(OpT op) {
  RankedTensorType input = op.getInput().getType(),
                   init = op.getInit().getType();
  if (op.getResult().getType() != init)
    return op.emitOpError("the result is of the type of init, ") << init;
  if (input.getRank() < 3 || input.getRank() > 5)
    return op.emitOpError("input must be [N,S...,C] with one to three spatial "
                          "dimensions, got rank ")
           << input.getRank();
  if (init.getRank() != input.getRank())
    return op.emitOpError("init must be of the rank of input, ")
           << input.getRank() << ", got " << init.getRank();
  return success();
}

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

bool ConvOp::isRoot() { return true; }
bool ConvOp::isContraction() { return true; }
StringRef ConvOp::getKernelName() { return "conv"; }

std::string ConvOp::describeForm() {
  return sdx::describeConv({getKernelShape(), getStrides(), getDilations(),
                            getPadsBegin(), getPadsEnd()},
                           getGroup());
}

sdx::DenseWork ConvOp::countFlops() {
  sdx::DenseWork work{2};
  work.multiplyAllDims(getInit());
  for (int64_t size : getWeights().getType().getShape().drop_front())
    work.factor *= ShapedType::isDynamic(size) ? 0 : size;
  return work;
}

LogicalResult ConvOp::verify() {
  if (failed(verifyImage(*this)))
    return failure();
  RankedTensorType input = getInput().getType(),
                   weights = getWeights().getType(), init = getInit().getType();
  if (weights.getRank() != input.getRank() || !weights.hasStaticShape())
    return emitOpError("weights must be [OC,k...,C/group], of the rank of "
                       "input, all sizes known, got ")
           << weights;
  if (failed(sdx::verifyConvSizes(
          *this, withChannelsFirst(input), withChannelsFirst(init),
          {getKernelShape(), getStrides(), getDilations(), getPadsBegin(),
           getPadsEnd()},
          getGroup())))
    return failure();
  const auto group = static_cast<int64_t>(getGroup());
  const int64_t filters = weights.getDimSize(0),
                channels = weights.getShape().back() * group;
  if (filters % group)
    return emitOpError("weights have ")
           << filters << " filters, which 'group' = " << group
           << " does not divide";
  if (!sdx::mayEqual(filters, init.getShape().back()) ||
      !sdx::mayEqual(channels, input.getShape().back()))
    return emitOpError("weights of ")
           << filters << " filters and " << channels
           << " channels do not fit to input and init";
  return success();
}

LogicalResult ConvOp::reifyResultShapes(OpBuilder &b,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return sdx::reifyFromInits(cast<DestinationStyleOpInterface>(getOperation()),
                             b, shapes);
}

//===----------------------------------------------------------------------===//
// MaxPoolOp
//===----------------------------------------------------------------------===//

bool MaxPoolOp::isRoot() { return true; }
bool MaxPoolOp::isContraction() { return false; }
StringRef MaxPoolOp::getKernelName() { return "max_pool"; }

std::string MaxPoolOp::describeForm() {
  return sdx::describeWindow("max pool", getKernelShape(), getStrides());
}

sdx::DenseWork MaxPoolOp::countFlops() {
  sdx::DenseWork work{1};
  work.multiplyAllDims(getInit());
  for (int64_t size : getKernelShape())
    work.factor *= size;
  return work;
}

LogicalResult MaxPoolOp::verify() {
  if (failed(verifyImage(*this)))
    return failure();
  if (getInput().getType().getElementType() !=
          getInit().getType().getElementType() ||
      !isa<FloatType>(getInit().getType().getElementType()))
    return emitOpError("input and init are of the same floats");
  return sdx::verifyWindow(*this, getNumSpatialDims(),
                           {{"kernel_shape", getKernelShape(), 1},
                            {"strides", getStrides(), 1},
                            {"pads_begin", getPadsBegin(), 0}});
}

LogicalResult
MaxPoolOp::reifyResultShapes(OpBuilder &b,
                             ReifiedRankedShapedTypeDims &shapes) {
  return sdx::reifyFromInits(cast<DestinationStyleOpInterface>(getOperation()),
                             b, shapes);
}
