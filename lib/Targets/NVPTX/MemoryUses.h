//===- MemoryUses.h - Which memory an operation uses ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MEMORYUSES_H
#define SARDONYX_LIB_TARGETS_NVPTX_MEMORYUSES_H

#include "mlir/IR/Operation.h"

#include <optional>

namespace sardonyx::nv {

/// Memory that an operand may be in.
struct Piece {
  mlir::Operation *owner = nullptr; // what allocates it, or null
  mlir::Value argument;             // what it comes from where nothing does
  int64_t from = 0, to = -1;        // bytes; all of it where `to` is -1
  bool isKnown = false;

  bool overlaps(const Piece &other) const;
};

struct Uses {
  llvm::SmallVector<Piece, 0> read, written;

  bool conflictWith(const Uses &other) const;
};

/// The memory that `op` uses; nothing where that is not known.
std::optional<Uses> findUses(mlir::Operation *op);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MEMORYUSES_H
