//===- Tables.h - What models of ai.onnx.ml share ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_TABLES_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_TABLES_H

#include "Support/Attributes.h"
#include "Support/Lowering.h"

namespace sardonyx {

/// A constant of i64, a list.
mlir::Value constantIntegers(TensorBuilder &b, llvm::ArrayRef<int64_t> values);
/// A constant of f32 or f64.
mlir::Value constantNumbers(TensorBuilder &b, llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<double> values, mlir::Type type);

/// The input of an operator whose results are f32, as f32.
mlir::Value asFloats(TensorBuilder &b, mlir::Value x, mlir::Type onnxType);

/// The place, an i64, of the largest element of each row of a matrix, of equal
/// ones the first.
mlir::Value findLargest(TensorBuilder &b, mlir::Value matrix);
/// The element of `labels`, a list, at each of `places`.
mlir::Value labelPlaces(TensorBuilder &b, mlir::Value places,
                        mlir::ArrayRef<mlir::Value> labels);

/// The labels of a classifier, strings or integers, as i64.
template <typename OpT>
llvm::SmallVector<mlir::Value> getLabels(Lowering<OpT> &b,
                                         llvm::StringRef integers) {
  llvm::SmallVector<mlir::Value> labels;
  if (auto strings = b.op.getClasslabelsStrings())
    for (auto text : strings->template getAsRange<mlir::StringAttr>())
      labels.push_back(b.literal(text.getValue()));
  if (labels.empty())
    for (int64_t label : getInts(b.op, integers))
      labels.push_back(b.integer(b.getI64Type(), label));
  return labels;
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_TABLES_H
