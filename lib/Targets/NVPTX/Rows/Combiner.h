//===- Combiner.h - Reductions among threads --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ROWS_COMBINER_H
#define SARDONYX_LIB_TARGETS_NVPTX_ROWS_COMBINER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <optional>

namespace sardonyx::nv {

/// How one result of a reduction combines partial results: by one operation
/// whose order does not matter.
class Combiner {
public:
  /// That of result `number` of `op`; none where it is something else.
  static std::optional<Combiner> find(mlir::linalg::GenericOp op,
                                      unsigned number);

  /// The value that leaves others as they are.
  mlir::Value neutral(mlir::ImplicitLocOpBuilder &b) const;
  mlir::Value combine(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                      mlir::Value y) const;
  /// `value` of `count` neighbouring threads of a warp together, a power of
  /// two, in each of them.
  mlir::Value combineThreads(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                             int64_t count) const;
  mlir::Type getType() const { return operation->getResult(0).getType(); }

private:
  Combiner(mlir::Operation *operation, mlir::TypedAttr neutralElement)
      : operation(operation), neutralElement(neutralElement) {}

  mlir::Operation *operation;
  mlir::TypedAttr neutralElement;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ROWS_COMBINER_H
