//===- ModuleText.cpp - Takes a text of PTX apart -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModuleText.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace sardonyx::fakecuda {

std::string_view trim(std::string_view text) {
  const char *blank = " \t\r\n";
  size_t begin = text.find_first_not_of(blank);
  if (begin == text.npos)
    return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    char c = at < text.size() ? text[at] : ',';
    depth += c == '{' || c == '(' || c == '[';
    depth -= c == '}' || c == ')' || c == ']';
    if (c != ',' || (depth > 0 && at < text.size()))
      continue;
    std::string_view part = trim(text.substr(begin, at - begin));
    if (!part.empty())
      parts.emplace_back(part);
    begin = at + 1;
  }
  return parts;
}

bool isNameCharacter(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%';
}

bool parseInteger(std::string_view text, long long &value) {
  std::string digits(trim(text));
  while (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u'))
    digits.pop_back();
  bool negative = !digits.empty() && digits[0] == '-';
  if (negative || (!digits.empty() && digits[0] == '+'))
    digits.erase(0, 1);
  if (digits.empty() || !isdigit(static_cast<unsigned char>(digits[0])))
    return false;
  int base = 0;
  if (digits.size() > 2 && (digits[1] == 'b' || digits[1] == 'B')) {
    digits.erase(0, 2);
    base = 2;
  }
  char *end = nullptr;
  unsigned long long bits = strtoull(digits.c_str(), &end, base);
  if (*end)
    return false;
  value = static_cast<long long>(negative ? 0 - bits : bits);
  return true;
}

size_t sizeOfType(std::string_view type) {
  if (type == "pred")
    return 1;
  if (type == "f16x2" || type == "bf16x2")
    return 4;
  if (type.substr(0, 2) == "bf" || type.substr(0, 2) == "tf")
    type.remove_prefix(1);
  if (type.size() < 2 || !strchr("busf", type[0]))
    return 0;
  type.remove_prefix(1);
  return type == "8"     ? 1
         : type == "16"  ? 2
         : type == "32"  ? 4
         : type == "64"  ? 8
         : type == "128" ? 16
                         : 0;
}

/// More bytes than this no variable has.
constexpr long long kMostBytes = 1ll << 40;

// Reads the values of an array or of a single variable.
static bool parseInitial(std::string_view text, size_t elementBytes,
                         Variable &variable, std::string &error) {
  text = trim(text);
  if (!text.empty() && text.front() == '{')
    text = text.substr(1, text.rfind('}') - 1);
  variable.initial.assign(variable.bytes, 0);
  size_t at = 0;
  for (const std::string &element : splitList(text)) {
    long long value = 0;
    bool isFloat = element.size() > 2 && element[0] == '0' &&
                   (element[1] == 'f' || element[1] == 'd' ||
                    element[1] == 'F' || element[1] == 'D');
    std::string hex = isFloat ? "0x" + element.substr(2) : element;
    if (!parseInteger(hex, value)) {
      error = "the value " + element + " of " + variable.name +
              " isn't a number, which is all that is known here";
      return false;
    }
    if (at + elementBytes > variable.initial.size()) {
      error = "there are more values than fit into " + variable.name;
      return false;
    }
    memcpy(variable.initial.data() + at, &value, elementBytes);
    at += elementBytes;
  }
  return true;
}

bool parseVariable(std::string_view text, Variable &variable,
                   std::string &error) {
  std::string_view initial;
  if (size_t equals = text.find('='); equals != text.npos) {
    initial = text.substr(equals + 1);
    text = text.substr(0, equals);
  }
  size_t elementBytes = 0, count = 1;
  std::string_view rest = trim(text);
  while (!rest.empty() && rest[0] == '.') {
    size_t end = rest.find_first_of(" \t\n\r", 1);
    std::string_view word = rest.substr(1, end - 1);
    rest = end == rest.npos ? "" : trim(rest.substr(end));
    long long number = 0;
    if (word == "align") {
      end = rest.find_first_of(" \t");
      if (!parseInteger(rest.substr(0, end), number) || number < 1 ||
          number > 65536) {
        error = "an .align without a number";
        return false;
      }
      // The .align of what a pointer points to says nothing of itself.
      variable.alignment = size_t(number);
      rest = end == rest.npos ? "" : trim(rest.substr(end));
    } else if (word == "ptr") {
      size_t last = rest.find_last_of(" \t");
      rest = last == rest.npos ? rest : trim(rest.substr(last));
    } else if (size_t bytes = sizeOfType(word)) {
      elementBytes = bytes;
    } else if (word == "v2" || word == "v4") {
      count *= word == "v2" ? 2 : 4;
    }
  }
  size_t end = 0;
  while (end < rest.size() && isNameCharacter(rest[end]))
    ++end;
  variable.name = rest.substr(0, end);
  rest = trim(rest.substr(end));
  while (!rest.empty() && rest[0] == '[') {
    size_t close = rest.find(']');
    long long size = 0;
    if (close == rest.npos)
      break;
    if (trim(rest.substr(1, close - 1)).empty())
      variable.isExtern = true;
    else if (!parseInteger(rest.substr(1, close - 1), size) || size < 0)
      break;
    count *= size_t(size);
    if (size > kMostBytes || count > size_t(kMostBytes))
      break;
    rest = trim(rest.substr(close + 1));
  }
  if (variable.name.empty() || elementBytes == 0 || !rest.empty()) {
    error = "the declaration '" + std::string(trim(text)) + "' isn't known";
    return false;
  }
  variable.bytes = elementBytes * count;
  if (variable.alignment < elementBytes)
    variable.alignment = elementBytes;
  return initial.empty() ||
         parseInitial(initial, elementBytes, variable, error);
}

namespace {

class TextParser {
public:
  TextParser(std::string text, ModuleText &module, std::string &error)
      : text(std::move(text)), module(module), error(error) {}

  bool run();

private:
  bool parseTop();
  bool parseFunction(std::string_view header, unsigned line);
  bool parseDeclaration(std::string_view header);
  bool parseList(std::string_view list, std::vector<Variable> &into);
  bool parseBody(FunctionText &function);
  void parseLimits(std::string_view text, FunctionText &function);
  bool startsWith(std::string_view word) const {
    return text.compare(at, word.size(), word) == 0;
  }
  void skipBlank() {
    while (at < text.size() && isspace(static_cast<unsigned char>(text[at])))
      line += text[at++] == '\n';
  }
  void skipLine() {
    while (at < text.size() && text[at] != '\n')
      ++at;
  }
  std::string_view take(size_t end) {
    std::string_view taken(text.data() + at, end - at);
    for (; at < end; ++at)
      line += text[at] == '\n';
    return taken;
  }

  std::string text;
  ModuleText &module;
  std::string &error;
  size_t at = 0;
  unsigned line = 1;
};

} // namespace

// Blanks out comments.
static std::string withoutComments(std::string_view ptx) {
  std::string text(ptx);
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] != '/' || (text[at + 1] != '/' && text[at + 1] != '*'))
      continue;
    bool isLine = text[at + 1] == '/';
    size_t end = text.find(isLine ? "\n" : "*/", at + 2);
    end = end == text.npos ? text.size() : isLine ? end : end + 2;
    for (; at < end; ++at)
      if (text[at] != '\n')
        text[at] = ' ';
    --at;
  }
  // The driver passes texts that end with a zero.
  while (!text.empty() && text.back() == '\0')
    text.pop_back();
  return text;
}

bool TextParser::run() {
  while (skipBlank(), at < text.size())
    if (!parseTop()) {
      error = "line " + std::to_string(line) + " of the PTX: " + error;
      return false;
    }
  return true;
}

bool TextParser::parseTop() {
  for (const char *word : {".version", ".target", ".address_size", ".file"})
    if (startsWith(word)) {
      skipLine();
      return true;
    }
  if (startsWith(".section")) {
    size_t close = text.find('}', at);
    take(close == text.npos ? text.size() : close + 1);
    return true;
  }
  unsigned first = line;
  size_t end = text.find_first_of(";{", at);
  if (end == text.npos || text[at] != '.') {
    error = "'" + text.substr(at, 30) + "' isn't a declaration";
    return false;
  }
  std::string_view header(text.data() + at, end - at);
  if (header.find(".entry") != header.npos ||
      header.find(".func") != header.npos) {
    take(end);
    return parseFunction(header, first);
  }
  if (header.find('=') != header.npos)
    end = text.find(';', at);
  if (end == text.npos || text[end] != ';') {
    error = "'" + std::string(trim(header)) + "' isn't a declaration";
    return false;
  }
  header = take(end);
  ++at;
  return parseDeclaration(header);
}

bool TextParser::parseDeclaration(std::string_view header) {
  Variable variable;
  std::string_view rest = trim(header);
  while (variable.space.empty() && !rest.empty() && rest[0] == '.') {
    size_t end = rest.find_first_of(" \t\n", 1);
    std::string_view word = rest.substr(1, end - 1);
    rest = end == rest.npos ? "" : trim(rest.substr(end));
    if (word == "global" || word == "const" || word == "shared")
      variable.space = word;
    else if (word != "visible" && word != "extern" && word != "weak" &&
             word != "common")
      break;
  }
  if (variable.space.empty()) {
    error = "'" + std::string(trim(header)) + "' isn't a known declaration";
    return false;
  }
  if (!parseVariable(rest, variable, error))
    return false;
  if (variable.isExtern && variable.space != "shared") {
    error = variable.name + " has no size";
    return false;
  }
  module.variables.push_back(std::move(variable));
  return true;
}

bool TextParser::parseList(std::string_view list, std::vector<Variable> &into) {
  for (const std::string &part : splitList(list)) {
    Variable variable;
    std::string_view rest = part;
    size_t end = std::min(rest.find_first_of(" \t\n"), rest.size());
    variable.space = rest.substr(1, end - 1);
    if (variable.space != "param" && variable.space != "reg") {
      error = "'" + part + "' isn't a parameter";
      return false;
    }
    if (!parseVariable(rest.substr(end), variable, error))
      return false;
    into.push_back(std::move(variable));
  }
  return true;
}

void TextParser::parseLimits(std::string_view limits, FunctionText &function) {
  // The product of the numbers behind a word.
  auto multiply = [&](const char *word) -> std::optional<unsigned> {
    size_t found = limits.find(word);
    if (found == limits.npos)
      return std::nullopt;
    std::string_view rest = limits.substr(found + strlen(word));
    unsigned product = 1;
    for (const std::string &part : splitList(rest.substr(0, rest.find('.')))) {
      long long value = 1;
      if (parseInteger(part.substr(0, part.find_first_of(" \t\n")), value))
        product *= unsigned(value);
    }
    return product;
  };
  for (const char *word : {".maxntid", ".reqntid"})
    if (std::optional<unsigned> threads = multiply(word))
      function.maxThreads = *threads < 1024 ? *threads : 1024;
  function.clusterBlocks = multiply(".reqnctapercluster").value_or(1);
}

bool TextParser::parseFunction(std::string_view header, unsigned first) {
  FunctionText function;
  function.line = first;
  function.isEntry = header.find(".entry") != header.npos;
  size_t word = header.find(function.isEntry ? ".entry" : ".func");
  std::string_view rest =
      trim(header.substr(word + (function.isEntry ? 6 : 5)));
  auto parenthesis = [&](std::vector<Variable> &into) {
    size_t close = rest.find(')');
    bool good =
        close != rest.npos && parseList(rest.substr(1, close - 1), into);
    if (good)
      rest = trim(rest.substr(close + 1));
    return good;
  };
  error = "the parameters of a function aren't understood";
  if (!rest.empty() && rest[0] == '(' && !parenthesis(function.results))
    return false;
  size_t end = 0;
  while (end < rest.size() && isNameCharacter(rest[end]))
    ++end;
  function.name = rest.substr(0, end);
  rest = trim(rest.substr(end));
  if (!rest.empty() && rest[0] == '(' && !parenthesis(function.parameters))
    return false;
  error.clear();
  parseLimits(rest, function);
  if (function.name.empty()) {
    error = "a function without a name";
    return false;
  }
  if (text[at] == ';') {
    ++at;
    module.functions.try_emplace(function.name, std::move(function));
    return true;
  }
  ++at;
  function.isDefined = true;
  if (!parseBody(function))
    return false;
  auto &known = module.functions[function.name];
  if (known.isDefined) {
    error = "the function " + function.name + " is defined twice";
    return false;
  }
  known = std::move(function);
  return true;
}

bool TextParser::parseBody(FunctionText &function) {
  int depth = 1;
  while (skipBlank(), at < text.size()) {
    unsigned first = line;
    if (startsWith(".loc") && !startsWith(".local")) {
      skipLine();
      continue;
    }
    if (text[at] == '{' || text[at] == '}') {
      bool open = text[at++] == '{';
      depth += open ? 1 : -1;
      if (depth == 0)
        return true;
      function.body.push_back({open ? Item::Open : Item::Close, first, ""});
      continue;
    }
    if (text[at] == ';') {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && isNameCharacter(text[end]))
      ++end;
    if (end > at && end + 1 < text.size() && text[end] == ':' &&
        text[end + 1] != ':') {
      function.body.push_back({Item::Label, first, std::string(take(end))});
      ++at;
      continue;
    }
    end = text.find(';', at);
    if (end == text.npos)
      break;
    function.body.push_back({Item::Statement, first, std::string(take(end))});
    ++at;
  }
  error = "the body of " + function.name + " doesn't end";
  return false;
}

bool parseText(std::string_view ptx, ModuleText &module, std::string &error) {
  return TextParser(withoutComments(ptx), module, error).run();
}

} // namespace sardonyx::fakecuda
