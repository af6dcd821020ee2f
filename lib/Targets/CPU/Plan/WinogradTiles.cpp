//===- WinogradTiles.cpp - Tiles of pictures and of filters ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/WinogradTiles.h"

using namespace sardonyx;
using namespace sardonyx::cpu;

WinogradGroups WinogradGroups::get(const Winograd &algorithm, int64_t lanes,
                                   int64_t height, int64_t width) {
  int64_t tileRows = llvm::divideCeil(height, algorithm.outputs);
  int64_t tileColumns = llvm::divideCeil(width, algorithm.outputs);
  WinogradGroups best{1,
                      tileRows * int64_t(llvm::divideCeil(tileColumns, lanes))};
  for (int64_t rows = 2; rows <= std::min<int64_t>(4, lanes / 2); rows *= 2) {
    int64_t count = llvm::divideCeil(tileRows, rows) *
                    llvm::divideCeil(tileColumns, lanes / rows);
    if (count < best.count)
      best = {rows, count};
  }
  return best;
}
