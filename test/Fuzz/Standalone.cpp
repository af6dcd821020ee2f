//===- Standalone.cpp - A fuzz target without libFuzzer -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fuzz-importer-fast FOLDER FIRST COUNT [FILE]
//
// Input number i is an input of FOLDER, changed a few times by the target's
// mutator; nothing but the number decides how. Neither sanitizers nor coverage:
// many times as many inputs as libFuzzer tries in the same time, of the code as
// it is shipped. Before each input its number is written to the standard output
// (or, if it is given, FILE), so that the last one tells which was fatal; with
// COUNT 0 the input FIRST itself is written to FILE.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed);

static std::mt19937_64 engine;

/// What targets call where they change bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize) {
  if (size == 0) {
    data[0] = uint8_t(engine());
    return 1;
  }
  size_t at = engine() % size;
  switch (engine() % 4) {
  case 0:
    data[at] = uint8_t(engine());
    return size;
  case 1:
    data[at] ^= uint8_t(1u << engine() % 8);
    return size;
  case 2:
    return at + 1; // cut off
  default: {
    size_t length = std::min({size - at, maxSize - size, size_t(16)});
    memmove(data + at + length, data + at, size - at);
    return size + length;
  }
  }
}

static std::vector<std::string> readFolder(const char *folder) {
  std::vector<std::string> paths, inputs;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file),
                        std::istreambuf_iterator<char>());
  }
  return inputs;
}

static std::vector<uint8_t> makeInput(const std::vector<std::string> &inputs,
                                      uint64_t number) {
  constexpr size_t most = 32768;
  engine.seed(number);
  const std::string &base = inputs[engine() % inputs.size()];
  std::vector<uint8_t> data(most);
  size_t size = std::min(base.size(), most);
  memcpy(data.data(), base.data(), size);
  for (unsigned changes = 1 + engine() % 4; changes--;)
    size = LLVMFuzzerCustomMutator(data.data(), size, most, unsigned(engine()));
  data.resize(size);
  return data;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s FOLDER FIRST COUNT [FILE]\n", argv[0]);
    return 2;
  }
  std::vector<std::string> inputs = readFolder(argv[1]);
  uint64_t first = strtoull(argv[2], nullptr, 10);
  uint64_t count = strtoull(argv[3], nullptr, 10);
  if (inputs.empty())
    return 2;
  FILE *log = argc > 4 ? fopen(argv[4], "wb") : stdout;
  if (!log)
    return 2;
  if (count == 0) {
    std::vector<uint8_t> data = makeInput(inputs, first);
    fwrite(data.data(), 1, data.size(), log);
    return fclose(log) != 0;
  }
  auto start = std::chrono::steady_clock::now();
  for (uint64_t number = first; number != first + count; ++number) {
    fprintf(log, "%llu\n", static_cast<unsigned long long>(number));
    fflush(log);
    std::vector<uint8_t> data = makeInput(inputs, number);
    alarm(60); // a hang ends the process, too
    LLVMFuzzerTestOneInput(data.data(), data.size());
  }
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  fprintf(stderr, "%llu inputs in %.0f s\n",
          static_cast<unsigned long long>(count), seconds.count());
  return 0;
}
