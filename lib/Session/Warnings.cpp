//===- Warnings.cpp - What a session tells beside its results -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Session/Warnings.h"

#include <utility>

using namespace sardonyx;
using Lock = std::lock_guard<runtime::ForkSafeMutex>;

void Warnings::add(const std::string &subject, std::string text) {
  Lock lock(mutex);
  if (!told.insert(subject).second)
    return;
  pending.push_back(std::move(text));
  isAny.store(true, std::memory_order_relaxed);
}

static bool fits(const std::vector<Dim> &dims,
                 const std::vector<int64_t> &shape) {
  if (dims.size() != shape.size())
    return false;
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].isStatic() && dims[i].size != shape[i])
      return false;
  return true;
}

void Warnings::addOutputs(const std::vector<ValueInfo> &declared,
                          const std::vector<Tensor> &results) {
  for (size_t i = 0; i < declared.size(); ++i) {
    const ValueInfo &info = declared[i];
    if (info.hasRank && info.items.empty() &&
        !fits(info.dims, results[i].shape))
      add("output " + info.name,
          "output '" + info.name + "' is declared with the shape " +
              describeShape(info.dims) + ", but a run gave " +
              describeShape(results[i].shape) + "; the declaration is ignored");
  }
}

std::vector<std::string> Warnings::take() {
  Lock lock(mutex);
  isAny.store(false, std::memory_order_relaxed);
  return std::exchange(pending, {});
}
