//===- CPUTarget.h - The target of processors -------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_CPU_CPUTARGET_H
#define SARDONYX_TARGETS_CPU_CPUTARGET_H

#include "sardonyx/Targets/Target.h"

namespace sardonyx {

/// The CPU: its dialect and how code is made for it (lib/Targets/CPU).
TargetInfo getCPUTarget();

} // namespace sardonyx

#endif // SARDONYX_TARGETS_CPU_CPUTARGET_H
