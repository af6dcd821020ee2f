//===- Identifiers.cpp - Names in C ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Identifiers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <dlfcn.h>

using namespace sardonyx;

static bool isPart(char c) { return llvm::isAlnum(c) || c == '_'; }

bool sardonyx::isIdentifier(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text[0]) && llvm::all_of(text, isPart);
}

std::string sardonyx::identifierFrom(llvm::StringRef text,
                                     llvm::StringRef prefix) {
  std::string name;
  for (char c : text)
    name += isPart(c) ? c : '_';
  return isIdentifier(name) ? name : prefix.str() + name;
}

bool sardonyx::isReservedWord(llvm::StringRef word) {
  return llvm::StringSwitch<bool>(word)
      .Cases({"auto", "break", "case", "char", "const", "continue", "default"},
             true)
      .Cases({"do", "double", "else", "enum", "extern", "float", "for"}, true)
      .Cases({"goto", "if", "inline", "int", "long", "register", "restrict"},
             true)
      .Cases({"return", "short", "signed", "sizeof", "static", "struct"}, true)
      .Cases({"switch", "typedef", "union", "unsigned", "void", "volatile"},
             true)
      .Cases({"while", "bool", "true", "false", "nullptr", "and", "or"}, true)
      .Cases({"not", "xor", "asm", "catch", "class", "concept", "delete"}, true)
      .Cases({"explicit", "export", "friend", "mutable", "namespace"}, true)
      .Cases({"new", "operator", "private", "protected", "public"}, true)
      .Cases({"requires", "template", "this", "throw", "try", "typename"}, true)
      .Cases({"using", "virtual", "constexpr", "noexcept", "decltype"}, true)
      .Cases({"errno", "assert", "stdin", "stdout", "stderr", "NULL", "EOF"},
             true)
      .Cases({"linux", "unix", "i386", "main"}, true)
      .Default(false);
}

bool sardonyx::isReservedGlobal(const std::string &name) {
  if (isReservedWord(name) || llvm::StringRef(name).starts_with("sdx_") ||
      llvm::StringRef(name).starts_with("sardonyx_") || name[0] == '_')
    return true;
  for (const char *library : {"libc.so.6", "libm.so.6"})
    if (void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL)) {
      bool isTheirs = dlsym(handle, name.c_str()) != nullptr;
      dlclose(handle);
      if (isTheirs)
        return true;
    }
  return false;
}
