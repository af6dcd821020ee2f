//===- ModuleText.h - The parts of a text of PTX -------------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_MODULETEXT_H
#define SARDONYX_TOOLS_FAKECUDA_MODULETEXT_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx::fakecuda {

/// A variable: of the module, of a function, or a parameter.
struct Variable {
  std::string name;
  std::string space; ///< global, const, shared, local, param or reg
  size_t bytes = 0, alignment = 1;
  bool isExtern = false; ///< Its size is unknown: dynamic shared memory.
  std::vector<char> initial;
};

/// A brace, a label or a statement in the body of a function.
struct Item {
  enum Kind { Open, Close, Label, Statement } kind;
  unsigned line;
  std::string text; ///< Without the colon or the semicolon.
};

struct FunctionText {
  std::string name;
  bool isEntry = false, isDefined = false;
  unsigned line = 0;
  std::vector<Variable> parameters, results;
  unsigned maxThreads = 1024;
  unsigned clusterBlocks = 1;
  std::vector<Item> body;
};

struct ModuleText {
  std::vector<Variable> variables;
  std::map<std::string, FunctionText, std::less<>> functions;
};

/// Returns false and a sentence with the line when the text isn't understood.
bool parseText(std::string_view ptx, ModuleText &module, std::string &error);

/// Reads what follows the space in a declaration, such as
/// `.align 16 .b8 name[64]`.
bool parseVariable(std::string_view text, Variable &variable,
                   std::string &error);

/// Bytes of a type such as "b32" or "f16x2"; 0 when it isn't one.
size_t sizeOfType(std::string_view type);

std::string_view trim(std::string_view text);
/// Cuts at commas that stand in no brackets.
std::vector<std::string> splitList(std::string_view text);
/// Reads an integer: decimal, 0x, octal or 0b, maybe with a sign and a U.
bool parseInteger(std::string_view text, long long &value);
bool isNameCharacter(char c);

} // namespace sardonyx::fakecuda

#endif // SARDONYX_TOOLS_FAKECUDA_MODULETEXT_H
