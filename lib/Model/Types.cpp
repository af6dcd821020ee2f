//===- Types.cpp - Element types and descriptions of values ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Types.h"

using namespace sardonyx;

namespace {
struct Row {
  const char *name;
  int64_t bytes;
};
} // namespace

static constexpr Row kRows[] = {
    {"undefined", 0},      {"float", 4},      {"uint8", 1},
    {"int8", 1},           {"uint16", 2},     {"int16", 2},
    {"int32", 4},          {"int64", 8},      {"string", sizeof(StringSpan)},
    {"bool", 1},           {"float16", 2},    {"double", 8},
    {"uint32", 4},         {"uint64", 8},     {"complex64", 8},
    {"complex128", 16},    {"bfloat16", 2},   {"float8e4m3fn", 1},
    {"float8e4m3fnuz", 1}, {"float8e5m2", 1}, {"float8e5m2fnuz", 1},
    {"uint4", 1},          {"int4", 1},       {"float4e2m1", 1},
    {"float8e8m0", 1},     {"uint2", 1},      {"int2", 1},
    {"float6e2m3", 1},     {"float6e3m2", 1},
};
static constexpr int32_t kCount = sizeof(kRows) / sizeof(kRows[0]);

static const Row &rowOf(ElementType type) {
  int32_t index = static_cast<int32_t>(type);
  return kRows[index >= 0 && index < kCount ? index : 0];
}

const char *sardonyx::nameOf(ElementType type) { return rowOf(type).name; }

int64_t sardonyx::byteSizeOf(ElementType type) { return rowOf(type).bytes; }

std::optional<ElementType> sardonyx::parseElementType(std::string_view name) {
  for (int32_t i = 1; i < kCount; ++i)
    if (name == kRows[i].name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

std::string sardonyx::describeShape(const std::vector<Dim> &dims) {
  std::string text = "[";
  for (const Dim &dim : dims) {
    if (text.size() > 1)
      text += ", ";
    text += dim.isStatic()       ? std::to_string(dim.size)
            : dim.symbol.empty() ? "?"
                                 : dim.symbol;
  }
  return text + "]";
}

std::string sardonyx::describeShape(const std::vector<int64_t> &sizes) {
  std::string text = "[";
  for (int64_t size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}
