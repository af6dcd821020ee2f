//===- DimNames.h - Which names of dimensions mean a size -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIMNAMES_H
#define SARDONYX_DIMNAMES_H

#include <string>
#include <string_view>

namespace sardonyx {

/// Whether dimensions that share this name (a dim_param of ONNX) are meant to
/// have one size. Exporters also write a placeholder for each size that they do
/// not know: nothing, marks without a letter ("?", "*"), a number ("-1"), or a
/// word for it ("None", "unk", "<unknown>").
inline bool isNameOfSize(std::string_view name) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  // Whatever is not ASCII is taken for a letter.
  auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  while (!name.empty() && !isLetter(name.front()) && !isDigit(name.front()))
    name.remove_prefix(1);
  while (!name.empty() && !isLetter(name.back()) && !isDigit(name.back()))
    name.remove_suffix(1);
  bool hasLetter = false;
  std::string word;
  for (char c : name) {
    hasLetter |= isLetter(c);
    word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (!hasLetter)
    return false;
  for (const char *placeholder : {"any", "dynamic", "nan", "nil", "none",
                                  "null", "undefined", "unk", "unknown"})
    if (word == placeholder)
      return false;
  return true;
}

} // namespace sardonyx

#endif // SARDONYX_DIMNAMES_H
