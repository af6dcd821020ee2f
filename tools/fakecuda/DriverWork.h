//===- DriverWork.h - What streams and graphs do ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_FAKECUDA_DRIVERWORK_H
#define SARDONYX_TOOLS_FAKECUDA_DRIVERWORK_H

#include "tools/fakecuda/DriverState.h"

namespace sardonyx {
namespace fakecuda {

/// Refuses addresses outside of allocations, and device memory where memory of
/// the host is expected. `what` is told.
cuda::CUresult checkDevice(const char *what, cuda::CUdeviceptr address,
                           size_t bytes);
cuda::CUresult checkHost(const char *what, const void *data);

/// The log that options ask for.
cuda::CompilerLog findLog(unsigned int count, const cuda::CUjit_option *options,
                          void **values);
/// Writes what there is room for, and a zero.
void writeLog(const cuda::CompilerLog &log, const std::string &text);

/// One end of a copy.
struct CopyEnd {
  void *data;
  bool isDevice;
};
/// Both ends are read and written when the work is done, and looked at again
/// then: a graph may outlive what it copies.
std::function<void()> makeCopy(CopyEnd to, CopyEnd from, size_t bytes);
/// `value`'s low bytes, as many as an element has, `count` times.
std::function<void()> makeFill(cuda::CUdeviceptr to, unsigned int value,
                               size_t elementBytes, size_t count);

/// The sizes of a launch, still without arguments.
struct LaunchSizes {
  unsigned int grid[3], block[3];
  unsigned int sharedBytes;
  /// Whether it may begin before what comes before it has ended.
  bool isDependent = false;
};
/// A launch with copies of its arguments.
cuda::CUresult makeLaunch(const char *what, cuda::CUfunction function,
                          const LaunchSizes &sizes, void **arguments,
                          void **extra, std::function<void()> &work);

} // namespace fakecuda
} // namespace sardonyx

#endif // SARDONYX_TOOLS_FAKECUDA_DRIVERWORK_H
