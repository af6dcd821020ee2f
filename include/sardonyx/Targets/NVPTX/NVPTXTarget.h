//===- NVPTXTarget.h - The target of NVIDIA's GPUs --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_NVPTXTARGET_H
#define SARDONYX_TARGETS_NVPTX_NVPTXTARGET_H

#include "sardonyx/Targets/Target.h"

namespace sardonyx {

/// GPUs of NVIDIA's: their dialect and how code is made for them
/// (lib/Targets/NVPTX).
TargetInfo getNVPTXTarget();

} // namespace sardonyx

#endif // SARDONYX_TARGETS_NVPTX_NVPTXTARGET_H
