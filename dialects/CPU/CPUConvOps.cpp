//===- CPUConvOps.cpp - Packed convolutions -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/CPU/Winograd.h"
#include "dialects/SDX/SDXDps.h"

#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using sdx::Effects;
using sdx::getDpsEffects;
using sdx::mayEqual;
using sdx::mayFit;
using sdx::reifyFromInits;
using sdx::resultTypes;
using sdx::verifyDps;

//===----------------------------------------------------------------------===//
// ConvOp
//===----------------------------------------------------------------------===//

void ConvOp::build(OpBuilder &b, OperationState &state, Value input,
                   Value weights, Value init, FiltersAttr filters,
                   ArrayRef<int64_t> kernelShape, ArrayRef<int64_t> strides,
                   ArrayRef<int64_t> dilations, ArrayRef<int64_t> padsBegin,
                   ArrayRef<int64_t> padsEnd, int64_t group, bool exact) {
  build(b, state, resultTypes(init), input, weights, init, filters,
        b.getDenseI64ArrayAttr(kernelShape), b.getDenseI64ArrayAttr(strides),
        b.getDenseI64ArrayAttr(dilations), b.getDenseI64ArrayAttr(padsBegin),
        b.getDenseI64ArrayAttr(padsEnd), b.getI64IntegerAttr(group),
        exact ? b.getUnitAttr() : UnitAttr());
}

/// The values of K that a filter becomes: those of `kernel`, or as many as
/// Winograd's algorithm has.
static FailureOr<int64_t> countTaps(Operation *op, ArrayRef<int64_t> kernel,
                                    int64_t group, FiltersAttr filters) {
  const Winograd *algorithm = filters.getAlgorithm();
  if (!algorithm)
    return std::accumulate(kernel.begin(), kernel.end(), int64_t(1),
                           std::multiplies<int64_t>());
  if (group != 1 || kernel != ArrayRef<int64_t>({3, 3}))
    return op->emitOpError("'winograd' is for kernels of 3x3 and one group");
  return algorithm->taps();
}

/// How long a filter of `channels` channels is in packed weights where each has
/// become `taps` values.
static int64_t countPacked(FiltersAttr filters, int64_t channels,
                           int64_t taps) {
  return taps * (filters.isSplit() ? llvm::divideCeil(channels, kBf16x2Block)
                                   : channels);
}

/// What is wrong with the element type and the last dimension of packed
/// filters.
static LogicalResult verifyFilters(Operation *op, StringRef what,
                                   ShapedType type, FiltersAttr filters) {
  if (type.getRank() != 4)
    return op->emitOpError()
           << what << " must be packed, [G,Ob,K,Rt], got rank "
           << type.getRank();
  Builder b(op->getContext());
  Type element = filters.isSplit() ? Type(b.getBF16Type()) : b.getF32Type();
  int64_t last = filters.isSplit() ? kBf16x2Terms * kBf16x2Block * kBf16x2Block
                                   : filters.getRows();
  if (type.getElementType() != element || type.getDimSize(3) != last)
    return op->emitOpError()
           << what << " must be of " << element << " and have " << last
           << " in the last dimension for " << filters << ", got " << type;
  return success();
}

LogicalResult ConvOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> weights = getWeights().getType().getShape();
  if (failed(verifyFilters(*this, "weights", getWeights().getType(),
                           getFilters())))
    return failure();
  int64_t group = getGroup();
  ShapedType inputType = getInput().getType(), initType = getInit().getType();
  if (failed(
          sdx::verifyConvSizes(*this, inputType, initType,
                               {getKernelShape(), getStrides(), getDilations(),
                                getPadsBegin(), getPadsEnd()},
                               group)))
    return failure();
  int64_t channels = inputType.getDimSize(1), filters = initType.getDimSize(1);
  if (!mayEqual(weights[0], group))
    return emitOpError("weights have ")
           << weights[0] << " groups but 'group' is " << group;
  FailureOr<int64_t> taps =
      countTaps(*this, getKernelShape(), group, getFilters());
  if (failed(taps))
    return failure();
  if (getAlgorithm()) {
    auto areAll = [](ArrayRef<int64_t> sizes, int64_t size) {
      return llvm::all_of(sizes, [&](int64_t s) { return s == size; });
    };
    if (!areAll(getDilations(), 1))
      return emitOpError("'winograd' is for no dilations");
    if (!areAll(getStrides(), getFilters().getStride()))
      return emitOpError("filters are transformed for strides of ")
             << getFilters().getStride();
  }
  if (!ShapedType::isDynamic(channels)) {
    int64_t depth = countPacked(getFilters(), channels / group, *taps);
    if (!mayEqual(depth, weights[2]))
      return emitOpError("weights have K = ")
             << weights[2] << "; " << depth << " expected";
  }
  if (!ShapedType::isDynamic(filters) &&
      !mayFit(filters / group, weights[1], getBlockRows()))
    return emitOpError("init has ")
           << filters / group << " channels a group but weights only "
           << weights[1] << " blocks of " << getBlockRows();
  return success();
}

void ConvOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult ConvOp::reifyResultShapes(OpBuilder &b,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// PackConvWeightsOp
//===----------------------------------------------------------------------===//

void PackConvWeightsOp::build(OpBuilder &b, OperationState &state, Value source,
                              Value init, FiltersAttr filters) {
  build(b, state, resultTypes(init), source, init, filters);
}

LogicalResult PackConvWeightsOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> source = getSource().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (source.size() < 3 || source.size() > 5)
    return emitOpError("source must be [OC,C/G,k...] with one to three kernel "
                       "dimensions, got rank ")
           << source.size();
  if (failed(verifyFilters(*this, "init", getInit().getType(), getFilters())))
    return failure();
  int64_t group = getGroup();
  if (group == 0)
    return emitOpError("init has no groups");
  FailureOr<int64_t> taps = ShapedType::kDynamic;
  if (getAlgorithm() || !ShapedType::isDynamicShape(source.drop_front(2)))
    taps = countTaps(*this, source.drop_front(2), group, getFilters());
  if (failed(taps))
    return failure();
  if (!ShapedType::isDynamic(source[0]) && !ShapedType::isDynamic(group)) {
    if (source[0] % group)
      return emitOpError("source has ")
             << source[0] << " output channels, which the " << group
             << " groups of init do not divide";
    int64_t blocks = llvm::divideCeil(source[0] / group, getBlockRows());
    if (!mayEqual(blocks, init[1]))
      return emitOpError("init has ")
             << init[1] << " blocks; " << blocks << " expected";
  }
  if (!ShapedType::isDynamic(*taps) && !ShapedType::isDynamic(source[1]) &&
      !mayEqual(countPacked(getFilters(), source[1], *taps), init[2]))
    return emitOpError("init has K = ")
           << init[2] << "; " << countPacked(getFilters(), source[1], *taps)
           << " expected";
  return success();
}

void PackConvWeightsOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
}

LogicalResult
PackConvWeightsOp::reifyResultShapes(OpBuilder &b,
                                     ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}
