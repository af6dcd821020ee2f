//===- MaxPool.cpp - MaxPool ----------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Window/Window.h"
#include "dialects/ONNX/ONNX.h"
#include "dialects/SDX/SDX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The maps of (input, kernel, results...) and the iterators of a pool.
struct PoolLoops {
  SmallVector<AffineMap> maps;
  SmallVector<utils::IteratorType> iterators;
  Sizes sizes, kernel;
};

PoolLoops getPoolLoops(TensorBuilder &b, Value input, const Window &window,
                       int64_t results) {
  PoolLoops loops;
  int64_t outer = 2 + window.rank(), dims = outer + window.rank();
  loops.sizes = {b.dim(input, 0), b.dim(input, 1)};
  loops.sizes.append(window.outputs);
  for (int64_t size : window.kernel)
    loops.kernel.push_back(b.size(size));
  loops.maps = {
      getWindowMap(b, window),
      b.dimsMap(dims, llvm::to_vector(llvm::seq<int64_t>(outer, dims)))};
  loops.maps.append(
      results, b.dimsMap(dims, llvm::to_vector(llvm::seq<int64_t>(outer))));
  loops.iterators.assign(dims, utils::IteratorType::reduction);
  std::fill_n(loops.iterators.begin(), outer, utils::IteratorType::parallel);
  return loops;
}

/// The position in the input that the innermost loops look at, flattened over
/// all dimensions, and whether it lies in the input.
std::pair<Value, Value> createPosition(TensorBuilder &s, const Window &window,
                                       OpFoldResult channels,
                                       bool columnMajor) {
  Value n = linalg::IndexOp::create(s, 0), c = linalg::IndexOp::create(s, 1);
  Value plane = s.add(s.mul(n, s.index(channels)), c);
  Value area = s.index(s.product(window.inputs));
  Value inside, offset;
  for (int64_t i = 0, rank = window.rank(); i < rank; ++i) {
    // Horner's rule from the slowest spatial dimension to the fastest.
    int64_t dim = columnMajor ? rank - 1 - i : i;
    Value o = linalg::IndexOp::create(s, 2 + dim);
    Value k = linalg::IndexOp::create(s, 2 + rank + dim);
    Value at = s.add(s.mul(o, s.index(window.strides[dim])),
                     s.mul(k, s.index(window.dilations[dim])));
    at = s.sub(at, s.index(window.padsBegin[dim]));
    Value size = s.index(window.inputs[dim]);
    // Negative positions are huge when compared unsigned.
    Value here = s.compare(arith::CmpIPredicate::ult, at, size);
    inside = inside ? arith::AndIOp::create(s, inside, here) : here;
    offset = offset ? s.add(s.mul(offset, size), at) : at;
  }
  return {s.add(s.mul(plane, area), offset), inside};
}

Value createPlainPool(TensorBuilder &b, Value input, const Window &window,
                      Value lowest, bool isUnsigned) {
  Sizes sizes{b.dim(input, 0), b.dim(input, 1)};
  sizes.append(window.outputs);
  auto pool =
      sdx::MaxPoolOp::create(b, input, b.filled(sizes, lowest), window.kernel,
                             window.strides, window.knownPadsBegin());
  pool.setIsUnsigned(isUnsigned && elementTypeOf(input).isInteger(8));
  return pool->getResult(0);
}

/// Whether `x` takes the place of the maximum so far. NaN is more than every
/// number, as it is without indices.
Value isMore(TensorBuilder &s, Value x, Value most, bool isUnsigned) {
  if (!isa<FloatType>(x.getType()))
    return s.greater(x, most, isUnsigned);
  using Predicate = arith::CmpFPredicate;
  Value isNumber = arith::CmpFOp::create(s, Predicate::ORD, most, most);
  Value greater = arith::CmpFOp::create(s, Predicate::UGT, x, most);
  return arith::AndIOp::create(s, isNumber, greater);
}

LogicalResult lowerMaxPool(Lowering<onnx::MaxPoolOp> &b) {
  Value input = b.in.getX();
  Type onnxElement = getOnnxElementType(b.op.getX());
  bool isUnsigned = isUnsignedType(onnxElement);
  Type element = elementTypeOf(input);
  WindowAttributes attributes = getWindowAttributes(b.op);
  attributes.kernel.assign(b.op.getKernelShape().begin(),
                           b.op.getKernelShape().end());
  attributes.ceilMode = b.op.getCeilMode() != 0;
  FailureOr<Window> window = getWindow(b, input, attributes);
  if (failed(window))
    return b.refuse("attributes do not fit the input");
  Value lowest = b.lowest(element, isUnsigned);
  bool wantsIndices = isResultUsed(b.op, 1);
  if (!wantsIndices && window->isPlain() &&
      (element.isF32() || element.isInteger(8))) {
    SmallVector<Value> results = {
        createPlainPool(b, input, *window, lowest, isUnsigned)};
    results.resize(b.op->getNumResults());
    return b.replace(results);
  }
  Value padded = padForWindow(b, input, *window, lowest);
  PoolLoops loops = getPoolLoops(b, input, *window, wantsIndices ? 2 : 1);
  Value kernel = b.empty(loops.kernel, element);
  Value best = b.filled(loops.sizes, lowest);
  if (!wantsIndices) {
    SmallVector<Value> results =
        b.generic({padded, kernel}, best, loops.maps, loops.iterators,
                  [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
                    return {s.maximum(args[2], args[0], isUnsigned)};
                  });
    if (b.op->getNumResults() > 1)
      results.push_back(Value());
    return b.replace(results);
  }

  OpFoldResult channels = b.dim(input, 1);
  bool columnMajor = b.op.getStorageOrder() != 0;
  Type i64 = b.getI64Type();
  Value none = b.filled(loops.sizes, b.integer(i64, -1));
  SmallVector<Value> results = b.generic(
      {padded, kernel}, {best, none}, loops.maps, loops.iterators,
      [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
        auto [position, inside] =
            createPosition(s, *window, channels, columnMajor);
        // The first position wins, also when all are the lowest value.
        Value isFirst = arith::AndIOp::create(
            s, inside,
            s.compare(arith::CmpIPredicate::slt, args[3], s.integer(i64, 0)));
        Value better = arith::OrIOp::create(
            s, isMore(s, args[0], args[2], isUnsigned), isFirst);
        return {s.select(better, args[0], args[2]),
                s.select(better, s.convert(position, i64), args[3])};
      });
  return b.replace(results);
}

} // namespace

void populateMaxPoolPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::MaxPoolOp, lowerMaxPool>(patterns, converter);
}

} // namespace sardonyx
