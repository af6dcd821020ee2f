//===- Warnings.h - What a session tells beside its results -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_WARNINGS_H
#define SARDONYX_LIB_SESSION_WARNINGS_H

#include "sardonyx/Model/Types.h"
#include "sardonyx/Model/Values.h"
#include "sardonyx/Runtime/ForkSafeMutex.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sardonyx {

/// Sentences for the user, each subject once in the life of a session. Runs on
/// any number of threads may add some.
class Warnings {
public:
  /// Keeps `text` unless there has been one on this subject.
  void add(const std::string &subject, std::string text);
  /// Warns of results that do not have the shapes of their declarations.
  void addOutputs(const std::vector<ValueInfo> &declared,
                  const std::vector<Tensor> &results);

  bool any() const { return isAny.load(std::memory_order_relaxed); }
  std::vector<std::string> take();

private:
  runtime::ForkSafeMutex mutex;
  std::set<std::string> told;
  std::vector<std::string> pending;
  std::atomic<bool> isAny{false};
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_WARNINGS_H
