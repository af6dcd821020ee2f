//===- PrintValue.cpp - Results for people --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Json.h"
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

namespace {
/// Of a tensor's elements, those that are NaN left out.
struct Statistics {
  double low = INFINITY, high = -INFINITY, mean = NAN;
  int64_t nans = 0;
};
} // namespace

static Statistics statisticsOf(const Tensor &tensor) {
  Statistics result;
  double sum = 0;
  const int64_t count = tensor.elements();
  for (int64_t i = 0; i < count; ++i) {
    double value = elementAt(tensor, i);
    if (std::isnan(value)) {
      ++result.nans;
      continue;
    }
    result.low = std::min(result.low, value);
    result.high = std::max(result.high, value);
    sum += value;
  }
  if (count > result.nans)
    result.mean = sum / static_cast<double>(count - result.nans);
  return result;
}

static void printTensor(const std::string &name, const Tensor &tensor) {
  int64_t count = tensor.elements();
  printf("%s: %s %s", name.c_str(), nameOf(tensor.type),
         describeShape(tensor.shape).c_str());
  if (count > 0 && tensor.type != ElementType::String) {
    const Statistics statistics = statisticsOf(tensor);
    printf("  min %.6g  mean %.6g  max %.6g", statistics.low, statistics.mean,
           statistics.high);
    if (statistics.nans)
      printf("  %lld NaN", static_cast<long long>(statistics.nans));
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

//===----------------------------------------------------------------------===//
// For programs
//===----------------------------------------------------------------------===//

/// Numbers of larger tensors are left out.
static constexpr int64_t kMaxValues = 1024;

static void addElement(JsonReport &json, const Tensor &tensor, int64_t i) {
  if (tensor.type == ElementType::String)
    json.item(
        std::string(static_cast<const StringSpan *>(tensor.data)[i].text()));
  else if (tensor.type == ElementType::Int64)
    json.item(static_cast<const int64_t *>(tensor.data)[i]);
  else
    json.item(elementAt(tensor, i));
}

void addValue(JsonReport &json, const std::string &name, const Tensor &value) {
  static const char *const kKinds[] = {"tensor", "sequence", "nothing", "map"};
  json.add("name", name);
  json.add("kind", std::string(kKinds[static_cast<size_t>(value.kind)]));
  if (value.kind != ValueKind::Tensor) {
    json.list("items", [&] {
      for (const Tensor &item : value.items)
        json.object([&] { addValue(json, "", item); });
    });
    return;
  }
  json.add("type", std::string(nameOf(value.type)));
  json.add("shape", value.shape);
  const int64_t count = value.elements();
  if (count <= kMaxValues)
    json.list("values", [&] {
      for (int64_t i = 0; i < count; ++i)
        addElement(json, value, i);
    });
  else
    json.addNull("values");
  if (value.type == ElementType::String)
    return;
  const Statistics statistics = statisticsOf(value);
  json.add("min", statistics.low);
  json.add("mean", statistics.mean);
  json.add("max", statistics.high);
  json.add("nan", statistics.nans);
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
