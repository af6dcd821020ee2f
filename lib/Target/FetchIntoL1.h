//===- FetchIntoL1.h - Prefetches into the first cache ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGET_FETCHINTOL1_H
#define SARDONYX_LIB_TARGET_FETCHINTOL1_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// Makes prefetches of data into the second cache those into the first, for
/// processors that bring a line faster that way.
void fetchIntoL1(llvm::Function &function);

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGET_FETCHINTOL1_H
