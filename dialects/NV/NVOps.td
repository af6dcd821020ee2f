//===- NVOps.td - All of the nv dialect --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NV_OPS
#define SARDONYX_NV_OPS

include "dialects/NV/NVTarget.td"

#endif // SARDONYX_NV_OPS
