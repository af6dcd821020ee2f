//===- DeviceUse.h - What a run has had a device do -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_DEVICEUSE_H
#define SARDONYX_RUNTIME_DEVICEUSE_H

#include <cstdint>

namespace sardonyx {

/// What a run has had a device do.
struct DeviceUse {
  int64_t kernels = 0;
  /// Between the host and the device, and their bytes, inputs and results
  /// included.
  int64_t copies = 0, copiedBytes = 0;
  /// What the driver was given: a graph is one thing, however many kernels and
  /// copies it has.
  int64_t submissions = 0;
  /// How often the run waited for the device.
  int64_t waits = 0;
  /// Of the device, at the end of the run: weights, intermediate values and
  /// results that are kept.
  int64_t memoryBytes = 0;
  /// Seconds of the run in which it did not wait for the device.
  double hostSeconds = 0;
};

} // namespace sardonyx

#endif // SARDONYX_RUNTIME_DEVICEUSE_H
