//===- CacheFuzzer.cpp - Damaged compiled models --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Cache/PackedWeights.h"
#include "sardonyx/Model/Artifact.h"
#include <cstring>

using namespace sardonyx;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Every byte of tensors that are taken for packed weights is there.
static void readTensors(std::string_view bytes) {
  auto weights = readWeights(FileMap::borrow(bytes.data(), bytes.size()), "",
                             {4, 1}, /*isTrusted=*/true);
  if (!weights)
    return;
  for (const PackedTensor &tensor : weights->tensors) {
    std::string copy(static_cast<const char *>(tensor.data), tensor.bytes());
    if (copy.size() > bytes.size())
      __builtin_trap();
  }
}

/// What is taken for a compiled model is one: it is written as it was read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  auto artifact = deserialize(bytes);
  if (artifact && serialize(*artifact) != bytes)
    __builtin_trap();
  readTensors(bytes);
  return 0;
}

/// One with something in every list.
static std::string sample() {
  Artifact artifact;
  ValueInfo value;
  value.name = "x";
  value.elementType = ElementType::Float;
  value.hasRank = true;
  value.dims.resize(2);
  value.dims[1].symbol = "n";
  artifact.inputs = {value, value};
  artifact.outputs = {value};
  artifact.metadata.producerName = "fuzzer";
  artifact.metadata.custom = {{"key", "value"}};
  artifact.files = {{"", 100, 1}, {"weights", 64, 2}};
  Argument constant;
  constant.kind = Argument::Constant;
  constant.index = 1;
  constant.length = 64;
  constant.shape = {4, 4};
  Argument input;
  artifact.initArgs = {constant};
  artifact.mainArgs = {input, constant};
  artifact.persistentElementBytes = {4};
  artifact.data = std::string(64, 'd');
  artifact.objects = {"an object", "another"};
  return serialize(artifact);
}

static std::string sampleOfWeights() {
  static const float values[20] = {1, 2, 3};
  std::string memory, all;
  for (std::string_view piece :
       layOutWeights("", {{values, 4, {5, 4}}, {values, 1, {}}}, memory))
    all += piece;
  return all;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  static const std::string samples[] = {sample(), sampleOfWeights()};
  const std::string &start = samples[seed / 32 % 2];
  if ((size < 8 || seed % 32 == 0) && start.size() <= maxSize) {
    memcpy(data, start.data(), start.size());
    size = start.size();
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}
