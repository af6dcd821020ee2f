//===- TensorMap.h - What copies by hardware go by --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_TENSORMAP_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_TENSORMAP_H

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// The words of RuntimeABI.h for a tensor map, which the host makes at the
/// builder's place: a vector of them, as sdx.launch takes it.
mlir::Value describeTensor(mlir::OpBuilder &b, TensorMapOp map);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_TENSORMAP_H
