//===- InitAll.h - Register everything --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_INITALL_H
#define SARDONYX_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace sardonyx {

/// Every dialect, interface model and translation that the compiler uses.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Every pass and pipeline of the project and those of upstream that are used
/// or useful for looking at its IR. Call once in a process.
void registerAllPasses();

} // namespace sardonyx

#endif // SARDONYX_INITALL_H
