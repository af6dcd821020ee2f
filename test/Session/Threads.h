//===- Threads.h - Tests on several threads ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TEST_SESSION_THREADS_H
#define SARDONYX_TEST_SESSION_THREADS_H

#include "sardonyx/Session/Session.h"
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

/// How many answers are wrong of those that `count` threads ask for at a time:
/// `isRight(*session, t, i)` of thread t, for i < `times`. Each shares in the
/// session; a session that was moved here is given up while they run.
template <typename IsRight>
int countWrong(std::shared_ptr<sardonyx::Session> session, int count, int times,
               IsRight isRight) {
  std::atomic<int> wrong{0}, running{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t, own = session]() mutable {
      ++running;
      for (int i = 0; i < times; ++i)
        wrong += !isRight(*own, t, i);
      own = nullptr;
    });
  while (running < count)
    std::this_thread::yield();
  session = nullptr;
  for (std::thread &thread : threads)
    thread.join();
  return wrong;
}

#endif // SARDONYX_TEST_SESSION_THREADS_H
