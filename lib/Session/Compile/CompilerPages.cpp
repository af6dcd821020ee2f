//===- CompilerPages.cpp - Memory that only a compiler needs --------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/CompilerPages.h"
#include "lib/Session/Compile/LibraryPages.h"
#include "lib/Session/Compile/StoppableWork.h"

#include "sardonyx/Runtime/ForkSafeMutex.h"

#include "mlir/IR/Verifier.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>

using namespace sardonyx;

namespace {

/// Where LLVM and MLIR are: in libraries of their own, or in one with the rest.
struct CompilerPages {
  runtime::ForkSafeMutex mutex;
  bool areKnown = false;
  LibraryPages pages;

  void find();
};

} // namespace

/// Once, and never while the process forks: a child whose parent holds the lock
/// of the list of libraries meanwhile would wait for it for ever.
void CompilerPages::find() {
  std::lock_guard<runtime::ForkSafeMutex> lock(mutex);
  if (std::exchange(areKnown, true))
    return;
  pages = findLibraryPages(
      reinterpret_cast<const void *>(&llvm::sys::getDefaultTargetTriple));
  LibraryPages others =
      findLibraryPages(reinterpret_cast<const void *>(&mlir::verify));
  if (others != pages)
    pages.insert(pages.end(), others.begin(), others.end());
}

/// Made while the program loads, as its mutex must be. Never destroyed: other
/// threads may outlive the statics.
static CompilerPages &compiler = *new CompilerPages;

void sardonyx::forgetCompilerPages() {
  if (!LoadScope::isOnly())
    return; // another thread would read them again at once
  compiler.find();
  forgetLibraryPages(compiler.pages);
}
