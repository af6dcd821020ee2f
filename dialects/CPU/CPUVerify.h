//===- CPUVerify.h - What verifiers of packed ops share ---------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_CPU_CPUVERIFY_H
#define SARDONYX_DIALECTS_CPU_CPUVERIFY_H

#include "dialects/CPU/CPU.h"

namespace sardonyx::cpu {

/// What is wrong with panels of `width` numbers of 21 or 24 bits.
inline llvm::LogicalResult verifyShortPanels(mlir::Operation *op,
                                             int64_t width) {
  constexpr int64_t kLeastWidth = 8;
  if (width < kLeastWidth || !llvm::isPowerOf2_64(width))
    return op->emitOpError("panels of numbers of 21 or 24 bits must have a "
                           "power of two of columns, from ")
           << kLeastWidth << " on, but have " << width;
  return mlir::success();
}

} // namespace sardonyx::cpu

#endif // SARDONYX_DIALECTS_CPU_CPUVERIFY_H
