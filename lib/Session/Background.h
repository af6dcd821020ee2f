//===- Background.h - Code that is compiled while a model runs --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A session that is loaded by SessionOptions::Compile::Background has two
// others in it, one after the other: one of code that LLVM has not optimised,
// which is there soon, and one of the code that a session has otherwise, which
// a thread compiles meanwhile. A run goes by what is there when it begins.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_BACKGROUND_H
#define SARDONYX_LIB_SESSION_BACKGROUND_H

#include "lib/Session/Warnings.h"
#include "sardonyx/Model/Error.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <sys/types.h>

namespace sardonyx {

class Session;

/// Shared by a session and the thread that compiles for it, which may outlive
/// the session.
class Background : public std::enable_shared_from_this<Background> {
public:
  /// Loads the model, or gives up soon after `stop` becomes true.
  using Load = std::function<Expected<std::shared_ptr<Session>>(
      const std::atomic<bool> &stop)>;

  explicit Background(std::shared_ptr<Session> plain);

  /// Has a thread load what will be current(). Where there is no thread to
  /// have, the plain code stays.
  void start(Load load);
  /// Nobody waits for the thread, which ends when it notices.
  void stop() { stopped.store(true); }

  std::shared_ptr<Session> current() const;

  /// Waits until the thread has ended: true then, false after so many seconds.
  /// An error where it has compiled nothing, and where a fork has left it to
  /// the parent process.
  Expected<bool> wait(double seconds) const;

  /// What runs, and the compilation, warn of.
  Warnings warnings;

private:
  struct Start;
  static void *run(void *start);
  void finish(Expected<std::shared_ptr<Session>> loaded);

  mutable runtime::ForkSafeMutex mutex;
  std::shared_ptr<Session> session;
  std::optional<Error> failure;
  std::atomic<bool> stopped{false}, ended{false};
  pid_t process;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_BACKGROUND_H
