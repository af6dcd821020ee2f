//===- Strings.h - Operators on strings -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_STRINGS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_STRINGS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// The elements of `input` cast from one original element type to another, one
/// of which is that of strings; null for types of which there is no such cast.
/// Numbers are written as Python writes them.
mlir::Value castStrings(TensorBuilder &b, mlir::Value input, mlir::Type from,
                        mlir::Type to);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_HANDLES_STRINGS_H
