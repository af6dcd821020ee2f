//===- PostTransform.h - What scores become ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_POSTTRANSFORM_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_POSTTRANSFORM_H

#include "Support/Lowering.h"

namespace sardonyx {

/// The f32 scores [rows, columns] after the post_transform `kind` of the
/// operators of ai.onnx.ml: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT.
mlir::Value postTransform(TensorBuilder &b, llvm::StringRef kind,
                          mlir::Value scores);

bool isPostTransform(llvm::StringRef kind);

/// The same with the attribute of an op, which a model may give any text.
template <typename OpT>
mlir::LogicalResult checkPostTransform(Lowering<OpT> &b) {
  llvm::StringRef kind = b.op.getPostTransform();
  if (isPostTransform(kind))
    return mlir::success();
  return b.refuseAlways("there is no post_transform '" + kind + "'");
}

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_LEARNED_POSTTRANSFORM_H
