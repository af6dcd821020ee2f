//===- IntegerConv.cpp - ConvInteger and QLinearConv ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Operands of an integer convolution: original and converted.
struct IntegerConv {
  TypedTensor input, weights;
  TypedTensor inputZero{Value(), Type()}, weightZero{Value(), Type()};
};

/// The byte that `tensor` has in all places, if that is known.
std::optional<int64_t> getConstantNumber(TypedTensor tensor) {
  if (!tensor.value)
    return 0;
  std::optional<SmallVector<int64_t>> numbers =
      getConstantInts(tensor.value, rankedType(tensor.value).getNumElements());
  if (!numbers || numbers->empty() || !llvm::all_equal(*numbers))
    return std::nullopt;
  // Stored without a sign.
  const bool isUnsigned = tensor.onnxElementType.isUnsignedInteger();
  return isUnsigned ? numbers->front() & UINT8_MAX : numbers->front();
}

/// Cross-correlation of bytes onto i32, as sdx.conv. Positions in the pads hold
/// the zero point.
FailureOr<Value> createByteConv(TensorBuilder &b, const IntegerConv &conv,
                                Value weights, bool areUnsigned,
                                const Window &window, int64_t group) {
  ConvBytes bytes{conv.input.onnxElementType.isUnsignedInteger(), areUnsigned};
  std::optional<int64_t> padding = getConstantNumber(conv.inputZero);
  if (!window.hasPads() || padding) {
    bytes.padding = padding.value_or(0);
    return createConv(b, conv.input.value, weights, window, group, bytes);
  }
  Value zero = reshape(b, b.getLoc(), conv.inputZero.value, {});
  Window inner = window;
  Value input = padInput(b, conv.input.value, inner, b.extract(zero, {}));
  return createConv(b, input, weights, inner, group, bytes);
}

/// sum (x - a)(w - c) = sum x w - a sum w - c sum x + K a c, over the K
/// products of a filter, for zero points a and c.
FailureOr<Value> createByteProducts(TensorBuilder &b, const IntegerConv &conv,
                                    const Window &window, int64_t group) {
  Type i32 = b.getI32Type();
  const bool isUnsigned = conv.weights.onnxElementType.isUnsignedInteger();
  FailureOr<Value> product =
      createByteConv(b, conv, conv.weights.value, isUnsigned, window, group);
  if (failed(product))
    return failure();
  const int64_t spatial = window.rank();
  SmallVector<TypedTensor> inputs = {{*product, i32}};
  auto take = [&](TypedTensor tensor) -> int64_t {
    inputs.push_back(tensor);
    return inputs.size() - 1;
  };
  int64_t inputZero = -1, filterSums = -1, weightZero = -1, windowSums = -1;
  if (getConstantNumber(conv.inputZero) != 0) {
    inputZero = take(conv.inputZero);
    Value sums = createReduction(
        b, b.getLoc(), conv.weights,
        llvm::to_vector(llvm::seq<int64_t>(1, spatial + 2)), i32, b.zero(i32),
        [](OpBuilder &s, Location loc, ValueRange args) -> Value {
          return arith::AddIOp::create(s, loc, args[1], args[0]);
        });
    filterSums = take({alignChannels(b, sums, spatial), i32});
  }
  if (getConstantNumber(conv.weightZero) != 0) {
    weightZero = take(conv.weightZero);
    // One more filter, of ones, sums up the windows.
    Sizes sizes = b.dims(conv.weights.value);
    sizes[0] = b.size(1);
    Value ones = b.filled(sizes, b.integer(b.getI8Type(), 1));
    FailureOr<Value> sums =
        createByteConv(b, conv, ones, /*areUnsigned=*/false, window, group);
    if (failed(sums))
      return failure();
    windowSums = take({*sums, i32});
  }
  if (inputs.size() == 1)
    return product;
  Value depth = b.convert(
      b.index(b.product(
          ArrayRef<OpFoldResult>(b.dims(conv.weights.value)).drop_front())),
      i32);
  return createElementwise(
      b, b.getLoc(), inputs, i32, rankedType(*product),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        auto number = [&](int64_t at) {
          return castScalar(s, loc, args[at], inputs[at].onnxElementType, i32);
        };
        Value result = args[0];
        if (inputZero >= 0)
          result = s.sub(result, s.mul(number(inputZero), args[filterSums]));
        if (weightZero < 0)
          return result;
        Value rest = args[windowSums];
        if (inputZero >= 0)
          rest = s.sub(rest, s.mul(depth, number(inputZero)));
        return s.sub(result, s.mul(number(weightZero), rest));
      });
}

/// The exact convolution in i32 of differences to the zero points. Border
/// positions hold the input's zero point, so their difference is zero.
FailureOr<Value> createIntegerConv(TensorBuilder &b, IntegerConv conv,
                                   WindowAttributes attributes,
                                   std::optional<ArrayRef<int64_t>> kernelShape,
                                   int64_t group) {
  FailureOr<SmallVector<int64_t>> kernel =
      getKernelShape(b, conv.weights.value, kernelShape);
  if (failed(kernel))
    return failure();
  attributes.kernel = *kernel;
  FailureOr<Window> window = getWindow(b, conv.input.value, attributes);
  if (failed(window))
    return failure();
  // One zero point per output channel stands along the result's dimension 1 and
  // dimension 0 of the weights.
  auto alignWeightZero = [&](int64_t ones) {
    if (conv.weightZero.value)
      conv.weightZero.value = alignChannels(b, conv.weightZero.value, ones);
  };
  const bool hasOneZero =
      !conv.inputZero.value || isSingleElement(conv.inputZero.value);
  if (window->rank() <= 3 && areBytes(conv.input, conv.weights) && hasOneZero &&
      (group == 1 || getConstantNumber(conv.weightZero) == 0)) {
    alignWeightZero(window->rank());
    return createByteProducts(b, conv, *window, group);
  }
  alignWeightZero(window->rank() + 1);
  FailureOr<Value> input =
      subtractZeroPoint(b, conv.input, conv.inputZero, b.getI32Type());
  FailureOr<Value> weights =
      subtractZeroPoint(b, conv.weights, conv.weightZero, b.getI32Type());
  if (failed(input) || failed(weights))
    return failure();
  return createConv(b, *input, *weights, *window, group);
}

LogicalResult lowerConvInteger(Lowering<onnx::ConvIntegerOp> &b) {
  IntegerConv conv{getTyped(b.op.getX(), b.in.getX()),
                   getTyped(b.op.getW(), b.in.getW())};
  if (b.in.getXZeroPoint())
    conv.inputZero = getTyped(b.op.getXZeroPoint(), b.in.getXZeroPoint());
  if (b.in.getWZeroPoint())
    conv.weightZero = getTyped(b.op.getWZeroPoint(), b.in.getWZeroPoint());
  FailureOr<Value> result =
      createIntegerConv(b, conv, getWindowAttributes(b.op),
                        b.op.getKernelShape(), b.op.getGroup());
  if (failed(result))
    return b.refuse("shapes or attributes do not fit");
  return b.replace(*result);
}

LogicalResult lowerQLinearConv(Lowering<onnx::QLinearConvOp> &b) {
  Type resultElement = getOnnxElementType(b.op.getYZeroPoint());
  IntegerConv conv{getTyped(b.op.getX(), b.in.getX()),
                   getTyped(b.op.getW(), b.in.getW()),
                   getTyped(b.op.getXZeroPoint(), b.in.getXZeroPoint()),
                   getTyped(b.op.getWZeroPoint(), b.in.getWZeroPoint())};
  FailureOr<Value> product =
      createIntegerConv(b, conv, getWindowAttributes(b.op),
                        b.op.getKernelShape(), b.op.getGroup());
  if (failed(product))
    return b.refuse("shapes or attributes do not fit");

  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  int64_t spatial = rankedType(*product).getRank() - 2;
  FailureOr<Value> scale = createRequantizationScale(
      b, {b.in.getXScale(), f32},
      {alignChannels(b, b.in.getWScale(), spatial), f32},
      {b.in.getYScale(), f32});
  if (failed(scale))
    return b.refuse("scales do not broadcast");
  SmallVector<TypedTensor> inputs{
      {*product, i32},
      {*scale, f32},
      getTyped(b.op.getYZeroPoint(), b.in.getYZeroPoint())};
  if (b.in.getB())
    inputs.push_back({alignChannels(b, b.in.getB(), spatial), i32});
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), inputs, resultElement,
      rankedType(*product).clone(convertElementType(resultElement)),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        Value sum = args.size() > 3 ? s.add(args[0], args[3]) : args[0];
        Value value = castScalar(s, loc, sum, i32, f32);
        return requantize(s, loc, s.mul(value, args[1]), args[2],
                          resultElement);
      });
  if (failed(result))
    return b.refuse("scales do not broadcast");
  return b.replace(*result);
}

} // namespace

void populateIntegerConvPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  addLowering<onnx::ConvIntegerOp, lowerConvInteger>(patterns, converter);
  addLowering<onnx::QLinearConvOp, lowerQLinearConv>(patterns, converter);
}

} // namespace sardonyx
