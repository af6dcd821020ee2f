//===- AveragePool.cpp - AveragePool, LpPool and the global pools ---------===//
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
#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {
namespace {

using Combine = llvm::function_ref<Value(TensorBuilder &, Value element,
                                         Value accumulator)>;

/// Combines what each window sees, from `start` on; `border` stands outside of
/// the input. Accumulates in the type of `start`.
Value createPool(TensorBuilder &b, Value input, const Window &window,
                 Value border, Value start, Combine combine) {
  Value padded = padForWindow(b, input, window, border);
  Sizes sizes{b.dim(input, 0), b.dim(input, 1)}, kernel;
  sizes.append(window.outputs);
  for (int64_t size : window.kernel)
    kernel.push_back(b.size(size));
  int64_t rank = window.rank(), dims = 2 + 2 * rank;
  SmallVector<int64_t> kernelDims =
      llvm::to_vector(llvm::seq<int64_t>(2 + rank, dims));
  SmallVector<utils::IteratorType> iterators(dims,
                                             utils::IteratorType::reduction);
  std::fill_n(iterators.begin(), 2 + rank, utils::IteratorType::parallel);
  // An operand without data gives the kernel loops their sizes.
  return b
      .generic({padded, b.empty(kernel, elementTypeOf(input))},
               b.filled(sizes, start),
               {getWindowMap(b, window), b.dimsMap(dims, kernelDims),
                b.dimsMap(dims, llvm::to_vector(llvm::seq<int64_t>(2 + rank)))},
               iterators,
               [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                 Value element = s.convert(args[0], start.getType());
                 return {combine(s, element, args[2])};
               })
      .front();
}

/// How many positions of the window at output position `o` lie in
/// [-before, size + behind) of one dimension, as an index.
Value createCount(TensorBuilder &b, const Window &window, int64_t dim, Value o,
                  OpFoldResult before, OpFoldResult behind) {
  Value zero = b.index(int64_t(0));
  Value first = b.sub(b.mul(o, b.index(window.strides[dim])),
                      b.index(window.padsBegin[dim]));
  auto stepsUntil = [&](OpFoldResult position) {
    Value distance = b.maximum(b.sub(b.index(position), first), zero);
    Value steps = b.index(b.ceilDiv(distance, b.size(window.dilations[dim])));
    return b.minimum(steps, b.index(window.kernel[dim]));
  };
  Value end = stepsUntil(b.plus(window.inputs[dim], behind));
  return b.sub(end, stepsUntil(b.minus(b.size(0), before)));
}

/// Whether each window lies in the input (with its pads if these count).
bool seesOnlyCounted(const Window &window, bool countPads) {
  for (int64_t dim = 0; dim < window.rank(); ++dim) {
    std::optional<int64_t> input = getStaticSize(window.inputs[dim]);
    std::optional<int64_t> output = getStaticSize(window.outputs[dim]);
    std::optional<int64_t> begin = getStaticSize(window.padsBegin[dim]);
    std::optional<int64_t> end = getStaticSize(window.padsEnd[dim]);
    if (!begin || !end || (!countPads && (*begin > 0 || *end > 0)))
      return false;
    if (input && output &&
        (*output - 1) * window.strides[dim] + window.span(dim) >
            *input + *begin + *end)
      return false;
    if ((!input || !output) && window.strides[dim] != 1)
      return false;
  }
  return true;
}

LogicalResult lowerAveragePool(Lowering<onnx::AveragePoolOp> &b) {
  Value input = b.in.getX();
  Type element = elementTypeOf(input);
  if (!isa<FloatType>(element))
    return b.refuseAlways("only floats are averaged");
  WindowAttributes attributes = getWindowAttributes(b.op);
  attributes.kernel.assign(b.op.getKernelShape().begin(),
                           b.op.getKernelShape().end());
  attributes.ceilMode = b.op.getCeilMode() != 0;
  FailureOr<Window> window = getWindow(b, input, attributes);
  if (failed(window))
    return b.refuse("attributes do not fit the input");

  bool countPads = b.op.getCountIncludePad() != 0;
  bool constant = seesOnlyCounted(*window, countPads) ||
                  (!attributes.ceilMode && countPads);
  if (element.isF32() && window->isPlain() && (constant || !countPads)) {
    Sizes sizes{b.dim(input, 0), b.dim(input, 1)};
    sizes.append(window->outputs);
    auto pool = sdx::AveragePoolOp::create(
        b, input, b.empty(sizes, element), window->kernel, window->strides,
        window->knownPadsBegin(), /*countIncludePad=*/constant);
    return b.replace(pool->getResult(0));
  }
  Type accumulator = getAccumulatorType(element);
  Value sum = createPool(
      b, input, *window, b.zero(element), b.zero(accumulator),
      [](TensorBuilder &s, Value x, Value acc) { return s.add(acc, x); });
  int64_t full = 1;
  for (int64_t size : window->kernel)
    full *= size;
  Value result =
      b.elementwise(
           b.dims(sum), sum, b.identityMap(window->rank() + 2), {element},
           [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
             Value count;
             for (int64_t dim = 0; !constant && dim < window->rank(); ++dim) {
               Value o = linalg::IndexOp::create(s, dim + 2);
               OpFoldResult none = s.size(0);
               Value here =
                   createCount(s, *window, dim, o,
                               countPads ? window->padsBegin[dim] : none,
                               countPads ? window->padsEnd[dim] : none);
               count = count ? s.mul(count, here) : here;
             }
             Value divisor = constant ? s.scalar(accumulator, full)
                                      : s.convert(count, accumulator);
             Value mean = arith::DivFOp::create(s, args[0], divisor);
             return {s.convert(mean, element)};
           })
          .front();
  return b.replace(result);
}

/// |x|^p
Value createPower(TensorBuilder &s, Value x, int64_t p) {
  if (p == 2)
    return s.mul(x, x);
  Value magnitude = math::AbsFOp::create(s, x);
  if (p == 1)
    return magnitude;
  return math::PowFOp::create(s, magnitude, s.scalar(x.getType(), p));
}

/// x^(1/p) for x >= 0
Value createRoot(TensorBuilder &s, Value x, int64_t p) {
  if (p == 1)
    return x;
  if (p == 2)
    return math::SqrtOp::create(s, x);
  return math::PowFOp::create(s, x, s.scalar(x.getType(), 1.0 / p));
}

LogicalResult lowerLpPool(Lowering<onnx::LpPoolOp> &b) {
  Value input = b.in.getX();
  Type element = elementTypeOf(input);
  int64_t p = b.op.getP();
  if (!isa<FloatType>(element) || p < 1)
    return b.refuse("needs floats and p >= 1");
  WindowAttributes attributes = getWindowAttributes(b.op);
  attributes.kernel.assign(b.op.getKernelShape().begin(),
                           b.op.getKernelShape().end());
  attributes.ceilMode = b.op.getCeilMode() != 0;
  FailureOr<Window> window = getWindow(b, input, attributes);
  if (failed(window))
    return b.refuse("attributes do not fit the input");
  Value sum = createPool(b, input, *window, b.zero(element),
                         b.zero(getAccumulatorType(element)),
                         [&](TensorBuilder &s, Value x, Value acc) {
                           return s.add(acc, createPower(s, x, p));
                         });
  Value result =
      b.map(sum, element,
            [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
              return {s.convert(createRoot(s, args[0], p), element)};
            });
  return b.replace(result);
}

//===----------------------------------------------------------------------===//
// Global pools
//===----------------------------------------------------------------------===//

/// Reduces all spatial dimensions, applies `finish` to each value of [N,C] and
/// gives the spatial dimensions back with size 1.
Value createGlobalPool(
    TensorBuilder &b, TypedTensor input, Type accumulator, Value start,
    ScalarBody combine,
    llvm::function_ref<Value(TensorBuilder &, Value)> finish) {
  int64_t rank = rankedType(input.value).getRank();
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(2, rank));
  Value reduced =
      createReduction(b, b.getLoc(), input, axes, accumulator, start, combine);
  Type element = elementTypeOf(input.value);
  if (finish || element != accumulator)
    reduced =
        b.map(reduced, element,
              [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                Value value = finish ? finish(s, args[0]) : args[0];
                return {s.convert(value, element)};
              });
  return unsqueeze(b, b.getLoc(), reduced, axes);
}

LogicalResult lowerGlobalAveragePool(Lowering<onnx::GlobalAveragePoolOp> &b) {
  Value input = b.in.getX();
  Type element = elementTypeOf(input);
  if (!isa<FloatType>(element) || b.rank(input) < 3)
    return b.refuse("needs floats [N,C,D...]");
  Type accumulator = getAccumulatorType(element);
  Sizes sizes = b.dims(input);
  OpFoldResult count = b.product(ArrayRef(sizes).drop_front(2));
  std::optional<int64_t> known = getStaticSize(count);
  Value result = createGlobalPool(
      b, {input, element}, accumulator, b.zero(accumulator),
      [](OpBuilder &s, Location loc, ValueRange args) -> Value {
        return arith::AddFOp::create(s, loc, args[1], args[0]);
      },
      [&](TensorBuilder &s, Value sum) -> Value {
        Value divisor = known ? s.scalar(accumulator, *known)
                              : s.convert(s.index(count), accumulator);
        return arith::DivFOp::create(s, sum, divisor);
      });
  return b.replace(result);
}

LogicalResult lowerGlobalMaxPool(Lowering<onnx::GlobalMaxPoolOp> &b) {
  Value input = b.in.getX();
  Type element = elementTypeOf(input);
  if (!isa<FloatType>(element) || b.rank(input) < 3)
    return b.refuse("needs floats [N,C,D...]");
  Type accumulator = getAccumulatorType(element);
  Value result = createGlobalPool(
      b, {input, element}, accumulator,
      b.lowest(accumulator, /*isUnsigned=*/false),
      [](OpBuilder &s, Location loc, ValueRange args) -> Value {
        return arith::MaximumFOp::create(s, loc, args[1], args[0]);
      },
      nullptr);
  return b.replace(result);
}

LogicalResult lowerGlobalLpPool(Lowering<onnx::GlobalLpPoolOp> &b) {
  Value input = b.in.getX();
  Type element = elementTypeOf(input);
  int64_t p = b.op.getP();
  if (!isa<FloatType>(element) || b.rank(input) < 3 || p < 1)
    return b.refuse("needs floats [N,C,D...], p >= 1");
  Type accumulator = getAccumulatorType(element);
  Value result = createGlobalPool(
      b, {input, element}, accumulator, b.zero(accumulator),
      [&](OpBuilder &builder, Location loc, ValueRange args) -> Value {
        TensorBuilder s(loc, builder);
        return s.add(args[1], createPower(s, args[0], p));
      },
      [&](TensorBuilder &s, Value sum) { return createRoot(s, sum, p); });
  return b.replace(result);
}

} // namespace

void populatePoolPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::AveragePoolOp, lowerAveragePool>(patterns, converter);
  addLowering<onnx::LpPoolOp, lowerLpPool>(patterns, converter);
  addLowering<onnx::GlobalAveragePoolOp, lowerGlobalAveragePool>(patterns,
                                                                 converter);
  addLowering<onnx::GlobalMaxPoolOp, lowerGlobalMaxPool>(patterns, converter);
  addLowering<onnx::GlobalLpPoolOp, lowerGlobalLpPool>(patterns, converter);
}

} // namespace sardonyx
