//===- StoppableWork.h - Loading and compiling that can be ended *- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_STOPPABLEWORK_H
#define SARDONYX_LIB_SESSION_COMPILE_STOPPABLEWORK_H

#include "sardonyx/Session/Session.h"
#include <atomic>
#include <functional>
#include <pthread.h>

namespace sardonyx {

/// A thread that loads a model, for as long as it does. The end of the process
/// waits for it: what the compiler and the linker need must not go away under
/// their hands.
class LoadScope {
public:
  LoadScope();
  ~LoadScope();
  LoadScope(const LoadScope &) = delete;
  LoadScope &operator=(const LoadScope &) = delete;

  /// Set where the process is ending already.
  const MaybeError &error() const { return problem; }
  /// Becomes true when the process ends, and loading should, too.
  static const std::atomic<bool> &processEnds();
  /// Whether no more than one thread of the process loads a model.
  static bool isOnly();

private:
  MaybeError problem;
};

/// Starts a thread that no signal disturbs: they are for the program's own
/// threads. False where there is none to have.
bool startThread(pthread_t &thread, const pthread_attr_t &attributes,
                 void *(*run)(void *), void *argument);

/// Gives up soon after the flag becomes true.
using StoppableWork = std::function<void(const std::atomic<bool> *stop)>;

/// Does the compiler's work on a thread of its own with a deep stack, while the
/// caller waits and looks after the options' `interrupted` and
/// `compileTimeout`. It also stops when the process ends, and fails where LLVM
/// would end it.
MaybeError runStoppably(const SessionOptions &options,
                        const StoppableWork &work);

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_STOPPABLEWORK_H
