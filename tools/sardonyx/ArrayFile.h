//===- ArrayFile.h - numpy's .npy and .npz files ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_ARRAYFILE_H
#define SARDONYX_TOOLS_SARDONYX_ARRAYFILE_H

#include "sardonyx/Model/Types.h"
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// An array, row by row.
struct Array {
  sardonyx::ElementType type = sardonyx::ElementType::Undefined;
  std::vector<int64_t> shape;
  std::string bytes;
};

/// All of these throw std::runtime_error with a sentence.

/// Reads the contents of a .npy file. Types that numpy lacks come out as the
/// unsigned integers of their size ("V2" and the like).
Array parseNpy(std::string_view file);
/// Reads a .npy file.
Array readNpy(const std::string &path);
/// Reads a .npz file: arrays by name.
std::map<std::string, Array> readNpz(const std::string &path);
/// Writes a .npy file, which errors call `shown`; types that numpy lacks as
/// unsigned integers.
void writeNpy(const std::string &path, const std::string &shown,
              sardonyx::ElementType type, const std::vector<int64_t> &shape,
              const void *data, size_t bytes);

std::string readWholeFile(const std::string &path);

#endif // SARDONYX_TOOLS_SARDONYX_ARRAYFILE_H
