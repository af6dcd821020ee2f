//===- RegexFunctions.cpp - RegexFullMatch --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By itself, for it takes a library that files of `sardonyx build` do not have.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <re2/re2.h>

using namespace sardonyx::runtime;

/// x, pattern -> one byte for each: 1 where the whole of it matches.
static void matches(RuntimeCall &call) {
  auto x = call.tensor<int64_t>();
  std::string_view text = call.strings().textOf(call.number());
  auto out = call.tensor<int8_t>();
  re2::RE2 pattern(re2::StringPiece(text.data(), text.size()), re2::RE2::Quiet);
  if (!pattern.ok())
    return call.fail("the pattern '" + std::string(text) +
                     "' is none that RE2 knows: " + pattern.error());
  for (int64_t i = 0, e = x.count(); i < e; ++i) {
    std::string_view subject = call.strings().textOf(x.data[i]);
    out.data[i] = re2::RE2::FullMatch(
        re2::StringPiece(subject.data(), subject.size()), pattern);
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_string_matches, matches)
