//===- Background.cpp - Code that is compiled while a model runs ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Background.h"
#include "lib/Session/Compile/StoppableWork.h"
#include "sardonyx/Session/Session.h"

#include <chrono>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace sardonyx;
using Lock = std::lock_guard<runtime::ForkSafeMutex>;

/// How often it is looked whether the thread has ended.
static constexpr auto kQuestionInterval = std::chrono::milliseconds(2);

/// What the thread is given. The end of the process waits for its scope.
struct Background::Start {
  LoadScope scope;
  std::shared_ptr<Background> background;
  Load load;
};

Background::Background(std::shared_ptr<Session> plain)
    : session(std::move(plain)), process(getpid()) {}

std::shared_ptr<Session> Background::current() const {
  Lock lock(mutex);
  return session;
}

void Background::finish(Expected<std::shared_ptr<Session>> loaded) {
  std::shared_ptr<Session> old; // destroyed without the lock
  if (loaded) {
    Lock lock(mutex);
    old = std::exchange(session, std::move(*loaded));
  } else {
    {
      Lock lock(mutex);
      failure = loaded.error();
    }
    if (!stopped.load())
      warnings.add("background",
                   "the model goes on by code that is not optimised: " +
                       loaded.error().message());
  }
  ended.store(true);
}

void *Background::run(void *given) {
  std::unique_ptr<Start> start(static_cast<Start *>(given));
  Background &background = *start->background;
  background.finish(start->load(background.stopped));
  // What these hold is gone before the end of the process goes on.
  start->load = nullptr;
  start->background = nullptr;
  return nullptr;
}

void Background::start(Load load) {
  auto start = std::make_unique<Start>();
  if (start->scope.error())
    return finish(*start->scope.error());
  start->background = shared_from_this();
  start->load = std::move(load);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool started = startThread(thread, attributes, run, start.get());
  pthread_attr_destroy(&attributes);
  if (!started)
    return finish(Error(ErrorKind::Failed,
                        "there is no thread to compile it in the background"));
  (void)start.release(); // the thread's
}

Expected<bool> Background::wait(double seconds) const {
  const auto begin = std::chrono::steady_clock::now();
  while (!ended.load()) {
    if (getpid() != process)
      return Error(ErrorKind::Failed,
                   "this process was forked while the model was compiled in "
                   "the background; it goes on by code that is not optimised");
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count() >= seconds)
      return false;
    std::this_thread::sleep_for(kQuestionInterval);
  }
  Lock lock(mutex);
  if (failure)
    return *failure;
  return true;
}
