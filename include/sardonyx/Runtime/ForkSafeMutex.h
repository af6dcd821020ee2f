//===- ForkSafeMutex.h - A mutex that no child inherits locked --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_FORKSAFEMUTEX_H
#define SARDONYX_RUNTIME_FORKSAFEMUTEX_H

#include "sardonyx/Runtime/Mutex.h"

namespace sardonyx {
namespace runtime {

/// A mutex for data that lives on in a forked child: a fork waits until no
/// thread holds one, so that the child finds all of them free and what they
/// guard whole.
///
/// Whoever holds one must neither take another nor make or destroy one.
class ForkSafeMutex {
public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex &) = delete;
  ForkSafeMutex &operator=(const ForkSafeMutex &) = delete;

  void lock() { mutex.lock(); }
  void unlock() { mutex.unlock(); }

private:
  friend struct ForkSafeMutexes;

  Mutex mutex;
  ForkSafeMutex *next = nullptr, *previous = nullptr;
};

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_FORKSAFEMUTEX_H
