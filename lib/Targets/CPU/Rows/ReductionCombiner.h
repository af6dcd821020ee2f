//===- ReductionCombiner.h - How reductions combine -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_REDUCTIONCOMBINER_H
#define SARDONYX_LIB_TARGETS_CPU_REDUCTIONCOMBINER_H

#include "Rows/ReductionGroup.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace sardonyx::cpu {

/// Whether result `r` of a reduction starts with a constant that is not NaN:
/// whatever maxnumf and minnumf make of it and its inputs is a number.
bool startsWithNumber(const RowStage &stage, unsigned r);

/// The operation of a reduction.
struct ReductionCombiner {
  mlir::vector::CombiningKind kind;
  /// Whether no value is NaN, should `kind` be maxnumf or minnumf.
  bool ofNumbers;

  /// The value of `type` that leaves others unchanged.
  mlir::TypedAttr getNeutral(mlir::OpBuilder &b, mlir::Type type) const;
  mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                      mlir::Value y) const;
  /// The lanes of `vector` as one value, half with half: LLVM takes the largest
  /// lane one after the other.
  mlir::Value reduceLanes(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value vector) const;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_REDUCTIONCOMBINER_H
