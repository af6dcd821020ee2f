//===- DecomposeAttention.h - Attention as loops ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_DECOMPOSEATTENTION_H
#define SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_DECOMPOSEATTENTION_H

#include "dialects/NV/NV.h"

namespace sardonyx::nv {

/// What `op` computes, by linalg operations.
mlir::Value decomposeAttention(mlir::OpBuilder &b, AttentionOp op);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ATTENTION_DECOMPOSEATTENTION_H
