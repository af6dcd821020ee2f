//===- CTypes.h - What the C interface's handles are ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_CTYPES_H
#define SARDONYX_MODEL_CTYPES_H

#include "sardonyx-c/sardonyx.h"
#include "sardonyx/Model/Runner.h"
#include <deque>
#include <memory>
#include <string>
#include <vector>

struct sdx_error {
  sardonyx::Error error;
};
struct sdx_run_options {
  sardonyx::RunOptions options;
};
namespace sardonyx {
class Session;
} // namespace sardonyx

struct sdx_session {
  explicit sdx_session(std::shared_ptr<sardonyx::Runner> given)
      : session(std::move(given)),
        modelVersion(std::to_string(session->metadata().modelVersion)) {}

  std::shared_ptr<sardonyx::Runner> session;
  std::string modelVersion;
  /// The same as `session` where it was compiled here, else null.
  sardonyx::Session *compiled = nullptr;
  sdx_log_function log = nullptr;
  void *logUser = nullptr;
};
struct sdx_results {
  explicit sdx_results(std::vector<sardonyx::Tensor> given);

  std::vector<sardonyx::Tensor> tensors;
  std::vector<sdx_value> values;

private:
  sdx_value describe(const sardonyx::Tensor &tensor);

  std::deque<std::vector<sdx_value>> lists;
};

namespace sardonyx {

/// Tells a caller who wants to know what a model has warned of.
void tellWarnings(Runner &model, sdx_log_function log, void *user);

/// Gives an error to a caller who wants to have it.
void report(const Error &error, sdx_error **out);

/// The caller's memory for results and the devices that it is on; both are null
/// or have an entry for each of `outputs`.
std::vector<OutputRef> memoryOf(const sdx_tensor *memory, const int *devices,
                                const std::vector<ValueInfo> &outputs);

/// The numbers of the CUDA devices that inputs and the memory for results are
/// on, or are to be; null: all are the host's.
struct Places {
  const int *inputs = nullptr, *memory = nullptr;
};

/// Runs a model on values of any type; null and an error where that fails.
sdx_results *runValues(const sdx_session *session, const sdx_value *inputs,
                       size_t inputCount, const sdx_tensor *memory,
                       const Places &places, const RunOptions &options,
                       sdx_error **error);

} // namespace sardonyx

#endif // SARDONYX_MODEL_CTYPES_H
