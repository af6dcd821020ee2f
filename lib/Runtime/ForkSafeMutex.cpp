//===- ForkSafeMutex.cpp - A mutex that no child inherits locked ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/ForkSafeMutex.h"
#include <pthread.h>

using namespace sardonyx::runtime;

/// All of the process. Never destroyed: other threads may outlive the statics.
namespace sardonyx::runtime {
struct ForkSafeMutexes;
} // namespace sardonyx::runtime

struct sardonyx::runtime::ForkSafeMutexes {
  std::mutex mutex;
  ForkSafeMutex *first = nullptr;

  static ForkSafeMutexes &all() {
    static ForkSafeMutexes *list = [] {
      pthread_atfork([] { all().lock(); }, [] { all().unlock(); },
                     [] { all().unlock(); });
      return new ForkSafeMutexes;
    }();
    return *list;
  }

  void lock() {
    mutex.lock();
    for (ForkSafeMutex *member = first; member; member = member->next)
      member->lock();
  }

  void unlock() {
    for (ForkSafeMutex *member = first; member; member = member->next)
      member->unlock();
    mutex.unlock();
  }

  void add(ForkSafeMutex &member) {
    std::lock_guard<std::mutex> lock(mutex);
    member.next = first;
    if (first)
      first->previous = &member;
    first = &member;
  }

  void remove(ForkSafeMutex &member) {
    std::lock_guard<std::mutex> lock(mutex);
    (member.previous ? member.previous->next : first) = member.next;
    if (member.next)
      member.next->previous = member.previous;
  }
};

/// Made while the program loads, as ThreadPool::global() is and for the same
/// reason.
[[maybe_unused]] static ForkSafeMutexes &madeEarly = ForkSafeMutexes::all();

ForkSafeMutex::ForkSafeMutex() { ForkSafeMutexes::all().add(*this); }
ForkSafeMutex::~ForkSafeMutex() { ForkSafeMutexes::all().remove(*this); }
