//===- FatalErrors.cpp - Where LLVM would end the process -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM calls a handler of the process before it ends it. The handler leaves the
// work by longjmp, as LLVM is compiled without exceptions. Compiled with
// exceptions: the C++ library tells by one that there is no memory.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/FatalErrors.h"

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <csetjmp>
#include <cstdio>
#include <mutex>
#include <new>

using namespace sardonyx;

namespace {
/// Where a thread goes on after a fatal error, and what that said.
struct Recovery {
  jmp_buf place;
  std::string reason;
  /// LLVM's list of what the thread does, which lies on its stack.
  const void *activities = llvm::SavePrettyStackState();
  Recovery *outer;
  /// Whether LLVM's own recovery knows the place.
  bool isOfLinker = false;
};
} // namespace

static thread_local Recovery *innermost = nullptr;

/// Allocates nothing for what fits into a string without: "out of memory".
static void leave(void *, const char *reason, bool) {
  Recovery *recovery = innermost;
  if (!recovery) {
    // Not our work: LLVM ends the process when this returns.
    fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  recovery->reason = reason;
  if (recovery->isOfLinker)
    if (auto *context = llvm::CrashRecoveryContext::GetCurrent())
      context->HandleExit(1);
  longjmp(recovery->place, 1);
}

static void leaveWithoutMemory(void *data, const char *, bool isCrash) {
  leave(data, "out of memory", isCrash);
}

static void installHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(leave);
    llvm::install_bad_alloc_error_handler(leaveWithoutMemory);
  });
}

/// Whether `work` came to its end.
static bool runOn(Recovery &recovery, llvm::function_ref<void()> work) {
  if (setjmp(recovery.place))
    return false;
  try {
    work();
    return true;
  } catch (const std::bad_alloc &) {
    recovery.reason = "out of memory";
    return false;
  }
}

static std::optional<std::string> recover(llvm::function_ref<void()> work,
                                          bool isOfLinker) {
  installHandlers();
  Recovery recovery;
  recovery.outer = innermost;
  recovery.isOfLinker = isOfLinker;
  innermost = &recovery;
  bool isDone = runOn(recovery, work);
  innermost = recovery.outer;
  if (isDone && recovery.reason.empty())
    return std::nullopt;
  llvm::RestorePrettyStackState(recovery.activities);
  return std::move(recovery.reason);
}

std::optional<std::string>
sardonyx::recoverFatalErrors(llvm::function_ref<void()> work) {
  return recover(work, /*isOfLinker=*/false);
}

std::optional<std::string>
sardonyx::recoverLinkerErrors(llvm::function_ref<void()> work) {
  llvm::CrashRecoveryContext::Enable();
  auto reason = recover(work, /*isOfLinker=*/true);
  llvm::CrashRecoveryContext::Disable();
  return reason;
}
