//===- RuntimeCall.h - The words of a call by compiled code -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_RUNTIMECALL_H
#define SARDONYX_LIB_RUNTIME_RUNTIMECALL_H

#include "sardonyx/Runtime/RunContext.h"

namespace sardonyx {
namespace runtime {

/// A tensor of a call, contiguous.
template <typename T> struct TensorWords {
  T *data;
  int64_t rank;
  const int64_t *sizes;

  int64_t count() const {
    int64_t elements = 1;
    for (int64_t i = 0; i < rank; ++i)
      elements *= sizes[i];
    return elements;
  }
  T *begin() const { return data; }
  T *end() const { return data + count(); }
};

/// A call: its operands and results, in order, and how to fail.
class RuntimeCall {
public:
  RuntimeCall(RunContext &run, const int64_t *words)
      : run(run), node(reinterpret_cast<const char *>(words[0])),
        next(words + 1) {}

  int64_t number() { return *next++; }
  template <typename T> TensorWords<T> tensor() {
    auto *data = reinterpret_cast<T *>(next[0]);
    int64_t rank = next[1];
    const int64_t *sizes = next + 2;
    next += 2 + rank;
    return {data, rank, sizes};
  }

  RunContext &context() { return run; }
  /// "node 'x' (Foo)", or empty.
  const char *nodeText() const { return node; }
  StringTable &strings() { return run.strings(); }
  ListTable &lists() { return run.lists(); }
  /// Memory that outlives the run; null when the run has failed for the lack of
  /// it.
  std::shared_ptr<void> allocate(int64_t bytes,
                                 const char *what = "an element of a sequence");
  /// Counts what a library will allocate against the memory limit, until it is
  /// given back; false when the run has failed for the lack of it.
  bool reserve(int64_t bytes, const char *what);
  void unreserve(int64_t bytes) { run.unreserve(bytes); }
  /// Whether the run has not been ended: for what takes its time.
  bool goesOn();
  /// Fails the run, once the function has returned.
  void fail(const std::string &what);
  bool failed() const { return run.failed(); }

private:
  RunContext &run;
  const char *node;
  const int64_t *next;
};

/// Calls `compute` and leaves the run if it failed, when all that it has made
/// is destroyed.
void enter(const int64_t *words, void (*compute)(RuntimeCall &));

} // namespace runtime
} // namespace sardonyx

/// A function of the runtime's that compiled code calls.
#define SARDONYX_RUNTIME_FUNCTION(name, compute)                               \
  extern "C" void name(const int64_t *words) {                                 \
    sardonyx::runtime::enter(words, compute);                                  \
  }

#endif // SARDONYX_LIB_RUNTIME_RUNTIMECALL_H
