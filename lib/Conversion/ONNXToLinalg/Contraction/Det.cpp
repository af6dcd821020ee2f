//===- Det.cpp - Det ------------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// Loops of the host program: a determinant is small and its steps depend on
/// each other.
struct Elimination {
  /// The size of a matrix.
  Value size, zero, one;

  using Body = llvm::function_ref<SmallVector<Value>(TensorBuilder &, Value,
                                                     ValueRange)>;
  SmallVector<Value> loop(TensorBuilder &b, Value from, Value to,
                          ValueRange inits, Body body) const {
    auto op = scf::ForOp::create(
        b, from, to, one, inits,
        [&](OpBuilder &builder, Location loc, Value i, ValueRange state) {
          TensorBuilder s(loc, builder);
          scf::YieldOp::create(s, body(s, i, state));
        });
    return SmallVector<Value>(op.getResults());
  }

  Value put(TensorBuilder &b, Value value, Value tensor, ValueRange at) const {
    return tensor::InsertOp::create(b, value, tensor, at);
  }

  /// The row at or below `k` with the largest element in column `k`.
  Value findPivot(TensorBuilder &b, Value matrix, Value k) const {
    Value first = math::AbsFOp::create(b, b.extract(matrix, {k, k}));
    return loop(b, b.add(k, one), size, {k, first},
                [&](TensorBuilder &s, Value i, ValueRange state) {
                  Value here =
                      math::AbsFOp::create(s, s.extract(matrix, {i, k}));
                  Value larger = s.greater(here, state[1]);
                  return SmallVector<Value>{s.select(larger, i, state[0]),
                                            s.select(larger, here, state[1])};
                })
        .front();
  }

  Value swapRows(TensorBuilder &b, Value matrix, Value p, Value q) const {
    return loop(b, zero, size, matrix,
                [&](TensorBuilder &s, Value j, ValueRange state) {
                  Value x = s.extract(state[0], {p, j});
                  Value y = s.extract(state[0], {q, j});
                  Value next = put(s, y, state[0], {p, j});
                  return SmallVector<Value>{put(s, x, next, {q, j})};
                })
        .front();
  }

  /// Takes row `k` from those below so that column `k` vanishes there.
  Value eliminate(TensorBuilder &b, Value matrix, Value k) const {
    return loop(b, b.add(k, one), size, matrix,
                [&](TensorBuilder &s, Value i, ValueRange rows) {
                  Value pivot = s.extract(rows[0], {k, k});
                  Type type = pivot.getType();
                  // A column of zeros makes the determinant zero anyway.
                  Value singular = arith::CmpFOp::create(
                      s, arith::CmpFPredicate::OEQ, pivot, s.zero(type));
                  Value divisor = s.select(singular, s.scalar(type, 1), pivot);
                  Value factor = arith::DivFOp::create(
                      s, s.extract(rows[0], {i, k}), divisor);
                  return loop(s, k, size, rows[0],
                              [&](TensorBuilder &t, Value j, ValueRange state) {
                                Value taken =
                                    t.mul(factor, t.extract(state[0], {k, j}));
                                Value value =
                                    t.sub(t.extract(state[0], {i, j}), taken);
                                return SmallVector<Value>{
                                    put(t, value, state[0], {i, j})};
                              });
                })
        .front();
  }

  Value determinant(TensorBuilder &b, Value matrix) const {
    Type type = elementTypeOf(matrix);
    return loop(b, zero, size, {b.scalar(type, 1), matrix},
                [&](TensorBuilder &s, Value k, ValueRange state) {
                  Value pivot = findPivot(s, state[1], k);
                  Value rows = swapRows(s, state[1], k, pivot);
                  Value same = s.compare(arith::CmpIPredicate::eq, pivot, k);
                  Value sign =
                      s.select(same, s.scalar(type, 1), s.scalar(type, -1));
                  Value product =
                      s.mul(state[0], s.mul(sign, s.extract(rows, {k, k})));
                  return SmallVector<Value>{product, eliminate(s, rows, k)};
                })
        .front();
  }
};

LogicalResult lowerDet(Lowering<onnx::DetOp> &b) {
  Type element = elementTypeOf(b.in.getX());
  Type type = getAccumulatorType(element);
  int64_t rank = b.rank(b.in.getX());
  if (!isa<FloatType>(element) || rank < 2)
    return b.refuse("needs matrices of floats");
  Sizes sizes = b.dims(b.in.getX());
  if (!b.sameSize(sizes[rank - 1], sizes[rank - 2],
                  "the matrices are not square"))
    return b.refuse("the matrices are not square");
  Value input = b.convertElements(b.in.getX(), type);
  input = collapseRange(b, b.getLoc(), input, 0, rank - 2);
  OpFoldResult count = b.dim(input, 0), size = sizes[rank - 1];
  Elimination elimination{b.index(size), b.index(int64_t(0)), b.index(1)};
  Value results =
      elimination
          .loop(b, elimination.zero, b.index(count), b.empty({count}, type),
                [&](TensorBuilder &s, Value i, ValueRange state) {
                  Value matrix = s.slice(input, {i, s.size(0), s.size(0)},
                                         {s.size(1), size, size}, {0});
                  Value value = elimination.determinant(s, matrix);
                  return SmallVector<Value>{
                      elimination.put(s, value, state[0], i)};
                })
          .front();
  results = b.convertElements(results, element);
  return b.replace(b.reshape(results, ArrayRef(sizes).drop_back(2)));
}

} // namespace

void populateDetPatterns(const TypeConverter &converter,
                         RewritePatternSet &patterns) {
  addLowering<onnx::DetOp, lowerDet>(patterns, converter);
}

} // namespace sardonyx
