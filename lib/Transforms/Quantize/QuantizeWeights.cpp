//===- QuantizeWeights.cpp - Integers that need no data -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizeModel.h"

using namespace mlir;
using namespace sardonyx;

/// The scale by which magnitudes of at most `largest` become integers of at
/// most `most`; one of zeros is as small as stays a normal number.
static Value getScale(WeightMath &math, Value largest, double most) {
  auto element = cast<FloatType>(
      cast<RankedTensorType>(largest.getType()).getElementType());
  const double tiny = element.isF16() ? 0x1p-10 : 0x1p-100;
  return math.binary<onnx::DivOp>(
      math.larger(largest, math.scalar(largest, tiny)),
      math.scalar(largest, most));
}

bool sardonyx::quantizeDynamically(const WeightedOp &layer) {
  // The sums of so many products are below 2^31.
  constexpr int64_t kMostDepth = 1 << 16;
  Operation *op = layer.op;
  Value x = op->getOperand(0);
  auto type = dyn_cast<RankedTensorType>(x.getType());
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto gemm = dyn_cast<onnx::GemmOp>(op);
  if (!isa<onnx::MatMulOp, onnx::GemmOp>(op) || !type || !result ||
      !type.getElementType().isF32() || !layer.type.getElementType().isF32() ||
      layer.type.getDimSize(layer.depthDim) > kMostDepth ||
      (gemm && gemm.getTransA()))
    return false;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  WeightMath math(b);
  Value weight = layer.weight->get();
  if (layer.outputDim == 0)
    weight = math.transpose(weight, {1, 0});
  const int64_t columns = layer.countOutputs();
  Value scale =
      math.reshape(getScale(math, math.largest(weight, {0}), 127), {columns});
  Value zero = math.zeros(b.getI8Type(), {columns});
  Value bytes = math.quantize(weight, scale, zero, b.getI8Type(), /*axis=*/1);
  Type ui8 = b.getIntegerType(8, /*isSigned=*/false);
  auto rounded = onnx::DynamicQuantizeLinearOp::create(
      b, type.clone(ui8), RankedTensorType::get({}, b.getF32Type()),
      RankedTensorType::get({}, ui8), x);
  Value sums = onnx::MatMulIntegerOp::create(b, result.clone(b.getI32Type()),
                                             rounded.getY(), bytes,
                                             rounded.getYZeroPoint(), nullptr);
  if (gemm && !gemm.getAlpha().isExactlyValue(1))
    scale = math.binary<onnx::MulOp>(
        scale, math.scalar(scale, gemm.getAlpha().convertToDouble()));
  Value both = math.binary<onnx::MulOp>(rounded.getYScale(), scale);
  Value floats = onnx::CastOp::create(b, result, sums, "up", 1, /*to=*/1);
  Value product = onnx::MulOp::create(b, result, floats, both);
  if (Value bias = layer.getBias()) {
    if (!gemm.getBeta().isExactlyValue(1))
      bias = onnx::MulOp::create(
          b, bias.getType(), bias,
          math.scalar(scale, gemm.getBeta().convertToDouble()));
    product = onnx::AddOp::create(b, result, product, bias);
  }
  if (StringRef name = getResultName(op->getResult(0)); !name.empty())
    setResultName(product, name);
  op->getResult(0).replaceAllUsesWith(product);
  op->erase();
  return true;
}

bool sardonyx::quantizeWeights(const WeightedOp &layer, unsigned bits,
                               int64_t block) {
  const int64_t depth = layer.type.getDimSize(layer.depthDim);
  const bool hasWindow = layer.type.getRank() > 2;
  if (hasWindow && layer.groups > 1 &&
      isa<onnx::ConvTransposeOp>(layer.op)) // a scale would be for all groups
    return false;
  if (!hasWindow && block && depth % block)
    return false;
  ImplicitLocOpBuilder b(layer.op->getLoc(), layer.op);
  WeightMath math(b);
  Value weight = layer.weight->get();
  const double most = double((1 << (bits - 1)) - 1);
  Type integer = b.getIntegerType(bits);
  Value scale;
  int64_t axis = layer.outputDim;
  if (hasWindow || !block) {
    block = 0;
    scale = math.reshape(
        getScale(math,
                 math.largest(weight, getOtherDims(layer.type.getRank(), axis)),
                 most),
        {layer.type.getDimSize(axis)});
  } else {
    axis = layer.depthDim;
    SmallVector<int64_t> shape(layer.type.getShape()), split(shape);
    shape[axis] = split[axis] = depth / block;
    split.insert(split.begin() + axis + 1, block);
    scale = math.reshape(
        getScale(math, math.largest(math.reshape(weight, split), {axis + 1}),
                 most),
        shape);
  }
  Value zero =
      math.zeros(integer, cast<RankedTensorType>(scale.getType()).getShape());
  Value integers = math.quantize(weight, scale, zero, integer, axis, block);
  layer.weight->set(math.dequantize(integers, scale, zero, axis, block));
  return true;
}
