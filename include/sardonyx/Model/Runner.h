//===- Runner.h - What can be run like a session ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_RUNNER_H
#define SARDONYX_MODEL_RUNNER_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include "sardonyx/Model/Values.h"
#include <string>
#include <vector>

namespace sardonyx {

/// A model that is ready to run: a session, or an artifact that was built ahead
/// of time.
class SARDONYX_API Runner {
public:
  virtual ~Runner();

  virtual const std::vector<ValueInfo> &inputs() const = 0;
  virtual const std::vector<ValueInfo> &outputs() const = 0;
  virtual const ModelMetadata &metadata() const = 0;

  /// Runs the model. `inputs` in the order of inputs(); `memory` is empty or
  /// has an entry for each output, which may overlap inputs and no other
  /// output. Results are in the order of outputs().
  /// Any number of threads may run one model at a time.
  virtual Expected<std::vector<Tensor>>
  run(const std::vector<TensorRef> &inputs,
      const std::vector<OutputRef> &memory = {},
      const RunOptions &options = RunOptions()) = 0;

  /// The number of the CUDA device that its kernels run on, and where inputs
  /// and results may lie; kHost: none.
  virtual int device() const { return kHost; }

  /// What the model, or what a run was given, has wrong that kept nothing from
  /// running: a sentence each, told once. Any thread may ask.
  virtual bool hasWarnings() const { return false; }
  virtual std::vector<std::string> takeWarnings() { return {}; }

  /// Bytes that weights, runs and results hold of the memory limit.
  virtual int64_t bytesHeld() const = 0;
  /// Gives the system the memory that is kept for the next run. What runs stop
  /// using is also given back by itself, some runs later.
  virtual void releaseMemory() = 0;
};

} // namespace sardonyx

#endif // SARDONYX_MODEL_RUNNER_H
