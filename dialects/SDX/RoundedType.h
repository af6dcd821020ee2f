//===- RoundedType.h - What operands may be rounded to ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_ROUNDEDTYPE_H
#define SARDONYX_SDX_ROUNDEDTYPE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace sardonyx::sdx {

/// Of a product of f32, or of attention that is made of two of them: the type
/// that it may round its operands to as it reads them. Where they lie in memory
/// they stay f32. With i8 the left-hand side of a sdx.dequant_matmul may become
/// integers, with a scale for each row of a block, or operands may lose as
/// little in another way.
inline constexpr llvm::StringLiteral kRoundedAttr = "sdx.rounded";

/// That type; null where there is none.
inline mlir::Type getRoundedType(mlir::Operation *op) {
  auto attr = op->getAttrOfType<mlir::TypeAttr>(kRoundedAttr);
  return attr ? attr.getValue() : mlir::Type();
}

} // namespace sardonyx::sdx

#endif // SARDONYX_SDX_ROUNDEDTYPE_H
