//===- Half.h - Weights of f16 ----------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_MICROKERNELS_HALF_H
#define SARDONYX_LIB_TARGETS_CPU_MICROKERNELS_HALF_H

#include "MicroKernels/MicroKernel.h"

namespace sardonyx::cpu {

/// The tile's columns of `panel` at `k`, as f32.
mlir::Value emitHalves(mlir::ImplicitLocOpBuilder &b, const PackedTile &tile,
                       mlir::Value panel, mlir::Value k);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_MICROKERNELS_HALF_H
