//===- MLPostTransform.h - What scores become -------------------*- C++ -*-===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLPOSTTRANSFORM_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLPOSTTRANSFORM_H

#include "TensorBuilder.h"

namespace sardonyx {

/// The f32 scores [rows, columns] after the post_transform `kind` of the
/// operators of ai.onnx.ml: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT.
/// Any other changes nothing.
mlir::Value postTransform(TensorBuilder &b, llvm::StringRef kind,
                          mlir::Value scores);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MLPOSTTRANSFORM_H
