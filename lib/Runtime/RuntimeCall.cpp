//===- RuntimeCall.cpp - The words of a call by compiled code -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RuntimeCall.h"
#include <cstdio>
#include <cstdlib>
#include <exception>

using namespace sardonyx::runtime;

std::shared_ptr<void> RuntimeCall::allocate(int64_t bytes, const char *what) {
  return run.allocateShared(bytes, *node ? node : nullptr, what);
}

bool RuntimeCall::reserve(int64_t bytes, const char *what) {
  return run.reserve(bytes, *node ? node : nullptr, what);
}

bool RuntimeCall::goesOn() {
  run.poll();
  return !run.failed();
}

void RuntimeCall::fail(const std::string &what) {
  run.fail(*node ? node + (": " + what) : what);
}

void sardonyx::runtime::enter(const int64_t *words,
                              void (*compute)(RuntimeCall &)) {
  RunContext *run = RunContext::current();
  if (!run) {
    // Handles are those of a run; compiled code outside of one has no use.
    fprintf(stderr, "sardonyx: a model was called outside of a run\n");
    abort();
  }
#ifdef __cpp_exceptions
  try {
#endif
    RuntimeCall call(*run, words);
    compute(call);
    if (run->strings().isFull())
      call.fail("out of memory: the strings of the run take more than the "
                "memory limit");
#ifdef __cpp_exceptions
  } catch (const std::exception &) { // bad_alloc, length_error
    run->fail("out of memory for strings, lists or images");
  }
#endif
  run->leaveIfFailed();
}
