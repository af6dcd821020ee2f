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

/// This many products of differences of 8-bit integers have an f32 sum that is
/// exact in whatever order: 258 * 255^2 < 2^24.
constexpr int64_t kExactProducts = 258;

/// Into how many equal parts the input channels have to be cut so that a sum
/// over a part is exact in f32; 0 when that would not pay.
int64_t getExactParts(int64_t channels, ArrayRef<int64_t> kernel) {
  constexpr int64_t kMaxParts = 16;
  if (ShapedType::isDynamic(channels) || channels < 1)
    return 0;
  int64_t area = 1;
  for (int64_t size : kernel)
    area *= size;
  for (int64_t parts = 1; parts <= std::min(channels, kMaxParts); ++parts)
    if (channels % parts == 0 && channels / parts * area <= kExactProducts)
      return parts;
  return 0;
}

/// The convolution of whole numbers in f32 as i32.
FailureOr<Value> createExactConv(TensorBuilder &b, Value input, Value weights,
                                 const Window &window, int64_t parts) {
  Type i32 = b.getI32Type();
  if (!b.sameSize(b.dim(input, 1), b.dim(weights, 1),
                  "channels of the input and the weights differ"))
    return failure();
  // [OC,C,k...] as [parts * OC,C/parts,k...]: group g has part g of each row.
  Sizes sizes = b.dims(weights);
  OpFoldResult channels = sizes[0];
  int64_t rank = sizes.size();
  SmallVector<ReassociationIndices> split, merge;
  appendGroup(split, 0, 1);
  appendGroup(split, 1, 2);
  appendGroup(merge, 0, 2);
  appendGroup(merge, 2, 1);
  SmallVector<int64_t> permutation{1, 0, 2};
  for (int64_t dim = 3; dim <= rank; ++dim) {
    appendGroup(split, dim, 1);
    appendGroup(merge, dim, 1);
    permutation.push_back(dim);
  }
  Sizes wide{channels, b.size(parts), b.floorDiv(sizes[1], b.size(parts))};
  wide.append(sizes.begin() + 2, sizes.end());
  if (parts > 1) {
    weights = b.transpose(b.expand(weights, split, wide), permutation);
    weights = b.collapse(weights, merge);
  }
  FailureOr<Value> products = createConv(b, input, weights, window, parts,
                                         /*exact=*/true);
  if (failed(products))
    return failure();
  Sizes results = b.dims(*products);
  results[1] = channels;
  Sizes separate{results[0], b.size(parts)};
  separate.append(results.begin() + 1, results.end());
  // (n, c, o..., part)
  SmallVector<int64_t> from{0, rank}, to{0};
  for (int64_t dim = 1; dim < rank; ++dim) {
    from.push_back(dim);
    to.push_back(dim);
  }
  if (parts == 1)
    return b.map(*products, i32,
                 [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                   return {arith::FPToSIOp::create(s, i32, args[0])};
                 });
  split[1] = {1, 2};
  SmallVector<utils::IteratorType> iterators(rank + 1,
                                             utils::IteratorType::parallel);
  iterators.back() = utils::IteratorType::reduction;
  return b
      .generic(b.expand(*products, split, separate), b.zeros(results, i32),
               {b.dimsMap(rank + 1, from), b.dimsMap(rank + 1, to)}, iterators,
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 Value sum = arith::FPToSIOp::create(s, i32, args[0]);
                 return {s.add(args[1], sum)};
               })
      .front();
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
  // One zero point per output channel stands along dimension 0 of the weights.
  if (conv.weightZero.value)
    conv.weightZero.value =
        alignChannels(b, conv.weightZero.value, window->rank() + 1);
  // 8-bit products are made in f32, the input channels in as many groups as the
  // exactness of a sum asks for. The groups' results are added as integers.
  int64_t parts = 0;
  RankedTensorType weightType = rankedType(conv.weights.value);
  if (group == 1 && window->rank() <= 3 && areBytes(conv.input, conv.weights))
    parts = getExactParts(weightType.getDimSize(1), *kernel);
  Type type = parts ? Type(b.getF32Type()) : b.getI32Type();
  FailureOr<Value> input =
      subtractZeroPoint(b, conv.input, conv.inputZero, type);
  FailureOr<Value> weights =
      subtractZeroPoint(b, conv.weights, conv.weightZero, type);
  if (failed(input) || failed(weights))
    return failure();
  if (!parts)
    return createConv(b, *input, *weights, *window, group);
  return createExactConv(b, *input, *weights, *window, parts);
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
  SmallVector<TypedTensor> inputs{
      {*product, i32},
      {b.in.getXScale(), f32},
      {alignChannels(b, b.in.getWScale(), spatial), f32},
      {b.in.getYScale(), f32},
      getTyped(b.op.getYZeroPoint(), b.in.getYZeroPoint())};
  if (b.in.getB())
    inputs.push_back({alignChannels(b, b.in.getB(), spatial), i32});
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), inputs, resultElement,
      rankedType(*product).clone(convertElementType(resultElement)),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        Value sum = args.size() > 5 ? s.add(args[0], args[5]) : args[0];
        Value scale =
            arith::DivFOp::create(s, s.mul(args[1], args[2]), args[3]);
        Value value = castScalar(s, loc, sum, i32, f32);
        return requantize(s, loc, s.mul(value, scale), args[4], resultElement);
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
