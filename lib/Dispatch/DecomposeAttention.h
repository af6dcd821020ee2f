//===- DecomposeAttention.h - Attention as loops ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_DECOMPOSEATTENTION_H
#define SARDONYX_LIB_DISPATCH_DECOMPOSEATTENTION_H

#include "dialects/SDX/SDX.h"

namespace sardonyx {

/// What `op` computes, by linalg operations.
mlir::Value decomposeAttention(mlir::OpBuilder &b, sdx::AttentionOp op);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_DECOMPOSEATTENTION_H
