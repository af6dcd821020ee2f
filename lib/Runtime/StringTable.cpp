//===- StringTable.cpp - The strings that handles stand for ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/StringTable.h"

using namespace sardonyx::runtime;

StringLiterals::StringLiterals(std::vector<std::string> given)
    : texts(std::move(given)) {
  for (size_t i = 0; i < texts.size(); ++i)
    handles.emplace(texts[i], static_cast<int64_t>(i + 1));
}

int64_t StringTable::handleOf(std::string_view text) {
  if (text.empty())
    return 0;
  if (literals)
    if (auto found = literals->handles.find(text);
        found != literals->handles.end())
      return found->second;
  if (auto found = handles.find(text); found != handles.end())
    return found->second;
  // What a string takes besides its bytes, about.
  constexpr int64_t kOverhead = 96;
  int64_t bytes = static_cast<int64_t>(text.size()) + kOverhead;
  if (bytes > limit - held) {
    full = true;
    return 0;
  }
  held += bytes;
  made.emplace_back(text);
  int64_t handle = literalCount() + static_cast<int64_t>(made.size());
  handles.emplace(made.back(), handle);
  return handle;
}

std::string_view StringTable::textOf(int64_t handle) const {
  int64_t literal = handle - 1, own = literal - literalCount();
  if (literal < 0 || own >= static_cast<int64_t>(made.size()))
    return {};
  return own < 0 ? std::string_view(literals->texts[literal])
                 : std::string_view(made[own]);
}

void StringTable::clear() {
  handles.clear();
  made.clear();
  held = 0;
  full = false;
}
