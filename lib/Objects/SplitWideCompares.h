//===- SplitWideCompares.h - Comparisons of many lanes ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_SPLITWIDECOMPARES_H
#define SARDONYX_LIB_OBJECTS_SPLITWIDECOMPARES_H

namespace llvm {
class Function;
} // namespace llvm

namespace sardonyx {

/// Makes comparisons of 32 and of 64 lanes several of 16. Where the bits of
/// such a mask become an integer, as they do for masked stores, WebAssembly's
/// instruction selector compares each register by itself and takes its lanes
/// for bytes, whatever their width: there is no such instruction, and it ends
/// the process.
void splitWideCompares(llvm::Function &function);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_SPLITWIDECOMPARES_H
