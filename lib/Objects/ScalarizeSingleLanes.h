//===- ScalarizeSingleLanes.h - Masks of one lane ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_SCALARIZESINGLELANES_H
#define SARDONYX_LIB_OBJECTS_SCALARIZESINGLELANES_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// Makes masked loads and stores whose mask is a constant of one lane into
/// those of an element. The instruction selector of LLVM 22 does so by itself,
/// but where it has made a narrowing store of a truncation it writes the whole
/// wider element, past what the mask allows (seen with AVX-512, i32 to i8).
void scalarizeSingleLanes(llvm::Function &function);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_SCALARIZESINGLELANES_H
