//===- OpenCompiler.h - The compiler's libraries ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_PYTHON_OPENCOMPILER_H
#define SARDONYX_PYTHON_OPENCOMPILER_H

#include <string>

namespace sardonyx {

/// Opens the libraries of LLVM and MLIR that the extension in the file `path`
/// needs, if they are any, before it is imported: one after the other, and each
/// gives back the memory that relocating and initializing it has taken before
/// the next takes as much. What fails is left to the import.
void openCompilerLibraries(const std::string &path);

} // namespace sardonyx

#endif // SARDONYX_PYTHON_OPENCOMPILER_H
