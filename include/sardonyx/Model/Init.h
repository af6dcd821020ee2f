//===- Init.h - What a model computes once ----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_INIT_H
#define SARDONYX_MODEL_INIT_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Model.h"
#include "sardonyx/Runtime/RunContext.h"
#include <cstdint>
#include <vector>

namespace sardonyx {

/// Runs a model's `sdx_init` with these arguments. `context`, which has no
/// outputs before, has its results as outputs afterwards, all of them there:
/// number i is of elements of so many bytes, and on the device where `onDevice`
/// says so; empty: all are on the host.
MaybeError runInit(runtime::RunContext &context, sdx_entry_point init,
                   ArgumentTable &arguments,
                   const std::vector<uint32_t> &elementBytes,
                   const std::vector<bool> &onDevice = {},
                   const runtime::RunLimits &limits = {});

} // namespace sardonyx

#endif // SARDONYX_MODEL_INIT_H
