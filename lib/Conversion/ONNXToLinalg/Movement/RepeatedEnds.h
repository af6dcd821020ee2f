//===- RepeatedEnds.h - Paddings that repeat elements -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_REPEATEDENDS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_REPEATEDENDS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// `data` with so many elements more before and behind each dimension, less
/// where a number is negative: those that `mode` ("reflect", "edge" or "wrap")
/// repeats. `sizes` are those of the result.
mlir::Value repeatEnds(TensorBuilder &b, mlir::Value data,
                       llvm::ArrayRef<mlir::OpFoldResult> low,
                       llvm::ArrayRef<mlir::OpFoldResult> high,
                       llvm::ArrayRef<mlir::OpFoldResult> sizes,
                       llvm::StringRef mode);

/// `data`, which has elements, between `low` copies of `fill` before each
/// dimension and so many behind it that there are `sizes`; a negative number
/// cuts off.
mlir::Value surround(TensorBuilder &b, mlir::Value data,
                     llvm::ArrayRef<mlir::OpFoldResult> low,
                     llvm::ArrayRef<mlir::OpFoldResult> sizes,
                     mlir::Value fill);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_MOVEMENT_REPEATEDENDS_H
