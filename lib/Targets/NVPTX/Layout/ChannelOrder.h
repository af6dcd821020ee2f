//===- ChannelOrder.h - Channels first and last -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_CHANNELORDER_H
#define SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_CHANNELORDER_H

#include "llvm/ADT/SmallVector.h"

namespace sardonyx::nv {

/// The permutation [0, 2, ..., r-1, 1] that makes [N,S...,C] of [N,C,S...].
inline llvm::SmallVector<int64_t> orderLast(int64_t rank) {
  llvm::SmallVector<int64_t> order = {0};
  for (int64_t dim = 2; dim < rank; ++dim)
    order.push_back(dim);
  order.push_back(1);
  return order;
}

/// The way back, [0, r-1, 1, ..., r-2].
inline llvm::SmallVector<int64_t> orderFirst(int64_t rank) {
  llvm::SmallVector<int64_t> order = {0, rank - 1};
  for (int64_t dim = 1; dim < rank - 1; ++dim)
    order.push_back(dim);
  return order;
}

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_LAYOUT_CHANNELORDER_H
