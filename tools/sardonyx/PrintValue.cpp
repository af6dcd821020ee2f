//===- PrintValue.cpp - Results for people --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace sardonyx;

/// So many elements or items of each value.
static constexpr int64_t kMaxShown = 8;

template <typename T> static double valueAt(const Tensor &tensor, int64_t i) {
  return static_cast<double>(static_cast<const T *>(tensor.data)[i]);
}

/// An element as a double, for people; 0 for types that C++ lacks.
static double elementAt(const Tensor &tensor, int64_t i) {
  switch (tensor.type) {
  case ElementType::Float:
    return valueAt<float>(tensor, i);
  case ElementType::Double:
    return valueAt<double>(tensor, i);
  case ElementType::Float16:
    return valueAt<_Float16>(tensor, i);
  case ElementType::Int8:
    return valueAt<int8_t>(tensor, i);
  case ElementType::Int16:
    return valueAt<int16_t>(tensor, i);
  case ElementType::Int32:
    return valueAt<int32_t>(tensor, i);
  case ElementType::Int64:
    return valueAt<int64_t>(tensor, i);
  case ElementType::Uint8:
  case ElementType::Bool:
    return valueAt<uint8_t>(tensor, i);
  case ElementType::Uint16:
    return valueAt<uint16_t>(tensor, i);
  case ElementType::Uint32:
    return valueAt<uint32_t>(tensor, i);
  case ElementType::Uint64:
    return valueAt<uint64_t>(tensor, i);
  case ElementType::Bfloat16: {
    uint32_t bits = static_cast<const uint16_t *>(tensor.data)[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  default:
    return 0;
  }
}

/// An element for people: a number, or a string in quotes.
static void printElement(const Tensor &tensor, int64_t i) {
  if (tensor.type == ElementType::String) {
    StringSpan text = static_cast<const StringSpan *>(tensor.data)[i];
    bool isLong = text.size > 40;
    printf("\"%.*s%s\"", static_cast<int>(isLong ? 37 : text.size), text.data,
           isLong ? "..." : "");
  } else if (tensor.type == ElementType::Int64) { // more digits than a double
    printf("%lld", static_cast<long long>(
                       static_cast<const int64_t *>(tensor.data)[i]));
  } else {
    printf("%.6g", elementAt(tensor, i));
  }
}

static void printTensor(const std::string &name, const Tensor &tensor) {
  int64_t count = tensor.elements();
  printf("%s: %s %s", name.c_str(), nameOf(tensor.type),
         describeShape(tensor.shape).c_str());
  if (count > 0 && tensor.type != ElementType::String) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < count; ++i) {
      double value = elementAt(tensor, i);
      if (std::isnan(value)) {
        ++bad;
        continue;
      }
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
    }
    printf("  min %.6g  mean %.6g  max %.6g", low, sum / count, high);
    if (bad)
      printf("  %lld NaN", static_cast<long long>(bad));
  }
  printf("\n ");
  for (int64_t i = 0; i < std::min(count, kMaxShown); ++i) {
    printf(" ");
    printElement(tensor, i);
  }
  printf("%s\n", count > kMaxShown ? " ..." : "");
}

static void printMap(const std::string &name, const Tensor &map) {
  const Tensor &keys = map.items[0], &values = map.items[1];
  int64_t count = keys.elements();
  printf("%s: map of %lld\n ", name.c_str(), static_cast<long long>(count));
  for (int64_t i = 0; i < std::min(count, kMaxShown); ++i) {
    printf(" ");
    printElement(keys, i);
    printf(": ");
    printElement(values, i);
  }
  printf("%s\n", count > kMaxShown ? " ..." : "");
}

void printValue(const std::string &name, const Tensor &value) {
  switch (value.kind) {
  case ValueKind::Tensor:
    return printTensor(name, value);
  case ValueKind::Map:
    return printMap(name, value);
  case ValueKind::Nothing:
    printf("%s: nothing\n", name.c_str());
    return;
  case ValueKind::Sequence:
    break;
  }
  int64_t count = static_cast<int64_t>(value.items.size());
  printf("%s: sequence of %lld\n", name.c_str(), static_cast<long long>(count));
  for (int64_t i = 0; i < std::min(count, kMaxShown); ++i)
    printValue(name + "[" + std::to_string(i) + "]", value.items[i]);
  if (count > kMaxShown)
    printf("  ...\n");
}
