//===- CPUConvOps.cpp - Packed convolutions -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPUVerify.h"
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
                   Value weights, Value init, ArrayRef<int64_t> kernelShape,
                   ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                   ArrayRef<int64_t> padsBegin, ArrayRef<int64_t> padsEnd,
                   int64_t group, bool exact) {
  build(b, state, resultTypes(init), input, weights, /*scales=*/Value(), init,
        b.getDenseI64ArrayAttr(kernelShape), b.getDenseI64ArrayAttr(strides),
        b.getDenseI64ArrayAttr(dilations), b.getDenseI64ArrayAttr(padsBegin),
        b.getDenseI64ArrayAttr(padsEnd), b.getI64IntegerAttr(group),
        exact ? b.getUnitAttr() : UnitAttr(), /*winograd=*/IntegerAttr());
}

/// The values of K that a filter becomes: those of `kernel`, or as many as
/// F(m x m, 3 x 3) has for m = `winograd`.
static FailureOr<int64_t> countTaps(Operation *op, ArrayRef<int64_t> kernel,
                                    int64_t group,
                                    std::optional<int64_t> winograd) {
  if (!winograd)
    return std::accumulate(kernel.begin(), kernel.end(), int64_t(1),
                           std::multiplies<int64_t>());
  if (*winograd != 2 && *winograd != 4)
    return op->emitOpError("'winograd' must be 2 or 4, got ") << *winograd;
  if (group != 1 || kernel != ArrayRef<int64_t>({3, 3}))
    return op->emitOpError("'winograd' is for kernels of 3x3 and one group");
  return cpu::getWinograd(*winograd).taps();
}

/// How long a filter of `channels` channels is in packed weights where each has
/// become `taps` values.
static int64_t countPacked(ShapedType weights, int64_t channels, int64_t taps) {
  return taps * (weights.getElementType().isBF16()
                     ? llvm::divideCeil(channels, kPartBlock)
                     : channels);
}

/// What is wrong with packed weights of a convolution and their scales, if they
/// have some. A filter has become `taps` values.
static LogicalResult verifyShortWeights(Operation *op, ShapedType weights,
                                        Value scales,
                                        std::optional<int64_t> winograd,
                                        int64_t taps) {
  if (weights.getElementType().isF32()) {
    if (scales)
      return op->emitOpError("has scales but weights of f32");
    return success();
  }
  if (weights.getElementType().isBF16()) {
    constexpr int64_t kStep = kWeightParts * kPartBlock * kPartBlock;
    if (scales || winograd)
      return op->emitOpError("weights of bf16 are for neither scales nor "
                             "'winograd'");
    if (weights.getDimSize(3) != kStep)
      return op->emitOpError("weights of bf16 must have ")
             << kStep << " in a step, got " << weights.getDimSize(3);
    return success();
  }
  if (!scales || !winograd)
    return op->emitOpError("weights of i8 must have scales and 'winograd'");
  if (!weights.hasStaticShape())
    return op->emitOpError("has scales and open sizes of weights");
  int64_t panels = weights.getDimSize(1) * taps, bytes = weights.getDimSize(3);
  if (bytes % 3 || weights.getDimSize(2) % taps ||
      cast<ShapedType>(scales.getType()).getShape() !=
          ArrayRef<int64_t>({panels, 1, 1, bytes / 3}))
    return op->emitOpError("scales must be ")
           << panels << "x1x1x" << bytes / 3 << " where weights have "
           << weights.getDimSize(1) << " blocks of " << bytes << " bytes";
  return verifyShortPanels(op, bytes / 3);
}

const Winograd *ConvOp::getAlgorithm() {
  return getWinograd() ? &cpu::getWinograd(*getWinograd(), getStrides().front())
                       : nullptr;
}

LogicalResult ConvOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> weights = getWeights().getType().getShape();
  if (weights.size() != 4)
    return emitOpError("weights must be packed, [G,Ob,K,Rt], got rank ")
           << weights.size();
  if (ShapedType::isDynamic(weights[3]) || weights[3] <= 0)
    return emitOpError("the last dimension of weights, the block of output "
                       "channels, must be static and positive");
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
      countTaps(*this, getKernelShape(), group, getWinograd());
  if (failed(taps))
    return failure();
  if (getWinograd()) {
    int64_t stride = getStrides().front();
    auto areAll = [](ArrayRef<int64_t> sizes, int64_t size) {
      return llvm::all_of(sizes, [&](int64_t s) { return s == size; });
    };
    if (!areAll(getDilations(), 1))
      return emitOpError("'winograd' is for no dilations");
    if (stride > 2 || !areAll(getStrides(), stride))
      return emitOpError("'winograd' is for strides of 1 or of 2");
  }
  if (failed(verifyShortWeights(*this, getWeights().getType(), getScales(),
                                getWinograd(), *taps)))
    return failure();
  if (!ShapedType::isDynamic(channels)) {
    int64_t depth =
        countPacked(getWeights().getType(), channels / group, *taps);
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
                              Value init) {
  build(b, state, resultTypes(init), source, /*scales=*/Value(), init,
        /*winograd=*/IntegerAttr(),
        /*winograd_stride=*/IntegerAttr());
}

const Winograd *PackConvWeightsOp::getAlgorithm() {
  return getWinograd() ? &cpu::getWinograd(*getWinograd(),
                                           getWinogradStride().value_or(1))
                       : nullptr;
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
  if (init.size() != 4)
    return emitOpError("init must be [G,Ob,K,Rt], got rank ") << init.size();
  if (ShapedType::isDynamic(init[3]) || init[3] <= 0)
    return emitOpError("the last dimension of init, the block of output "
                       "channels, must be static and positive");
  int64_t group = getGroup();
  if (group == 0)
    return emitOpError("init has no groups");
  if (std::optional<int64_t> stride = getWinogradStride())
    if (!getWinograd() || (*stride != 1 && *stride != 2))
      return emitOpError("'winograd_stride' must be 1 or 2, and is for "
                         "'winograd'; got ")
             << *stride;
  FailureOr<int64_t> taps = ShapedType::kDynamic;
  if (getWinograd() || !ShapedType::isDynamicShape(source.drop_front(2)))
    taps = countTaps(*this, source.drop_front(2), group, getWinograd());
  if (failed(taps) ||
      failed(verifyShortWeights(*this, getInit().getType(), getScales(),
                                getWinograd(), *taps)))
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
      !mayEqual(countPacked(getInit().getType(), source[1], *taps), init[2]))
    return emitOpError("init has K = ")
           << init[2] << "; "
           << countPacked(getInit().getType(), source[1], *taps) << " expected";
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
