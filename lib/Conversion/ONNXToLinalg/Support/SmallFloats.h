//===- SmallFloats.h - Floats of at most eight bits -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SMALLFLOATS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SMALLFLOATS_H

#include "mlir/IR/Builders.h"

namespace sardonyx {

/// Whether a type is one of ONNX's floats of 4, 6 or 8 bits. They are stored as
/// one byte each and computed as f32.
bool isSmallFloat(mlir::Type type);

/// The f32 value of a stored byte.
mlir::Value decodeSmallFloat(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value byte, mlir::Type type);

/// The byte for an f32 value, rounded to even. What is too large becomes the
/// largest value if `saturate`, else infinity or NaN, as the type has it.
/// `roundMode` ("up", "down", "nearest") matters to f8E8M0FNU only.
mlir::Value encodeSmallFloat(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Value value, mlir::Type type,
                             bool saturate = true,
                             llvm::StringRef roundMode = "up");

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_SMALLFLOATS_H
