//===- CustomNode.h - Nodes of operators that callers bring --- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_CUSTOMNODE_H
#define SARDONYX_MODEL_CUSTOMNODE_H

#include "sardonyx/Model/Types.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// What is known of an input or output.
struct CustomType {
  /// False for one that the node leaves out.
  bool isPresent = false;
  /// Undefined where it is not known.
  ElementType type = ElementType::Undefined;
  bool hasRank = false;
  /// -1 for a size that only the run knows.
  std::vector<int64_t> shape;

  bool operator==(const CustomType &other) const {
    return isPresent == other.isPresent && type == other.type &&
           hasRank == other.hasRank && shape == other.shape;
  }
};

struct CustomAttribute {
  enum Kind : uint8_t { Int, Float, String, Ints, Floats, Strings, Tensor };
  std::string name;
  Kind kind = Int;
  /// One where it is no list; the sizes of a tensor.
  std::vector<int64_t> ints;
  std::vector<float> floats;
  /// Also the elements of a tensor of strings.
  std::vector<std::string> strings;
  ElementType type = ElementType::Undefined;
  /// The elements of a tensor, as they lie in memory.
  std::string data;
};

struct CustomNode {
  /// May be empty.
  std::string name;
  std::string domain, opType;
  /// Of the domain, as the model imports it.
  int64_t version = 1;
  std::vector<CustomAttribute> attributes;
  /// By position.
  std::vector<CustomType> inputs, outputs;

  /// Null where there is none of this name and kind.
  const CustomAttribute *find(std::string_view name,
                              CustomAttribute::Kind kind) const;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_CUSTOMNODE_H
