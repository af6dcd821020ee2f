//===- Inverse.cpp - Inverses of matrices ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gauss-Jordan elimination with pivots from the column. Matrices do not know
// each other, so that all of them are one kernel.
//
//===----------------------------------------------------------------------===//

#include "Contraction/Products.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "dialects/ONNX/ONNX.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// One matrix of `size` x `size` as a row of its elements.
struct Matrix {
  Value size, zero;

  Value at(TensorBuilder &b, Value i, Value j) const {
    return b.add(b.mul(i, size), j);
  }
  Values
  eachRow(TensorBuilder &b, ValueRange state,
          function_ref<Values(TensorBuilder &, Value, ValueRange)> body) const {
    return loop(b, zero, size, state, body);
  }

  /// Copies element `i` of all into `matrix`, and makes `inverse` the identity.
  Values start(TensorBuilder &b, Value input, Value matrix, Value row,
               Value inverse) const {
    Type type = elementTypeOf(inverse);
    return eachRow(
        b, {row, inverse}, [&](TensorBuilder &s, Value i, ValueRange rows) {
          return eachRow(s, rows, [&](TensorBuilder &t, Value j, ValueRange r) {
            Value place = at(t, i, j);
            Value element = t.extract(input, {matrix, place});
            Value isDiagonal = t.compare(arith::CmpIPredicate::eq, i, j);
            Value one = t.select(isDiagonal, t.scalar(type, 1), t.zero(type));
            return Values{put(t, element, r[0], place),
                          put(t, one, r[1], place)};
          });
        });
  }

  /// The row at or below `k` with the largest element in column `k`.
  Value findPivot(TensorBuilder &b, Value matrix, Value k) const {
    Value first = math::AbsFOp::create(b, b.extract(matrix, at(b, k, k)));
    return loop(b, b.add(k, b.index(1)), size, {k, first},
                [&](TensorBuilder &s, Value i, ValueRange best) {
                  Value here =
                      math::AbsFOp::create(s, s.extract(matrix, at(s, i, k)));
                  Value larger = s.greater(here, best[1]);
                  return Values{s.select(larger, i, best[0]),
                                s.select(larger, here, best[1])};
                })
        .front();
  }

  /// Both with rows `k` and `pivot` swapped, and row `k` divided by its element
  /// in column `k`.
  Values normalize(TensorBuilder &b, ValueRange both, Value k,
                   Value pivot) const {
    Value divisor = b.extract(both[0], at(b, pivot, k));
    return eachRow(b, both, [&](TensorBuilder &s, Value j, ValueRange state) {
      Values next;
      for (Value tensor : state) {
        Value chosen = s.extract(tensor, at(s, pivot, j));
        Value other = s.extract(tensor, at(s, k, j));
        tensor = put(s, other, tensor, at(s, pivot, j));
        Value scaled = arith::DivFOp::create(s, chosen, divisor);
        next.push_back(put(s, scaled, tensor, at(s, k, j)));
      }
      return next;
    });
  }

  /// Both with multiples of row `k` taken from all others, so that column `k`
  /// vanishes there.
  Values eliminate(TensorBuilder &b, ValueRange both, Value k) const {
    return eachRow(b, both, [&](TensorBuilder &s, Value i, ValueRange rows) {
      Value differs = s.compare(arith::CmpIPredicate::ne, i, k);
      return when(s, differs, rows, [&](TensorBuilder &t) {
        Value factor = t.extract(rows[0], at(t, i, k));
        return eachRow(t, rows, [&](TensorBuilder &u, Value j, ValueRange all) {
          Values next;
          for (Value tensor : all) {
            Value taken = u.mul(factor, u.extract(tensor, at(u, k, j)));
            Value left = u.sub(u.extract(tensor, at(u, i, j)), taken);
            next.push_back(put(u, left, tensor, at(u, i, j)));
          }
          return next;
        });
      });
    });
  }
};

LogicalResult lowerInverse(Lowering<onnx::MSInverseOp> &b) {
  Type element = elementTypeOf(b.in.getX());
  Type type = getAccumulatorType(element);
  int64_t rank = b.rank(b.in.getX());
  if (rank < 2)
    return b.refuse("needs matrices");
  Sizes sizes = b.dims(b.in.getX());
  OpFoldResult size = b.sameSize(sizes[rank - 1], sizes[rank - 2],
                                 "the matrices are not square");
  if (!size)
    return b.refuse("the matrices are not square");
  Value input = b.convertElements(b.in.getX(), type);
  OpFoldResult count = b.product(ArrayRef(sizes).drop_back(2));
  OpFoldResult elements = b.times(size, size);
  input = b.reshape(input, {count, elements});
  Matrix matrix{b.index(size), b.index(int64_t(0))};
  Value init = b.empty({count, elements}, type);
  Values results = forEachRow(
      b, {init, b.empty({count, elements}, type)},
      [&](TensorBuilder &s, Value row, ValueRange rows) {
        Values both = matrix.start(s, input, row, rows[0], rows[1]);
        return matrix.eachRow(
            s, both, [&](TensorBuilder &t, Value k, ValueRange state) {
              Value pivot = matrix.findPivot(t, state[0], k);
              Values scaled = matrix.normalize(t, state, k, pivot);
              return matrix.eliminate(t, scaled, k);
            });
      });
  Value inverse = b.convertElements(results[1], element);
  return b.replace(b.reshape(inverse, sizes));
}

} // namespace

void populateInversePatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns) {
  addLowering<onnx::MSInverseOp, lowerInverse>(patterns, converter);
}

} // namespace sardonyx
