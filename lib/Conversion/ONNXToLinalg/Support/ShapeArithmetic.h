//===- ShapeArithmetic.h - Small tensors as scalars -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SHAPEARITHMETIC_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SHAPEARITHMETIC_H

#include "Support/Common.h"

namespace sardonyx {

/// The elementwise result as tensor.from_elements when all inputs exist as
/// scalars (see getScalarElements); null otherwise.
mlir::Value scalariseElementwise(mlir::OpBuilder &b, mlir::Location loc,
                                 llvm::ArrayRef<TypedTensor> inputs,
                                 mlir::Type resultOnnxElementType,
                                 ScalarBody body);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SHAPEARITHMETIC_H
