//===- Arithmetic.h - Tables of elementwise ops -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ELEMENTWISE_ARITHMETIC_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ELEMENTWISE_ARITHMETIC_H

#include "Support/ScalarBuilder.h"

#include <functional>

namespace sardonyx {

/// Writes the scalar result of an op from the computed scalars of its operands.
/// The builder's type is that of the first operand.
using ElementwiseBody = std::function<mlir::Value(
    ScalarBuilder &, mlir::Operation *, mlir::ValueRange)>;

struct ElementwiseRow {
  llvm::StringLiteral name;
  mlir::Value (*body)(ScalarBuilder &, mlir::Operation *, mlir::ValueRange);
};

/// Adds a pattern for each row.
void addElementwiseRows(const mlir::TypeConverter &converter,
                        mlir::RewritePatternSet &patterns,
                        llvm::ArrayRef<ElementwiseRow> rows);

/// Lowers an op with one result whose operands are all broadcast together.
mlir::LogicalResult lowerElementwise(mlir::ConversionPatternRewriter &rewriter,
                                     const mlir::TypeConverter &converter,
                                     mlir::Operation *op,
                                     mlir::ValueRange operands,
                                     ElementwiseBody body);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_ELEMENTWISE_ARITHMETIC_H
