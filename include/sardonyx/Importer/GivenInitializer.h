//===- GivenInitializer.h - Tensors for a model's constants -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_IMPORTER_GIVENINITIALIZER_H
#define SARDONYX_IMPORTER_GIVENINITIALIZER_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sardonyx {

/// A tensor in the place of an initializer.
struct GivenInitializer {
  /// A TensorProto.DataType of one byte or more for each element.
  int32_t elementType = 0;
  std::vector<int64_t> shape;
  /// The elements as raw_data has them; of strings, each one.
  std::string bytes;
  std::vector<std::string> strings;
  /// Must take the place of one with external data, of the same type and shape.
  bool isExternal = false;
};
using GivenInitializers = std::map<std::string, GivenInitializer>;

} // namespace sardonyx

#endif // SARDONYX_IMPORTER_GIVENINITIALIZER_H
