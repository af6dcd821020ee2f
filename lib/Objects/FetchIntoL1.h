//===- FetchIntoL1.h - Prefetches into the first cache ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_FETCHINTOL1_H
#define SARDONYX_LIB_OBJECTS_FETCHINTOL1_H

namespace llvm {
class Function;
}

namespace sardonyx {

/// What prefetches of data into the second cache are on a processor.
struct CacheOfFetches {
  /// Whether it brings a line faster into the first cache.
  bool isL1Faster = false;
  /// Whether that one also has room for more lines than it will hold: those
  /// that are pushed out before they are used are in the second by then.
  bool isL1Roomy = false;
};

/// Where prefetches of data go: with locality 2 into the second cache or, on
/// processors that bring a line faster that way, the first; with locality 1
/// too, if that one is roomy.
void chooseCacheOfFetches(llvm::Function &function, CacheOfFetches cache);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_FETCHINTOL1_H
