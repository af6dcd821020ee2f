//===- Tables.cpp - What models of ai.onnx.ml share -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ML/Tables.h"
#include "Support/DataMovement.h"
#include "Support/RowLoop.h"

using namespace mlir;

namespace sardonyx {

Value constantIntegers(TensorBuilder &b, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(values.size(), b.getI64Type());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, values));
}

Value constantNumbers(TensorBuilder &b, ArrayRef<int64_t> shape,
                      ArrayRef<double> values, Type type) {
  auto list = RankedTensorType::get(shape, type);
  if (type.isF64())
    return arith::ConstantOp::create(b, DenseElementsAttr::get(list, values));
  SmallVector<float> narrow(values.begin(), values.end());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(list, ArrayRef<float>(narrow)));
}

Value asFloats(TensorBuilder &b, Value x, Type onnxType) {
  Type f32 = b.getF32Type();
  if (onnxType.isF32())
    return x;
  return createMapped(b, b.getLoc(), TypedTensor{x, onnxType},
                      b.identityMap(rankedType(x).getRank()), b.dims(x), f32,
                      [&](OpBuilder &s, Location loc, ValueRange args) {
                        return castScalar(s, loc, args[0], onnxType, f32);
                      });
}

Value findLargest(TensorBuilder &b, Value matrix) {
  return createIndexed(
      b, b.getLoc(), {b.dim(matrix, 0)}, b.getI64Type(),
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value zero = s.index(int64_t(0));
        Values best = loop(s, s.index(1), s.index(s.dim(matrix, 1)),
                           {zero, s.extract(matrix, {i[0], zero})},
                           [&](TensorBuilder &t, Value k, ValueRange state) {
                             Value here = t.extract(matrix, {i[0], k});
                             Value more = t.greater(here, state[1]);
                             return Values{t.select(more, k, state[0]),
                                           t.select(more, here, state[1])};
                           });
        return s.convert(best[0], s.getI64Type());
      });
}

Value labelPlaces(TensorBuilder &b, Value places, ArrayRef<Value> labels) {
  Value table = tensor::FromElementsOp::create(b, labels);
  return b.map(places, b.getI64Type(), [&](TensorBuilder &s, ValueRange i) {
    Value at = s.convert(i[0], s.getIndexType());
    return SmallVector<Value>{s.extract(table, at)};
  });
}

} // namespace sardonyx
