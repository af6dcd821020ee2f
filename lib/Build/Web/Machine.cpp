//===- Machine.cpp - What WebAssembly has in the place of a system --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread, four gigabytes of memory, no files, no forks: the runtime's files
// that ask a system for these have their counterparts here.
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Model/FileMap.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"
#include "sardonyx/Runtime/MemoryBudget.h"
#include "sardonyx/Runtime/ThreadPool.h"

using namespace sardonyx;
using namespace sardonyx::runtime;

struct ThreadPool::Impl {};

ThreadPool::ThreadPool() : impl(nullptr) {}

ThreadPool &ThreadPool::global() {
  static ThreadPool pool;
  return pool;
}

unsigned ThreadPool::maxThreads() const { return 1; }
unsigned ThreadPool::defaultThreads() const { return 1; }

void ThreadPool::parallelFor(int64_t n, int64_t grain, Body body, void *env,
                             unsigned, RunContext *context) {
  runInline(n, grain, body, env, context);
}

ForkSafeMutex::ForkSafeMutex() = default;
ForkSafeMutex::~ForkSafeMutex() = default;

int64_t sardonyx::runtime::machineMemory() { return int64_t(4) << 30; }

Expected<std::shared_ptr<FileMap>> FileMap::open(const std::string &path) {
  return Error(ErrorKind::NoSuchFile,
               "cannot read '" + path + "': there are no files");
}

FileMap::~FileMap() = default;

void sardonyx::fetchPages(const void *, size_t, unsigned) {}
