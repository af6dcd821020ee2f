//===- ByteFloats.h - Products of floats of eight bits ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_BYTEFLOATS_H
#define SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_BYTEFLOATS_H

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// Has `op`, whose weights are floats of eight bits, take its left-hand side as
/// such where that is what floats of the same type stand for, times one scale
/// or one of each row, and where warpgroups multiply these; whether it does.
/// The result is multiplied by the scale.
bool multiplyByteFloats(sdx::DequantMatmulOp op);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_BYTEFLOATS_H
