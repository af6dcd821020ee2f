//===- SplitMaskedLoads.h - Masked loads of one register --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_SPLITMASKEDLOADS_H
#define SARDONYX_LIB_OBJECTS_SPLITMASKEDLOADS_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// Makes masked loads of several registers of `registerBits` into one for each
/// register. The instruction selector of LLVM 22 does so by itself, but where
/// the upper of two registers turns out to have no lane it reads all of it,
/// past what the mask allows (seen with AVX2).
void splitMaskedLoads(llvm::Function &function, unsigned registerBits);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_SPLITMASKEDLOADS_H
