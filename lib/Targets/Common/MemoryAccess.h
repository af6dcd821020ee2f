//===- MemoryAccess.h - Which elements an operation touches -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_MEMORYACCESS_H
#define SARDONYX_LIB_TARGETS_COMMON_MEMORYACCESS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <optional>

namespace sardonyx {

/// A load or store of elements of a memref, scalar or vector.
struct MemoryAccess {
  mlir::TypedValue<mlir::MemRefType> memref;
  /// The position of the first lane.
  mlir::ValueRange indices;
  /// The lanes, which lie side by side; 1 for a scalar.
  int64_t lanes = 1;
  /// The dimension that they lie along: the last but for those of size 1.
  int64_t laneDim = -1;
  /// Lanes that are touched; null for all.
  mlir::Value mask;
  /// Gathers and scatters: the distance of each lane from the first lane's
  /// place, in elements of the innermost dimension; it may lead to other rows.
  mlir::Value offsets;
  bool isStore = false;

  /// The access that `op` is, or none.
  static std::optional<MemoryAccess> get(mlir::Operation *op);
};

/// "node 'conv1'" of the node that `op` came from; empty if nothing tells.
std::string describeNode(mlir::Operation *op);

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_MEMORYACCESS_H
