//===- RunsOnce.h - Kernels that run once for each session ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_RUNSONCE_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_RUNSONCE_H

#include "llvm/ADT/StringRef.h"

namespace sardonyx::cpu {

/// On kernels that run once for each session: less code is worth more there
/// than time.
inline constexpr llvm::StringLiteral kRunsOnceAttr = "cpu.runs_once";

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_RUNSONCE_H
