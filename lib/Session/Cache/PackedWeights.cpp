//===- PackedWeights.cpp - Weights as kernels read them -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Cache/PackedWeights.h"
#include "lib/Session/Cache/PiecewiseHash.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <optional>

using namespace sardonyx;

/// First bytes of a file; the number goes up with the format.
static constexpr char kMagic[16] = "sardonyx pack 1";
static constexpr uint64_t kAlignment = 64;

namespace {
struct Header {
  char magic[16];
  /// Of what follows up to the tensors, and of the tensors.
  uint64_t checksumLow, checksumHigh;
};
} // namespace

static uint64_t alignUp(uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t PackedTensor::bytes() const {
  uint64_t count = elementBytes;
  for (int64_t size : sizes)
    count *= static_cast<uint64_t>(size);
  return count;
}

static std::string_view dataOf(const PackedTensor &tensor) {
  return {static_cast<const char *>(tensor.data), tensor.bytes()};
}

static uint64_t hashOf(std::string_view bytes) {
  return llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

/// The header of a file whose first tensor follows upon `front`.
static Header headerOf(std::string_view front,
                       const std::vector<PackedTensor> &tensors) {
  std::vector<std::string_view> texts{front};
  for (const PackedTensor &tensor : tensors)
    texts.push_back(dataOf(tensor));
  std::vector<uint64_t> hashes = hashPieces(texts, hashOf);
  auto hash = llvm::xxh3_128bits(
      {reinterpret_cast<const uint8_t *>(hashes.data()), hashes.size() * 8});
  Header header;
  memcpy(header.magic, kMagic, sizeof(kMagic));
  header.checksumLow = hash.low64;
  header.checksumHigh = hash.high64;
  return header;
}

/// Length and text of the owner, then count and shapes of the tensors.
static std::string frontOf(const std::string &owner,
                           const std::vector<PackedTensor> &tensors) {
  std::string front;
  auto add = [&](uint64_t number) {
    front.append(reinterpret_cast<const char *>(&number), sizeof(number));
  };
  add(owner.size());
  front += owner;
  add(tensors.size());
  for (const PackedTensor &tensor : tensors) {
    add(tensor.sizes.size());
    for (int64_t size : tensor.sizes)
      add(static_cast<uint64_t>(size));
  }
  return front;
}

std::vector<std::string_view>
sardonyx::layOutWeights(const std::string &owner,
                        const std::vector<PackedTensor> &tensors,
                        std::string &memory) {
  const std::string front = frontOf(owner, tensors);
  Header header = headerOf(front, tensors);
  memory.assign(reinterpret_cast<const char *>(&header), sizeof(header));
  memory += front;
  // Zeros for the gaps come last; nothing moves from here on.
  const uint64_t frontBytes = memory.size();
  memory.append(kAlignment, '\0');
  std::string_view all = memory, gap = all.substr(frontBytes);

  std::vector<std::string_view> pieces{all.substr(0, frontBytes)};
  uint64_t end = frontBytes;
  for (const PackedTensor &tensor : tensors) {
    pieces.push_back(gap.substr(0, alignUp(end) - end));
    pieces.push_back(dataOf(tensor));
    end = alignUp(end) + tensor.bytes();
  }
  return pieces;
}

namespace {

/// Reads numbers and texts; what isn't there fails.
class FrontReader {
public:
  explicit FrontReader(std::string_view bytes) : rest(bytes) {}

  std::optional<uint64_t> number() {
    uint64_t value;
    std::optional<std::string_view> bytes = text(sizeof(value));
    if (!bytes)
      return std::nullopt;
    memcpy(&value, bytes->data(), sizeof(value));
    return value;
  }
  std::optional<std::string_view> text(uint64_t size) {
    if (size > rest.size())
      return std::nullopt;
    std::string_view result = rest.substr(0, size);
    rest.remove_prefix(size);
    return result;
  }
  std::string_view rest;
};

} // namespace

/// The shape of the next tensor, or false where it is none of a tensor with
/// `most` bytes.
static bool readShape(FrontReader &reader, uint64_t most,
                      PackedTensor &tensor) {
  std::optional<uint64_t> rank = reader.number();
  if (!rank || *rank > reader.rest.size() / sizeof(uint64_t))
    return false;
  int64_t bytes = tensor.elementBytes;
  for (uint64_t i = 0; i < *rank; ++i) {
    auto size = static_cast<int64_t>(*reader.number());
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes) ||
        static_cast<uint64_t>(bytes) > most)
      return false;
    tensor.sizes.push_back(size);
  }
  return true;
}

std::shared_ptr<const PackedWeights>
sardonyx::readWeights(std::shared_ptr<FileMap> file, const std::string &owner,
                      const std::vector<uint32_t> &elementBytes,
                      bool isTrusted) {
  const std::string_view bytes = file->bytes();
  FrontReader reader(bytes);
  std::optional<std::string_view> head = reader.text(sizeof(Header));
  if (!head || memcmp(head->data(), kMagic, sizeof(kMagic)) != 0 ||
      reader.number() != owner.size() || reader.text(owner.size()) != owner ||
      reader.number() != elementBytes.size())
    return nullptr;

  auto weights = std::make_shared<PackedWeights>();
  for (uint32_t size : elementBytes) {
    PackedTensor &tensor = weights->tensors.emplace_back();
    tensor.elementBytes = size;
    if (!readShape(reader, bytes.size(), tensor))
      return nullptr;
  }
  uint64_t end = bytes.size() - reader.rest.size();
  std::string_view front = bytes.substr(sizeof(Header), end - sizeof(Header));
  for (PackedTensor &tensor : weights->tensors) {
    uint64_t begin = alignUp(end);
    if (begin > bytes.size() || tensor.bytes() > bytes.size() - begin)
      return nullptr;
    tensor.data = bytes.data() + begin;
    end = begin + tensor.bytes();
  }
  if (end != bytes.size())
    return nullptr;
  if (!isTrusted) {
    Header header = headerOf(front, weights->tensors);
    if (memcmp(head->data(), &header, sizeof(header)) != 0)
      return nullptr;
  }
  weights->file = std::move(file);
  return weights;
}
