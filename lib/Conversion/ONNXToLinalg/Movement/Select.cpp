//===- Select.cpp - Results whose sizes the data decide -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"

#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The number of positions of `sizes` for which `test` (i1) holds.
Value countIf(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
              function_ref<Value(OpBuilder &, Location, ValueRange)> test) {
  return forEach(
      b, loc, sizes, createIndex(b, loc, 0),
      [&](OpBuilder &inner, Location at, ValueRange i, Value count) -> Value {
        Value one = createIndex(inner, at, 1), zero = createIndex(inner, at, 0);
        Value add =
            arith::SelectOp::create(inner, at, test(inner, at, i), one, zero);
        return arith::AddIOp::create(inner, at, count, add);
      });
}

Value isTrue(OpBuilder &b, Location loc, Value stored, Type onnxType) {
  return castScalar(b, loc, loadScalar(b, loc, stored, onnxType), onnxType,
                    b.getI1Type());
}

LogicalResult lowerNonZero(Lowering<onnx::NonZeroOp> &b) {
  Location loc = b.getLoc();
  Value x = b.in.getX();
  Type onnxType = getOnnxElementType(b.op.getX());
  Sizes sizes = b.dims(x);
  auto test = [&](OpBuilder &b, Location at, ValueRange i) {
    return isTrue(b, at, tensor::ExtractOp::create(b, at, x, i), onnxType);
  };
  Value count = countIf(b, loc, sizes, test);
  Sizes out = {b.size(sizes.size()), Size(count)};
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  Value empty = b.empty(out, b.getI64Type());
  if (sizes.empty()) // The rank of a scalar is 0: a [0, n] result.
    return b.replace(empty);
  SmallVector<Value> lower(sizes.size(), createIndex(b, loc, 0)),
      step(sizes.size(), createIndex(b, loc, 1)), upper;
  for (Size size : sizes)
    upper.push_back(b.index(size));
  scf::LoopNest nest = scf::buildLoopNest(
      b, loc, lower, upper, step, ValueRange{empty, createIndex(b, loc, 0)},
      [&](OpBuilder &b, Location at, ValueRange i,
          ValueRange state) -> scf::ValueVector {
        auto found = scf::IfOp::create(
            b, at, test(b, at, i),
            [&](OpBuilder &then, Location where) {
              Value out = state[0];
              for (auto [dim, index] : llvm::enumerate(i)) {
                Value value = arith::IndexCastOp::create(
                    then, where, then.getI64Type(), index);
                Value row = createIndex(then, where, dim);
                out = tensor::InsertOp::create(then, where, value, out,
                                               ValueRange{row, state[1]});
              }
              Value next = arith::AddIOp::create(then, where, state[1],
                                                 createIndex(then, where, 1));
              scf::YieldOp::create(then, where, ValueRange{out, next});
            },
            [&](OpBuilder &otherwise, Location where) {
              scf::YieldOp::create(otherwise, where, state);
            });
        return {found.getResult(0), found.getResult(1)};
      });
  return b.replace(nest.results[0]);
}

LogicalResult lowerCompress(Lowering<onnx::CompressOp> &b) {
  Location loc = b.getLoc();
  Value input = b.in.getInput(), condition = b.in.getCondition();
  Sizes sizes = b.dims(input);
  int64_t axis = 0;
  if (b.op.getAxis()) {
    FailureOr<int64_t> normal = normalizeAxis(*b.op.getAxis(), sizes.size());
    if (failed(normal))
      return b.refuse("axis out of range");
    axis = *normal;
  } else {
    sizes = {b.product(sizes)};
    input = b.reshape(input, sizes);
  }
  // Conditions past the axis' end select nothing.
  Value extent = b.index(sizes[axis]);
  Value length = b.index(b.dim(condition, 0));
  length = arith::MinSIOp::create(b, loc, length, extent);
  Type boolean = b.getI1Type();
  auto test = [&](OpBuilder &b, Location at, ValueRange i) {
    return loadScalar(b, at, tensor::ExtractOp::create(b, at, condition, i),
                      boolean);
  };
  Sizes out = sizes, box = sizes;
  out[axis] = countIf(b, loc, {Size(length)}, test);
  if (RankedTensorType declared = b.declared())
    out = refineSizes(b, out, declared);
  box[axis] = b.size(1);
  Type element = elementTypeOf(input);
  Value empty = b.empty(out, element);
  Value zero = createIndex(b, loc, 0);
  auto loop = scf::ForOp::create(
      b, loc, zero, length, createIndex(b, loc, 1), ValueRange{empty, zero},
      [&](OpBuilder &b, Location at, Value i, ValueRange state) {
        auto found = scf::IfOp::create(
            b, at, test(b, at, i),
            [&](OpBuilder &then, Location where) {
              Sizes from(sizes.size(), asSize(then, 0)), to = from;
              from[axis] = i;
              to[axis] = state[1];
              Value part = slice(then, where, input, from, box);
              Value next = insertSlice(then, where, part, state[0], to, box);
              Value count = arith::AddIOp::create(then, where, state[1],
                                                  createIndex(then, where, 1));
              scf::YieldOp::create(then, where, ValueRange{next, count});
            },
            [&](OpBuilder &otherwise, Location where) {
              scf::YieldOp::create(otherwise, where, state);
            });
        scf::YieldOp::create(b, at, found.getResults());
      });
  return b.replace(loop.getResult(0));
}

} // namespace

void populateSelectPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns) {
  addLowering<onnx::NonZeroOp, lowerNonZero>(patterns, converter);
  addLowering<onnx::CompressOp, lowerCompress>(patterns, converter);
}

} // namespace sardonyx
