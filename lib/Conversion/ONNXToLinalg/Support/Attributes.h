//===- Attributes.h - Tables in attributes ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operators of ai.onnx.ml have what they learned in attributes.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ATTRIBUTES_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ATTRIBUTES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <vector>

namespace sardonyx {

/// The integers in attribute `name`; none where there is no such attribute.
llvm::ArrayRef<int64_t> getInts(mlir::Operation *op, const llvm::Twine &name);
/// The numbers in attribute `name` (floats, or a tensor) or `name`_as_tensor.
std::vector<double> getNumbers(mlir::Operation *op, llvm::StringRef name);
/// The elements of a tensor of floats or unsigned integers.
std::vector<double> getNumbers(mlir::ElementsAttr elements);
/// The elements of a tensor of signed integers.
std::vector<int64_t> getIntegers(mlir::ElementsAttr elements);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_ATTRIBUTES_H
