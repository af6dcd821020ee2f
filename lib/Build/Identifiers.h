//===- Identifiers.h - Names in C -------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_BUILD_IDENTIFIERS_H
#define SARDONYX_LIB_BUILD_IDENTIFIERS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace sardonyx {

/// Whether a text has the form of an identifier of C.
bool isIdentifier(llvm::StringRef text);

/// `text` with an underscore for each character that is none of an identifier,
/// and `prefix` before what cannot begin one.
std::string identifierFrom(llvm::StringRef text, llvm::StringRef prefix);

/// Whether C or C++ has a word, or usual headers a macro, of this name.
bool isReservedWord(llvm::StringRef name);

/// Whether a program cannot have a global of this name: words, and what the C
/// library or Sardonyx' runtime call theirs.
bool isReservedGlobal(const std::string &name);

} // namespace sardonyx

#endif // SARDONYX_LIB_BUILD_IDENTIFIERS_H
