//===- Partition.h - Parts of a module to compile apart ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_PARTITION_H
#define SARDONYX_LIB_OBJECTS_PARTITION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace sardonyx {

/// Marks the functions of the host program.
inline constexpr llvm::StringLiteral kHostAttr = "sdx.host";

/// The definitions of `module` in at most `maxParts` groups of about equal
/// size (one more for the host program). A function of internal linkage is in
/// the group of the functions that refer to it.
llvm::SmallVector<llvm::SmallVector<mlir::Operation *>>
partitionModule(mlir::ModuleOp module, unsigned maxParts);

/// A module with copies of `definitions`, and of the declarations and
/// constants of `module` that they refer to.
mlir::OwningOpRef<mlir::ModuleOp>
extractPart(mlir::ModuleOp module,
            llvm::ArrayRef<mlir::Operation *> definitions);

/// The same for each of `parts`, without copies of what they define: that
/// leaves `module`.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
moveParts(mlir::ModuleOp module,
          llvm::ArrayRef<llvm::SmallVector<mlir::Operation *>> parts);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_PARTITION_H
