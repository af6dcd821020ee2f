//===- RegexTokenFunctions.cpp - Tokenizer --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By itself, for it takes libraries that files of `sardonyx build` do not have.
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <algorithm>
#include <memory>
#include <re2/re2.h>
#include <utf8proc.h>
#include <vector>

using namespace sardonyx::runtime;

namespace {

/// The number of bytes of the first character; 0 where it is none of UTF-8's.
size_t firstLength(std::string_view text) {
  utf8proc_int32_t character;
  utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
                       text.size(), &character);
  return length > 0 ? size_t(length) : 0;
}

/// How many characters a text has, which must be UTF-8 as a whole.
size_t countCharacters(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<size_t>(firstLength(text), 1));
    ++count;
  }
  return count;
}

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = firstLength(text);
    if (!length)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

class Tokenizer {
public:
  /// Reads the operands: strings, patterns, what they are, the fewest
  /// characters of a token, whether texts are marked.
  explicit Tokenizer(RuntimeCall &call);

  /// The tokens of a text; nothing once the run has failed.
  const std::vector<std::string_view> &split(std::string_view text);

  TensorWords<int64_t> strings;
  bool isMarked;

private:
  enum Kind { Characters, Separators, Expression };
  using Parts = std::vector<std::string_view>;

  void splitCharacters(std::string_view text);
  void separate(const re2::RE2 &separator, std::string_view text, Parts &parts);
  void findTokens(std::string_view text);
  void keep(std::string_view token, Parts &parts) const {
    if (countCharacters(token) >= least)
      parts.push_back(token);
  }
  /// The first match in `text` from `start` on.
  static bool match(const re2::RE2 &pattern, std::string_view text,
                    size_t start, std::string_view &found);

  RuntimeCall &call;
  std::vector<std::unique_ptr<re2::RE2>> patterns;
  Kind kind;
  size_t least;
  Parts tokens, parts;
};

Tokenizer::Tokenizer(RuntimeCall &call)
    : strings(call.tensor<int64_t>()), call(call) {
  auto texts = call.tensor<int64_t>();
  kind = Kind(call.number());
  least = size_t(call.number());
  isMarked = call.number();
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_longest_match(true);
  for (int64_t handle : texts) {
    std::string_view text = call.strings().textOf(handle);
    if (kind == Characters)
      break;
    patterns.push_back(std::make_unique<re2::RE2>(
        re2::StringPiece(text.data(), text.size()), options));
    if (patterns.back()->ok())
      continue;
    call.fail("the pattern '" + std::string(text) +
              "' is none that RE2 knows: " + patterns.back()->error());
    break;
  }
}

bool Tokenizer::match(const re2::RE2 &pattern, std::string_view text,
                      size_t start, std::string_view &found) {
  re2::StringPiece part;
  if (start > text.size() ||
      !pattern.Match(re2::StringPiece(text.data(), text.size()), start,
                     text.size(), re2::RE2::UNANCHORED, &part, 1))
    return false;
  found = std::string_view(part.data(), part.size());
  return true;
}

void Tokenizer::splitCharacters(std::string_view text) {
  while (!text.empty()) {
    size_t length = firstLength(text);
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
}

/// Adds what lies between the matches of `separator`. A match of nothing takes
/// the character that it stands before.
void Tokenizer::separate(const re2::RE2 &separator, std::string_view text,
                         Parts &parts) {
  size_t start = 0;
  std::string_view found;
  while (match(separator, text, start, found)) {
    size_t at = found.data() - text.data();
    keep(text.substr(start, at - start), parts);
    if (found.empty() && at == text.size())
      return;
    start = at + (found.empty() ? firstLength(text.substr(at)) : found.size());
  }
  keep(text.substr(start), parts);
}

/// Adds the matches that are long enough. Behind one that is not, the next may
/// begin at its second character.
void Tokenizer::findTokens(std::string_view text) {
  if (countCharacters(text) < least)
    return;
  size_t start = 0;
  std::string_view found;
  while (match(*patterns.front(), text, start, found)) {
    size_t at = found.data() - text.data();
    if (countCharacters(found) >= least) {
      tokens.push_back(found);
      start = at + found.size();
    } else if (at == text.size()) {
      return;
    } else {
      start = at + firstLength(text.substr(at));
    }
  }
}

const std::vector<std::string_view> &Tokenizer::split(std::string_view text) {
  tokens.clear();
  if (call.failed() || !call.goesOn())
    return tokens;
  if (!isUtf8(text)) {
    call.fail("a string is no UTF-8");
    return tokens;
  }
  if (kind == Characters)
    splitCharacters(text);
  if (kind == Expression)
    findTokens(text);
  if (kind != Separators)
    return tokens;
  tokens.push_back(text);
  for (const auto &separator : patterns) {
    parts.clear();
    for (std::string_view part : tokens)
      separate(*separator, part, parts);
    std::swap(tokens, parts);
  }
  return tokens;
}

} // namespace

/// The operands of a Tokenizer -> how many tokens the longest text has, with
/// its marks.
static void tokenizeWidth(RuntimeCall &call) {
  Tokenizer tokenizer(call);
  auto width = call.tensor<int64_t>();
  size_t most = 0;
  for (int64_t handle : tokenizer.strings)
    most =
        std::max(most, tokenizer.split(call.strings().textOf(handle)).size());
  *width.data = int64_t(most) + (most && tokenizer.isMarked ? 2 : 0);
}

/// The operands of a Tokenizer, what pads rows -> tokens.
static void tokenize(RuntimeCall &call) {
  Tokenizer tokenizer(call);
  int64_t padding = call.number();
  auto out = call.tensor<int64_t>();
  const int64_t width = out.sizes[out.rank - 1];
  StringTable &strings = call.strings();
  const int64_t begin = strings.handleOf("\x02"),
                end = strings.handleOf("\x03");
  std::fill(out.begin(), out.end(), padding);
  if (width == 0)
    return;
  int64_t *row = out.data;
  for (int64_t handle : tokenizer.strings) {
    int64_t *next = row;
    if (tokenizer.isMarked)
      *next++ = begin;
    std::string text(strings.textOf(handle));
    for (std::string_view token : tokenizer.split(text))
      *next++ = strings.handleOf(token);
    if (tokenizer.isMarked)
      *next++ = end;
    row += width;
  }
}

SARDONYX_RUNTIME_FUNCTION(sdx_rt_tokenize_width, tokenizeWidth)
SARDONYX_RUNTIME_FUNCTION(sdx_rt_tokenize, tokenize)
