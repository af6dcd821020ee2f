//===- KernelGroup.h - Operations that become one kernel --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_KERNELGROUP_H
#define SARDONYX_LIB_DISPATCH_KERNELGROUP_H

#include "dialects/SDX/SDX.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"

namespace sardonyx {

enum class GroupKind {
  Product,     ///< a product or convolution and its epilogue
  Rows,        ///< reductions over trailing dimensions, elementwise between
  Elementwise, ///< elementwise on one domain
  Single,      ///< any other operation, alone
};

/// The kind of kernel that `ops` (in program order) can be; nothing if they
/// cannot share one within `limits`.
std::optional<GroupKind> classifyGroup(llvm::ArrayRef<mlir::Operation *> ops,
                                       const sdx::FusionLimits &limits);

/// Outlines `ops`, a contiguous run of one block, into a new kernel of
/// `symbols`' module, and calls it in their place.
void outlineKernel(llvm::ArrayRef<mlir::Operation *> ops, GroupKind kind,
                   mlir::SymbolTable &symbols, unsigned number);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_KERNELGROUP_H
