//===- CompilerWork.cpp - What one compilation does on threads ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Compile/CompilerWork.h"
#include "sardonyx/Objects/FatalErrors.h"
#include "llvm/Support/ErrorHandling.h"
#include <utility>

using namespace sardonyx;

static thread_local std::shared_ptr<CompilerWork> workOfThread;

std::shared_ptr<CompilerWork> CompilerWork::current() { return workOfThread; }

void CompilerWork::run(llvm::function_ref<void()> part) {
  std::shared_ptr<CompilerWork> before =
      std::exchange(workOfThread, shared_from_this());
  std::optional<std::string> fatal = recoverFatalErrors(part);
  workOfThread = std::move(before);
  if (!fatal)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (!reason)
    reason = std::move(fatal);
  stop.store(true);
}

std::optional<std::string> CompilerWork::fatal() const {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

void CompilerWork::leaveIfFatal() {
  std::shared_ptr<CompilerWork> work = workOfThread;
  std::optional<std::string> reason = work ? work->fatal() : std::nullopt;
  work.reset(); // Nothing here is destroyed below.
  if (reason)
    llvm::reportFatalUsageError(llvm::StringRef(*reason));
}

void CompilerThreads::asyncEnqueue(llvm::unique_function<void()> task,
                                   llvm::ThreadPoolTaskGroup *group) {
  std::shared_ptr<CompilerWork> work = CompilerWork::current();
  auto part = [task = std::move(task), work = std::move(work)]() mutable {
    work ? work->run(task) : task();
  };
  if (group)
    pool.async(*group, std::move(part));
  else
    pool.async(std::move(part));
}
