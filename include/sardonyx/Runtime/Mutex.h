//===- Mutex.h - A mutex where there are threads ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_MUTEX_H
#define SARDONYX_RUNTIME_MUTEX_H

#include <mutex>

namespace sardonyx {
namespace runtime {

#ifdef __wasm__
/// WebAssembly's C++ library has no threads, and no mutex.
class Mutex {
public:
  void lock() {}
  void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_MUTEX_H
