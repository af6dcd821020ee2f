//===- ModelState.h - What a run of a model needs ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_MODEL_MODELSTATE_H
#define SARDONYX_LIB_MODEL_MODELSTATE_H

#include "sardonyx/Model/Model.h"

namespace sardonyx {

/// What one run needs; kept for the next.
struct Model::State {
  State(unsigned threads, std::shared_ptr<runtime::BufferPool> pool,
        std::shared_ptr<runtime::MemoryBudget> budget,
        runtime::ReclaimMemory reclaim)
      : context(threads, std::move(pool), std::move(budget),
                std::move(reclaim)) {}
  runtime::RunContext context;
  ArgumentTable table;
  /// The handles that stand for inputs which are no numbers.
  std::vector<std::vector<int64_t>> handles;
  /// The number of the model's run that used it last.
  uint64_t lastRun = 0;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_MODEL_MODELSTATE_H
