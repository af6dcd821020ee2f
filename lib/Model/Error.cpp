//===- Error.cpp - What can go wrong, as a value --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/Error.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

using namespace sardonyx;

/// Bytes of the UTF-8 character that `text` begins with; 0 where it is none.
static size_t characterBytes(std::string_view text) {
  auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  auto follows = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  unsigned first = at(0), second = at(1);
  if (first < 0x80)
    return 1;
  if (first >= 0xc2 && first <= 0xdf)
    return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // Neither overlong nor half of a pair of UTF-16.
    bool isOdd =
        (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f);
    return follows(1) && follows(2) && !isOdd ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    bool isOdd =
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return follows(1) && follows(2) && follows(3) && !isOdd ? 4 : 0;
  }
  return 0;
}

/// `text` with a replacement character for each byte that is of none.
static std::string fixUtf8(std::string_view text) {
  std::string fixed;
  while (!text.empty()) {
    size_t bytes = characterBytes(text);
    if (bytes)
      fixed += text.substr(0, bytes);
    else
      fixed += "\xef\xbf\xbd";
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return fixed;
}

/// The bytes of `text` up to `end`, without half a character at the end.
static std::string_view takeWhole(std::string_view text, size_t end) {
  while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

static std::string_view dropWhole(std::string_view text, size_t begin) {
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80)
    ++begin;
  return text.substr(begin);
}

static std::string cutMiddle(std::string_view text, size_t limit) {
  if (text.size() <= limit)
    return std::string(text);
  std::string cut(takeWhole(text, limit / 2));
  return cut.append("\u2026").append(dropWhole(text, text.size() - limit / 2));
}

/// In any locale.
static bool isAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

/// Text that a terminal shows as it is: no invalid UTF-8, no control
/// characters but ends of lines, no name of more than 80 bytes.
static std::string readable(std::string_view message) {
  constexpr size_t maxName = 80, maxMessage = 4000;
  constexpr char digits[] = "0123456789abcdef";
  std::string escaped;
  for (char c : fixUtf8(message)) {
    bool control = (c >= 0 && c < ' ' && c != '\n') || c == 0x7f;
    if (control)
      escaped += {'\\', 'x', digits[c >> 4], digits[c & 15]};
    else
      escaped += c;
  }
  // A quote after a letter is an apostrophe.
  auto isQuote = [&](size_t at) {
    return escaped[at] == '\'' && (at == 0 || !isAlnum(escaped[at - 1]));
  };
  std::string result;
  for (size_t at = 0; at < escaped.size(); ++at) {
    size_t close = isQuote(at) ? escaped.find('\'', at + 1) : std::string::npos;
    if (close == std::string::npos) {
      result += escaped[at];
      continue;
    }
    std::string name = escaped.substr(at + 1, close - at - 1);
    std::replace(name.begin(), name.end(), '\n', ' ');
    result += "'" + cutMiddle(name, maxName) + "'";
    at = close;
  }
  return cutMiddle(result, maxMessage);
}

static bool wantsDetail() {
  const char *value = std::getenv("SARDONYX_DEBUG");
  return value && *value && std::string_view(value) != "0";
}

Error::Error(ErrorKind kind, const std::string &message, std::string detail)
    : errorKind(kind), text(readable(message)), inner(std::move(detail)) {
  if (!inner.empty() && wantsDetail())
    text += "\n[" + inner + "]";
}

Error sardonyx::internalError(const std::string &detail) {
  return Error(ErrorKind::Unsupported,
               "this form of the model is not supported by the compiler yet",
               detail);
}
