//===- PackedConstants.h - Constants as the bytes they lie in ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of 2 or 4 bits share bytes in files, the first in the lowest bits,
// and in resources that refer to files. What reads weights of a few bits takes
// those bytes as they are.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PACKEDCONSTANTS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PACKEDCONSTANTS_H

#include "Support/TensorBuilder.h"
#include "dialects/ONNX/ONNX.h"

namespace sardonyx {

/// The numbers of a constant, one after the other.
struct PackedConstant {
  /// [bytes] of i8.
  mlir::Value bytes;
  /// Bits of a number: 2, 4 or 8.
  int64_t bits = 8;
  /// Bits from one number to the next: `bits`, or 8.
  int64_t step = 8;

  /// Number `at` (index) as i32, zeros above its bits.
  mlir::Value extract(TensorBuilder &b, mlir::Value at) const;
};

/// Whether numbers of a constant share bytes.
bool isPacked(onnx::ConstantOp op);

/// A constant of integers or floats of 2, 4 or 8 bits; none for another.
std::optional<PackedConstant> createPackedConstant(TensorBuilder &b,
                                                   onnx::ConstantOp op);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_PACKEDCONSTANTS_H
