//===- TestBlocks.h - Searches on vectors -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_TESTBLOCKS_H
#define SARDONYX_LIB_TARGETS_CPU_TESTBLOCKS_H

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx::cpu {

/// Has searches of `func` (sdx.any) test a vector of indices at a time where
/// their tests read neighbouring elements.
void testBlocks(mlir::func::FuncOp func, TargetAttr target);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_TESTBLOCKS_H
