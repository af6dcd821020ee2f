//===- CPUAttrs.td - All attributes of the cpu dialect -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_ATTRS
#define SARDONYX_CPU_ATTRS

include "dialects/CPU/CPULayout.td"
include "dialects/CPU/CPULoopPlans.td"
include "dialects/CPU/CPUPlan.td"
include "dialects/CPU/CPUTarget.td"

#endif // SARDONYX_CPU_ATTRS
