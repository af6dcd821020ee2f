//===- CompilerWork.h - What one compilation does on threads ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_COMPILERWORK_H
#define SARDONYX_LIB_SESSION_COMPILE_COMPILERWORK_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/ThreadPool.h"
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sardonyx {

/// The work of one compilation: on a thread of its own, and in parts on the
/// threads that compilations share.
class CompilerWork : public std::enable_shared_from_this<CompilerWork> {
public:
  /// The work that this thread does; null where it is none of the compiler's.
  static std::shared_ptr<CompilerWork> current();

  /// Does a part of the work on this thread. Where LLVM would end the process,
  /// the part ends, all of the work is to stop, and `fatal` tells why.
  void run(llvm::function_ref<void()> part);

  /// What LLVM would have ended the process with.
  std::optional<std::string> fatal() const;

  /// Leaves run() on this thread where a part has failed so on another: what
  /// they were working at is no longer whole, and must not even be destroyed.
  static void leaveIfFatal();

  /// Becomes true when the work should end.
  std::atomic<bool> stop{false};

private:
  mutable std::mutex mutex;
  std::optional<std::string> reason;
};

/// Threads whose tasks are parts of the work that their caller does.
class CompilerThreads : public llvm::ThreadPoolInterface {
public:
  explicit CompilerThreads(unsigned threads)
      : pool(llvm::hardware_concurrency(threads)) {}

  // What a part has left half done nobody must look at.
  void wait() override {
    pool.wait();
    CompilerWork::leaveIfFatal();
  }
  void wait(llvm::ThreadPoolTaskGroup &group) override {
    pool.wait(group);
    CompilerWork::leaveIfFatal();
  }
  unsigned getMaxConcurrency() const override {
    return pool.getMaxConcurrency();
  }

private:
  void asyncEnqueue(llvm::unique_function<void()> task,
                    llvm::ThreadPoolTaskGroup *group) override;

  llvm::DefaultThreadPool pool;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_COMPILERWORK_H
