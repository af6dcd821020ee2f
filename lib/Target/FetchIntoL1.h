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

/// Where prefetches of data go: with locality 2 into the second cache or, on
/// processors that bring a line faster that way, the first; with locality 1
/// into the second cache, always.
void chooseCacheOfFetches(llvm::Function &function, bool isL1Faster);

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGET_FETCHINTOL1_H
