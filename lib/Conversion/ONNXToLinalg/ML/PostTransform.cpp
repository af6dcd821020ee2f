//===- PostTransform.cpp - What scores become -----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ML/PostTransform.h"
#include "Support/Common.h"

#include <limits>

using namespace mlir;

namespace sardonyx {

using Args = ValueRange;

/// 1 / (1 + exp(-x)), by the exponential of what is not positive.
static Value logistic(TensorBuilder &b, Value x) {
  Type type = x.getType();
  Value one = b.scalar(type, 1);
  Value size = math::AbsFOp::create(b, x);
  Value small = math::ExpOp::create(b, b.sub(b.scalar(type, 0), size));
  Value sum = b.add(one, small);
  Value isPositive = b.greater(x, b.scalar(type, 0));
  return arith::DivFOp::create(b, b.select(isPositive, one, small), sum);
}

/// The quantile of the normal distribution, sqrt(2) erfinv(2 x - 1), with the
/// approximation of S. Winitzki (2008) that onnx and onnxruntime use.
static Value probit(TensorBuilder &b, Value x) {
  Type type = x.getType();
  auto number = [&](double value) { return b.scalar(type, value); };
  Value y = b.sub(b.mul(number(2), x), number(1));
  Value rest = b.mul(b.sub(number(1), y), b.add(number(1), y));
  Value log = math::LogOp::create(b, rest);
  Value half = b.add(number(2 / (3.14159 * 0.147)), b.mul(number(0.5), log));
  Value tail = b.mul(number(1 / 0.147), log);
  Value inner =
      math::SqrtOp::create(b, b.sub(b.mul(half, half), tail)).getResult();
  // inner - half; where both are positive that would cancel out.
  Value quotient =
      arith::DivFOp::create(b, b.sub(number(0), tail), b.add(inner, half));
  Value difference =
      b.select(b.greater(half, number(0)), quotient, b.sub(inner, half));
  Value root = math::SqrtOp::create(b, difference);
  return b.mul(number(1.41421356), math::CopySignOp::create(b, root, y));
}

/// exp(x - max) / sum over each row; without `zeros` what is (almost) zero
/// stays out of it.
static Value softmax(TensorBuilder &b, Value scores, bool zeros) {
  Type type = elementTypeOf(scores);
  TypedTensor input{scores, type};
  Location loc = b.getLoc();
  Value most = createReduction(
      b, loc, input, {1}, type, b.lowest(type, /*isUnsigned=*/false),
      [](OpBuilder &s, Location at, ValueRange args) -> Value {
        return arith::MaximumFOp::create(s, at, args[0], args[1]);
      });
  AffineMap row = b.dimsMap(2, {0});
  AffineMap all = b.identityMap(2);
  Value weights =
      b.elementwise(b.dims(scores), {scores, most}, {all, row}, {type},
                    [&](TensorBuilder &s, Args args) {
                      Value e = math::ExpOp::create(s, s.sub(args[0], args[1]));
                      if (!zeros) {
                        Value size = math::AbsFOp::create(s, args[0]);
                        Value counts =
                            s.greater(size, s.scalar(type, 0.0000001));
                        e = s.select(counts, e, s.scalar(type, 0));
                      }
                      return SmallVector<Value>{e};
                    })
          .front();
  Value sum =
      createReduction(b, loc, {weights, type}, {1}, type, b.scalar(type, 0),
                      [](OpBuilder &s, Location at, ValueRange args) -> Value {
                        return arith::AddFOp::create(s, at, args[0], args[1]);
                      });
  return b
      .elementwise(
          b.dims(scores), {weights, sum}, {all, row}, {type},
          [&](TensorBuilder &s, Args args) {
            // A row of nothing but zeros stays one.
            Value isNone = arith::CmpFOp::create(s, arith::CmpFPredicate::OEQ,
                                                 args[1], s.scalar(type, 0));
            Value by = s.select(isNone, s.scalar(type, 1), args[1]);
            return SmallVector<Value>{arith::DivFOp::create(s, args[0], by)};
          })
      .front();
}

bool isPostTransform(StringRef kind) {
  return llvm::is_contained(
      {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}, kind);
}

Value postTransform(TensorBuilder &b, StringRef kind, Value scores) {
  Type type = elementTypeOf(scores);
  if (kind == "SOFTMAX" || kind == "SOFTMAX_ZERO")
    return softmax(b, scores, /*zeros=*/kind == "SOFTMAX");
  if (kind == "LOGISTIC")
    return b.map(scores, type, [](TensorBuilder &s, Args args) {
      return SmallVector<Value>{logistic(s, args[0])};
    });
  if (kind == "PROBIT")
    return b.map(scores, type, [](TensorBuilder &s, Args args) {
      return SmallVector<Value>{probit(s, args[0])};
    });
  return scores;
}

} // namespace sardonyx
