//===- Types.h - Element types and descriptions of values -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_TYPES_H
#define SARDONYX_MODEL_TYPES_H

#include "sardonyx/Model/Export.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// The element types of tensors, numbered as in onnx.TensorProto.DataType.
enum class ElementType : int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Bfloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  Uint4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  Uint2 = 25,
  Int2 = 26,
  Float6E2M3 = 27,
  Float6E3M2 = 28,
};

/// ONNX's name: "float", "int64", "bfloat16"; "undefined" for what is no type.
SARDONYX_API const char *nameOf(ElementType type);
/// The type of that name.
SARDONYX_API std::optional<ElementType> parseElementType(std::string_view name);
/// Bytes of one element in memory, where a bool and a sub-byte element take a
/// byte and a string is a StringSpan; 0 for what is no type.
SARDONYX_API int64_t byteSizeOf(ElementType type);

/// An element of a tensor of strings: UTF-8, not ended by a zero.
struct StringSpan {
  const char *data = nullptr;
  size_t size = 0;

  std::string_view text() const { return {data, size}; }
};

/// A dimension: a size, or a name (equal ones are meant to be equal sizes if
/// isNameOfSize() says so), or neither.
struct Dim {
  int64_t size = -1;
  std::string symbol;

  bool isStatic() const { return size >= 0; }
};

enum class ValueKind : uint8_t {
  Tensor,
  Sequence,
  Nothing, ///< What an optional holds that holds nothing.
  Map,     ///< Keys and values, lists of one length.
};

/// An input or output of a model.
struct ValueInfo {
  std::string name;
  /// "tensor(float)", "seq(tensor(int64))", as onnxruntime spells it.
  std::string type;
  /// Undefined where the value is a sequence, an optional or a map.
  ElementType elementType = ElementType::Undefined;
  bool hasRank = false;
  std::vector<Dim> dims;

  /// Of sequences and optionals: the one tensor, or map, that says what all
  /// inside are. Of maps: keys and values. Empty for a tensor, and for a type
  /// that is not supported.
  std::vector<ValueInfo> items;
  bool isSequence = false, isOptional = false, isMap = false;

  /// Of the tensors inside, of a map that of its values; of a tensor its own.
  ElementType innerType() const {
    return items.empty() ? elementType : items.back().innerType();
  }

  /// What says of a map, or of a sequence of maps, what is in it; else null.
  const ValueInfo *map() const {
    if (isMap)
      return this;
    return isSequence && items.size() == 1 && items[0].isMap ? &items[0]
                                                             : nullptr;
  }
};

/// Whether compiled code has handles in the place of the value.
inline bool isHandled(const ValueInfo &info) {
  return !info.items.empty() || info.elementType == ElementType::String;
}

/// Bytes of an element in compiled code's memory.
inline int64_t storedBytesOf(ElementType type) {
  return type == ElementType::String ? sizeof(int64_t) : byteSizeOf(type);
}
inline int64_t storedBytesOf(const ValueInfo &info) {
  return isHandled(info) ? sizeof(int64_t) : byteSizeOf(info.elementType);
}

/// "[batch, 3, 224, 224]"; "[?, 3]" where a dimension is open.
SARDONYX_API std::string describeShape(const std::vector<Dim> &dims);
SARDONYX_API std::string describeShape(const std::vector<int64_t> &sizes);

/// What a model file says about itself.
struct ModelMetadata {
  std::string producerName, producerVersion, graphName, domain, description;
  int64_t modelVersion = 0;
  int64_t irVersion = 0;
  std::vector<std::pair<std::string, std::string>> custom;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_TYPES_H
