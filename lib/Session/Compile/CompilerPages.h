//===- CompilerPages.h - Memory that only a compiler needs ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_COMPILERPAGES_H
#define SARDONYX_LIB_SESSION_COMPILE_COMPILERPAGES_H

namespace sardonyx {

/// Takes the code and the constants of the libraries that hold LLVM and MLIR
/// out of this process's memory, some 75 MB, of which runs need nothing. They
/// stay in the system's page cache, and come back as they are used. While
/// several threads load models, it does nothing.
void forgetCompilerPages();

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_COMPILERPAGES_H
