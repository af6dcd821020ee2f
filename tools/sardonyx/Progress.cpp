//===- Progress.cpp - A line that tells what takes long -------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Progress.h"
#include <chrono>
#include <cstdio>
#include <unistd.h>
#include <utility>

static constexpr std::chrono::milliseconds kPatience(500), kStep(250);

Progress::Progress(std::string what) : what(std::move(what)) {
  if (isatty(STDERR_FILENO))
    thread = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    isDone = true;
  }
  changed.notify_all();
  thread.join();
}

void Progress::show() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::unique_lock<std::mutex> lock(mutex);
  if (changed.wait_for(lock, kPatience, [this] { return isDone; }))
    return;
  do {
    const double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    fprintf(stderr, "\r\x1b[Ksardonyx: %s, %.0f s", what.c_str(), seconds);
    fflush(stderr);
  } while (!changed.wait_for(lock, kStep, [this] { return isDone; }));
  fprintf(stderr, "\r\x1b[K");
  fflush(stderr);
}
