//===- ExpandShortFloats.h - Floats of 16 bits as integers ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_EXPANDSHORTFLOATS_H
#define SARDONYX_LIB_OBJECTS_EXPANDSHORTFLOATS_H

namespace llvm {
class Module;
} // namespace llvm

namespace sardonyx {

/// Makes integers of 16 bits of what is half or bfloat in the functions of a
/// module, their arguments included, and computes conversions by arithmetic on
/// vectors: for WebAssembly, where LLVM calls a function for each element,
/// hangs (a comparison of vectors of halfs) or ends the process (a conversion
/// to bfloat).
void expandShortFloats(llvm::Module &module);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_EXPANDSHORTFLOATS_H
