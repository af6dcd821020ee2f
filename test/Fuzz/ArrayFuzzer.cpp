//===- ArrayFuzzer.cpp - Hostile .npy and .npz files ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/sardonyx/ArrayFile.h"
#include "tools/sardonyx/ZipFile.h"
#include <stdexcept>

/// An array has as many bytes as its shape says.
static void check(const Array &array) {
  int64_t bytes = sardonyx::byteSizeOf(array.type);
  for (int64_t size : array.shape)
    bytes *= size;
  if (bytes < 0 || array.bytes.size() != static_cast<uint64_t>(bytes))
    __builtin_trap();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view file(reinterpret_cast<const char *>(data), size);
  try {
    if (file.substr(0, 2) != "PK")
      check(parseNpy(file));
    else
      for (const auto &[name, bytes] : readZip(file))
        check(parseNpy(bytes));
  } catch (const std::runtime_error &) {
    // refused with a sentence
  }
  return 0;
}
