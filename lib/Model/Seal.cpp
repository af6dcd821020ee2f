//===- Seal.cpp - Whether a file is whole ---------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Seal.h"
#include "sardonyx/Runtime/ThreadPool.h"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace sardonyx;

namespace {
struct Seal {
  char magic[16];
  /// Of the file before the seal, and where the weights are in it.
  uint64_t bytes, weightsOffset, weightsBytes;
  /// Of the weights, and of all else up to here.
  uint64_t weightsHash, hash;
};
} // namespace

static constexpr char kMagic[16] = "sardonyx seal 2";

uint64_t sardonyx::hashOfMuch(std::string_view bytes, unsigned threads) {
  constexpr size_t kPiece = size_t(4) << 20;
  struct Work {
    std::string_view bytes;
    std::vector<uint64_t> hashes;
  } work{bytes, std::vector<uint64_t>((bytes.size() + kPiece - 1) / kPiece)};
  runtime::ThreadPool &pool = runtime::ThreadPool::global();
  pool.parallelFor(
      static_cast<int64_t>(work.hashes.size()), 1,
      [](int64_t begin, int64_t end, void *env) {
        auto *work = static_cast<Work *>(env);
        for (; begin < end; ++begin) {
          std::string_view piece = work->bytes.substr(begin * kPiece, kPiece);
          work->hashes[begin] = XXH3_64bits(piece.data(), piece.size());
        }
      },
      &work, threads ? threads : pool.defaultThreads(), nullptr);
  return XXH3_64bits(work.hashes.data(), work.hashes.size() * 8);
}

/// The hash of all but the weights and of what a seal says before it.
static uint64_t hashRest(std::string_view bytes, const Seal &seal) {
  const uint64_t weightsEnd = seal.weightsOffset + seal.weightsBytes;
  const uint64_t hashes[] = {hashOfMuch(bytes.substr(0, seal.weightsOffset)),
                             hashOfMuch(bytes.substr(weightsEnd)),
                             XXH3_64bits(&seal, offsetof(Seal, hash))};
  return XXH3_64bits(hashes, sizeof(hashes));
}

std::string sardonyx::sealOf(std::string_view bytes, uint64_t weightsOffset,
                             uint64_t weightsBytes) {
  Seal seal;
  memcpy(seal.magic, kMagic, sizeof(kMagic));
  seal.bytes = bytes.size();
  seal.weightsOffset = weightsOffset;
  seal.weightsBytes = weightsBytes;
  seal.weightsHash = hashOfMuch(bytes.substr(weightsOffset, weightsBytes));
  seal.hash = hashRest(bytes, seal);
  return std::string(reinterpret_cast<const char *>(&seal), sizeof(seal));
}

Expected<std::optional<uint64_t>> sardonyx::checkSeal(std::string_view file,
                                                      const std::string &path) {
  auto refuse = [&](const char *why) {
    return Error(ErrorKind::InvalidModel, "'" + path + "' " + why);
  };
  if (file.size() < sizeof(Seal))
    return refuse("is no model that 'sardonyx build' has made");
  Seal seal;
  std::string_view bytes = file.substr(0, file.size() - sizeof(Seal));
  memcpy(&seal, file.data() + bytes.size(), sizeof(seal));
  if (memcmp(seal.magic, kMagic, sizeof(kMagic)) != 0)
    return refuse("is no model that 'sardonyx build' has made, or it is cut "
                  "off");
  if (seal.bytes != bytes.size() || seal.weightsOffset > bytes.size() ||
      seal.weightsBytes > bytes.size() - seal.weightsOffset ||
      seal.hash != hashRest(bytes, seal))
    return refuse("is damaged");
  return seal.weightsBytes ? std::optional<uint64_t>(seal.weightsHash)
                           : std::nullopt;
}
