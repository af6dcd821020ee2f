//===- CaseFunctions.cpp - StringNormalizer -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By itself, for it takes a library that artifacts for other machines lack.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>
#include <utf8proc.h>

using namespace sardonyx::runtime;

/// The text with each character in lower or upper case, by Unicode's simple
/// mappings, which no locale changes.
static std::string changeCase(std::string_view text, bool upper) {
  std::string result;
  auto *bytes = reinterpret_cast<const utf8proc_uint8_t *>(text.data());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t character;
    utf8proc_ssize_t length =
        utf8proc_iterate(bytes + at, text.size() - at, &character);
    if (length <= 0) {
      result += text[at++];
      continue;
    }
    at += length;
    // The sharp s has no capital in Unicode's simple mappings.
    constexpr utf8proc_int32_t kSharpS = 0xdf;
    if (!upper)
      character = utf8proc_tolower(character);
    else if (character != kSharpS)
      character = utf8proc_toupper(character);
    utf8proc_uint8_t buffer[4];
    utf8proc_ssize_t written = utf8proc_encode_char(character, buffer);
    result.append(reinterpret_cast<char *>(buffer), written);
  }
  return result;
}

/// x, stop words, whether case matters -> 1 for each of x that stays.
static void isNoStopWord(RuntimeCall &call) {
  auto x = call.tensor<int64_t>(), words = call.tensor<int64_t>();
  bool caseMatters = call.number() != 0;
  auto stays = call.tensor<int64_t>();
  auto plain = [&](int64_t handle) {
    std::string_view text = call.strings().textOf(handle);
    return caseMatters ? handle
                       : call.strings().handleOf(changeCase(text, false));
  };
  std::vector<int64_t> stop;
  for (int64_t word : words)
    stop.push_back(plain(word));
  std::sort(stop.begin(), stop.end());
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    stays.data[i] =
        !std::binary_search(stop.begin(), stop.end(), plain(x.data[i]));
}

/// x, whether to upper case -> each in that case.
static void toCase(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  bool upper = call.number() != 0;
  auto out = call.tensor<int64_t>();
  for (int64_t i = 0, e = x.count(); i < e; ++i)
    out.data[i] = call.strings().handleOf(
        changeCase(call.strings().textOf(x.data[i]), upper));
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_is_no_stop_word, isNoStopWord)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_to_case, toCase)
