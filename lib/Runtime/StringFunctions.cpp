//===- StringFunctions.cpp - What compiled code does with strings ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors of strings are tensors of handles (StringTable.h). Texts are UTF-8;
// bytes that are none stay as they are.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>

using namespace sardonyx::runtime;

//===----------------------------------------------------------------------===//
// StringConcat
//===----------------------------------------------------------------------===//

/// a, b -> each of a followed by that of b. All have one shape.
static void concat(RuntimeCall &call) {
  auto a = call.tensor<int64_t>(), b = call.tensor<int64_t>();
  auto out = call.tensor<int64_t>();
  StringTable &strings = call.strings();
  std::string text;
  for (int64_t i = 0, e = out.count(); i < e; ++i) {
    text = strings.textOf(a.data[i]);
    text += strings.textOf(b.data[i]);
    out.data[i] = strings.handleOf(text);
  }
}

//===----------------------------------------------------------------------===//
// StringSplit
//===----------------------------------------------------------------------===//

static bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

/// Calls `give` with each part of `text`, as Python's str.split makes them.
/// Without a separator runs of white space separate, those at the ends too.
template <typename F>
static void split(std::string_view text, std::string_view separator,
                  int64_t mostSplits, F give) {
  if (!separator.empty()) {
    for (int64_t splits = 0; mostSplits < 0 || splits < mostSplits; ++splits) {
      size_t at = text.find(separator);
      if (at == text.npos)
        break;
      give(text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
    return give(text);
  }
  auto skip = [&] {
    while (!text.empty() && isSpace(text.front()))
      text.remove_prefix(1);
  };
  skip();
  for (int64_t splits = 0; !text.empty(); ++splits) {
    if (mostSplits >= 0 && splits == mostSplits) {
      while (!text.empty() && isSpace(text.back()))
        text.remove_suffix(1);
      return give(text);
    }
    size_t length = 0;
    while (length < text.size() && !isSpace(text[length]))
      ++length;
    give(text.substr(0, length));
    text.remove_prefix(length);
    skip();
  }
}

/// x, separator, most splits (-1: any) -> for each how many parts it has, and
/// the most of them.
static void splitCounts(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  std::string_view separator = call.strings().textOf(call.number());
  int64_t mostSplits = call.number();
  auto counts = call.tensor<int64_t>(), most = call.tensor<int64_t>();
  *most.data = 0;
  for (int64_t i = 0, e = x.count(); i < e; ++i) {
    int64_t count = 0;
    split(call.strings().textOf(x.data[i]), separator, mostSplits,
          [&](std::string_view) { ++count; });
    counts.data[i] = count;
    *most.data = std::max(*most.data, count);
  }
}

/// x, separator, most splits -> the parts of each, and empty strings behind.
static void splitParts(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  std::string_view separator = call.strings().textOf(call.number());
  int64_t mostSplits = call.number();
  auto parts = call.tensor<int64_t>();
  int64_t width = parts.sizes[parts.rank - 1];
  std::fill(parts.begin(), parts.end(), 0);
  for (int64_t i = 0, e = x.count(); i < e; ++i) {
    int64_t *row = parts.data + i * width, *end = row + width;
    split(call.strings().textOf(x.data[i]), separator, mostSplits,
          [&](std::string_view part) {
            if (row != end)
              *row++ = call.strings().handleOf(part);
          });
  }
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// x -> numbers that compare as the strings do, byte by byte.
static void ranks(RuntimeCall &call) {
  auto x = call.tensor<int64_t>(), out = call.tensor<int64_t>();
  std::vector<int64_t> handles(x.begin(), x.end());
  std::sort(handles.begin(), handles.end());
  handles.erase(std::unique(handles.begin(), handles.end()), handles.end());
  std::vector<std::pair<std::string_view, int64_t>> order;
  for (int64_t handle : handles)
    order.emplace_back(call.strings().textOf(handle), handle);
  std::sort(order.begin(), order.end());
  std::unordered_map<int64_t, int64_t> rankOf;
  for (auto &[text, handle] : order)
    rankOf.emplace(handle, static_cast<int64_t>(rankOf.size()));
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    out.data[i] = rankOf[x.data[i]];
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_concat, concat)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_split_counts, splitCounts)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_split_parts, splitParts)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_ranks, ranks)
