//===- Values.h - What goes into a run and comes out ---------- -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_VALUES_H
#define SARDONYX_MODEL_VALUES_H

#include "sardonyx/Model/Error.h"
#include "sardonyx/Model/Export.h"
#include "sardonyx/Model/Types.h"
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sardonyx {

/// What can end a run before it is done, and what happens after it.
struct RunOptions {
  /// Ends all runs with these options, and lets none begin, while it is true.
  /// Any thread and any signal handler may set it.
  std::atomic<bool> terminate{false};
  /// Looked at in the place of `terminate`, where it is set.
  const std::atomic<bool> *terminateFlag = nullptr;
  /// Seconds that a run may take; 0: as long as it likes.
  double timeout = 0;
  /// Trips that any one Loop of the model may take; 0: any number.
  int64_t maxTripCount = 0;
  /// Asked every some milliseconds by the thread that runs; true ends the run.
  std::function<bool()> interrupted;
  /// Give the system the memory that would be kept for the next run, and that
  /// of the results when the caller no longer needs them.
  bool releaseMemory = false;
};

/// Stands for the host's memory where devices are counted.
constexpr int kHost = -1;

/// A tensor in the caller's memory, contiguous, row by row; or a sequence of
/// such or of maps, or a map, or nothing for an optional.
struct TensorRef {
  ElementType type = ElementType::Undefined;
  const void *data = nullptr;
  std::vector<int64_t> shape;
  ValueKind kind = ValueKind::Tensor;
  /// Of a sequence. Of a map: its keys and its values, in any order that is the
  /// same for both.
  std::vector<TensorRef> items = {};
  /// The number of the CUDA device that the data lies on. What the process's
  /// default stream has to do then comes before a run.
  int device = kHost;
};

/// Memory of the caller for a result; without `data` the session gives its own.
struct OutputRef {
  ElementType type = ElementType::Undefined;
  void *data = nullptr;
  std::vector<int64_t> shape;
  /// The number of the CUDA device where the memory is, or is to be.
  int device = kHost;
};

/// A result. Copies share the memory.
struct SARDONYX_API Tensor {
  ElementType type = ElementType::Undefined;
  std::vector<int64_t> shape;
  /// Null where the result lies in the caller's memory.
  std::shared_ptr<void> owner;
  void *data = nullptr;
  ValueKind kind = ValueKind::Tensor;
  /// Of a sequence. Of a map: its keys, in ascending order, and its values.
  std::vector<Tensor> items = {};
  /// The number of the CUDA device that the data lies on. The memory may serve
  /// the next run when its last owner is gone: work of other streams than the
  /// process's default one must be done then.
  int device = kHost;

  int64_t elements() const;
  int64_t bytes() const { return elements() * byteSizeOf(type); }
};

/// What is wrong with the options, if anything.
SARDONYX_API MaybeError checkOptions(const RunOptions &options);

} // namespace sardonyx

#endif // SARDONYX_MODEL_VALUES_H
