//===- Symbols.h - What compiled code may link against ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_SYMBOLS_H
#define SARDONYX_RUNTIME_SYMBOLS_H

#include <cstddef>

namespace sardonyx {
namespace runtime {

struct Symbol {
  const char *name;
  void *address;
};

/// The runtime ABI, the C memory functions, libm and the conversions of half
/// floats that a code generator may call. Compiled code sees nothing else.
const Symbol *symbols(size_t &count);

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_SYMBOLS_H
