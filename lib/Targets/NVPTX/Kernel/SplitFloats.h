//===- SplitFloats.h - f32 as the sum of two bf16 ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensor cores multiply a b of f32 as ah bh + ah bl + al bh, where ah is a
// rounded to bf16 and al what is left, rounded, too (bf16x3). al bl, at most
// 2^-16 of it, is left out.
//
// An infinity is 1 + inf. As inf + 0 it would be multiplied by the low part of
// the other side, which may be 0 or have the other sign: the sum would be NaN.
// So are numbers that round to an infinity of bf16, which are 1 + the largest
// bf16. NaN is NaN in its low part. All parts of other numbers are finite.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_SPLITFLOATS_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_SPLITFLOATS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// The parts of two numbers, two bf16 in 32 bits each.
struct SplitPair {
  mlir::Value high, low;
};

/// `first` has the lower 16 bits.
SplitPair splitPair(mlir::ImplicitLocOpBuilder &b, mlir::Value first,
                    mlir::Value second);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_SPLITFLOATS_H
