//===- StringTable.h - The strings that handles stand for -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code moves and compares strings as 64-bit handles. Equal strings
// have equal handles: 0 is the empty string, 1 to n are the literals of the
// model, in the order of its table, and what a run meets besides comes behind
// these.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_STRINGTABLE_H
#define SARDONYX_RUNTIME_STRINGTABLE_H

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sardonyx {
namespace runtime {

/// The strings of a model: handles 1 to n. They do not change any more, so all
/// runs share them.
class StringLiterals {
public:
  explicit StringLiterals(std::vector<std::string> texts);
  StringLiterals(const StringLiterals &) = delete;
  StringLiterals &operator=(const StringLiterals &) = delete;

  const std::vector<std::string> texts;
  std::unordered_map<std::string_view, int64_t> handles;
};

/// The strings of one run, on the thread that runs it.
class StringTable {
public:
  void setLiterals(std::shared_ptr<const StringLiterals> given) {
    literals = std::move(given);
    clear();
  }

  /// So many bytes all strings that a run makes may take.
  void setLimit(int64_t bytes) { limit = bytes; }

  /// Whether one did not fit; it counts as the empty one.
  bool isFull() const { return full; }

  /// The handle of a string, which the table gets if it is new.
  int64_t handleOf(std::string_view text);
  /// Valid until clear(); of a handle that nobody made, the empty string.
  std::string_view textOf(int64_t handle) const;

  /// Forgets what the run made.
  void clear();

private:
  int64_t literalCount() const {
    return literals ? static_cast<int64_t>(literals->texts.size()) : 0;
  }

  std::shared_ptr<const StringLiterals> literals;
  std::deque<std::string> made; // a deque's elements stay where they are
  std::unordered_map<std::string_view, int64_t> handles;
  int64_t limit = INT64_MAX, held = 0;
  bool full = false;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_STRINGTABLE_H
