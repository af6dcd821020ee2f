//===- Error.cpp - What can go wrong, as a value --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Session/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <cstdlib>

using namespace sardonyx;
using llvm::StringRef;

/// The bytes of `text` up to `end`, without half a character at the end.
static StringRef takeWhole(StringRef text, size_t end) {
  while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80)
    --end;
  return text.take_front(end);
}

static StringRef dropWhole(StringRef text, size_t begin) {
  while (begin < text.size() && (text[begin] & 0xc0) == 0x80)
    ++begin;
  return text.drop_front(begin);
}

static std::string cutMiddle(StringRef text, size_t limit) {
  if (text.size() <= limit)
    return text.str();
  return takeWhole(text, limit / 2).str() + "\u2026" +
         dropWhole(text, text.size() - limit / 2).str();
}

/// Text that a terminal shows as it is: no invalid UTF-8, no control
/// characters but ends of lines, no name of more than 80 bytes.
static std::string readable(StringRef message) {
  constexpr size_t maxName = 80, maxMessage = 4000;
  std::string escaped;
  for (char c : llvm::json::fixUTF8(message)) {
    bool control = (c >= 0 && c < ' ' && c != '\n') || c == 0x7f;
    if (control)
      escaped += "\\x" + llvm::utohexstr(c, /*LowerCase=*/true, 2);
    else
      escaped += c;
  }
  // A quote after a letter is an apostrophe.
  auto isQuote = [&](size_t at) {
    return escaped[at] == '\'' && (at == 0 || !llvm::isAlnum(escaped[at - 1]));
  };
  std::string result;
  for (size_t at = 0; at < escaped.size(); ++at) {
    size_t close = isQuote(at) ? escaped.find('\'', at + 1) : std::string::npos;
    if (close == std::string::npos) {
      result += escaped[at];
      continue;
    }
    std::string name = escaped.substr(at + 1, close - at - 1);
    llvm::replace(name, '\n', ' ');
    result += "'" + cutMiddle(name, maxName) + "'";
    at = close;
  }
  return cutMiddle(result, maxMessage);
}

static bool wantsDetail() {
  const char *value = std::getenv("SARDONYX_DEBUG");
  return value && *value && StringRef(value) != "0";
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
