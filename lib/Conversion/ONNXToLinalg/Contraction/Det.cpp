//===- Det.cpp - Det ------------------------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// A matrix of `size` x `size` as a row of its elements.
struct Elimination {
  Value size, zero;

  Value at(TensorBuilder &b, Value i, Value j) const {
    return b.add(b.mul(i, size), j);
  }

  /// Copies matrix `number` of all into `row`.
  Value start(TensorBuilder &b, Value input, Value number, Value row) const {
    return loop(b, zero, b.mul(size, size), row,
                [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
                  Value element = s.extract(input, {number, i});
                  return {put(s, element, state.front(), i)};
                })
        .front();
  }

  /// The row at or below `k` with the largest element in column `k`.
  Value findPivot(TensorBuilder &b, Value matrix, Value k) const {
    Value first = math::AbsFOp::create(b, b.extract(matrix, at(b, k, k)));
    return loop(b, b.add(k, b.index(1)), size, {k, first},
                [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
                  Value here =
                      math::AbsFOp::create(s, s.extract(matrix, at(s, i, k)));
                  Value larger = s.greater(here, state[1]);
                  return {s.select(larger, i, state[0]),
                          s.select(larger, here, state[1])};
                })
        .front();
  }

  Value swapRows(TensorBuilder &b, Value matrix, Value p, Value q) const {
    return loop(b, zero, size, matrix,
                [&](TensorBuilder &s, Value j, ValueRange state) -> Values {
                  Value x = s.extract(state[0], at(s, p, j));
                  Value y = s.extract(state[0], at(s, q, j));
                  Value next = put(s, y, state[0], at(s, p, j));
                  return {put(s, x, next, at(s, q, j))};
                })
        .front();
  }

  /// Takes row `k` from those below so that column `k` vanishes there.
  Value eliminate(TensorBuilder &b, Value matrix, Value k) const {
    Value pivot = b.extract(matrix, at(b, k, k));
    Type type = pivot.getType();
    // A column of zeros makes the determinant zero anyway.
    Value singular = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, pivot,
                                           b.zero(type));
    Value divisor = b.select(singular, b.scalar(type, 1), pivot);
    auto takeFrom = [&](TensorBuilder &s, Value i, ValueRange rows) {
      Value factor =
          arith::DivFOp::create(s, s.extract(rows[0], at(s, i, k)), divisor);
      return loop(s, k, size, rows[0],
                  [&](TensorBuilder &t, Value j, ValueRange state) -> Values {
                    Value taken =
                        t.mul(factor, t.extract(state[0], at(t, k, j)));
                    Value value =
                        t.sub(t.extract(state[0], at(t, i, j)), taken);
                    return {put(t, value, state[0], at(t, i, j))};
                  });
    };
    return loop(b, b.add(k, b.index(1)), size, matrix, takeFrom).front();
  }

  /// The determinant of `matrix` and what is left of that.
  Values determinant(TensorBuilder &b, Value matrix) const {
    Type type = elementTypeOf(matrix);
    return loop(b, zero, size, {b.scalar(type, 1), matrix},
                [&](TensorBuilder &s, Value k, ValueRange state) -> Values {
                  Value pivot = findPivot(s, state[1], k);
                  Value rows = swapRows(s, state[1], k, pivot);
                  Value same = s.compare(arith::CmpIPredicate::eq, pivot, k);
                  Value sign =
                      s.select(same, s.scalar(type, 1), s.scalar(type, -1));
                  Value factor = s.mul(sign, s.extract(rows, at(s, k, k)));
                  return {s.mul(state[0], factor), eliminate(s, rows, k)};
                });
  }
};

LogicalResult lowerDet(Lowering<onnx::DetOp> &b) {
  Type element = elementTypeOf(b.in.getX());
  Type type = getAccumulatorType(element);
  int64_t rank = b.rank(b.in.getX());
  if (!isa<FloatType>(element) || rank < 2)
    return b.refuse("needs matrices of floats");
  Sizes sizes = b.dims(b.in.getX());
  OpFoldResult size = b.sameSize(sizes[rank - 1], sizes[rank - 2],
                                 "the matrices are not square");
  if (!size)
    return b.refuse("the matrices are not square");
  OpFoldResult count = b.product(ArrayRef(sizes).drop_back(2));
  OpFoldResult elements = b.times(size, size);
  Value input = b.convertElements(b.in.getX(), type);
  input = b.reshape(input, {count, elements});
  Elimination elimination{b.index(size), b.index(int64_t(0))};
  // A task for each matrix, which is eliminated in a row of its own.
  Value results =
      forEachRow(
          b,
          {b.empty({count, b.size(1)}, type), b.empty({count, elements}, type)},
          [&](TensorBuilder &s, Value row, ValueRange rows) -> Values {
            Value matrix = elimination.start(s, input, row, rows[1]);
            Values done = elimination.determinant(s, matrix);
            return {put(s, done[0], rows[0], elimination.zero), done[1]};
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
