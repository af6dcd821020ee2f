//===- PiecewiseHash.h - Hashes of much data on all cores -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CACHE_PIECEWISEHASH_H
#define SARDONYX_LIB_SESSION_CACHE_PIECEWISEHASH_H

#include "sardonyx/Runtime/ThreadPool.h"
#include <cstdint>
#include <string_view>
#include <vector>

namespace sardonyx {

/// The hashes of `texts` by pieces of 4 MB, in order, on all cores: 400 MB take
/// as long to hash on one as to read them from a fast disk.
template <typename Hash>
std::vector<Hash> hashPieces(const std::vector<std::string_view> &texts,
                             Hash (*hash)(std::string_view)) {
  constexpr size_t kPiece = size_t(4) << 20;
  struct Work {
    std::vector<std::string_view> pieces;
    std::vector<Hash> hashes;
    Hash (*hash)(std::string_view);
  } work{{}, {}, hash};
  for (std::string_view text : texts)
    for (; !text.empty(); text.remove_prefix(work.pieces.back().size()))
      work.pieces.push_back(text.substr(0, kPiece));
  work.hashes.resize(work.pieces.size());
  runtime::ThreadPool &pool = runtime::ThreadPool::global();
  pool.parallelFor(
      work.pieces.size(), 1,
      [](int64_t begin, int64_t end, void *env) {
        auto *work = static_cast<Work *>(env);
        for (; begin < end; ++begin)
          work->hashes[begin] = work->hash(work->pieces[begin]);
      },
      &work, pool.defaultThreads(), nullptr);
  return std::move(work.hashes);
}

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CACHE_PIECEWISEHASH_H
