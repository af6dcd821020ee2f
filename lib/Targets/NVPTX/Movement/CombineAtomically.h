//===- CombineAtomically.h - Updates of elements by many threads -*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_COMBINEATOMICALLY_H
#define SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_COMBINEATOMICALLY_H

#include "Movement/UpdateLoop.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// Where atomic operations are seen, as the llvm dialect says it.
inline constexpr llvm::StringLiteral kAtomicScope = "device";

/// Combines the element at `address` with that of an update which has an old
/// one, as if no other thread did so at the same time. `mapping` has what the
/// update uses.
void combineAtomically(mlir::ImplicitLocOpBuilder &b, const Update &update,
                       const mlir::IRMapping &mapping, mlir::Value address);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MOVEMENT_COMBINEATOMICALLY_H
