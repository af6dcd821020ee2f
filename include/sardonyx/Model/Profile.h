//===- Profile.h - Where the time of runs goes ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_MODEL_PROFILE_H
#define SARDONYX_MODEL_PROFILE_H

#include "sardonyx/Model/Export.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sardonyx {

/// A step of a compiled model: a call of a kernel, or a copy.
struct ProfileSite {
  /// The kernel's name; several sites may call one kernel.
  std::string kernel;
  /// What it computes in a word or two, "conv 3x3 stride 2x2".
  std::string form;
  /// The ONNX nodes that it computes, "'conv1' (Conv)".
  std::vector<std::string> nodes;
};

/// One run of a step.
struct ProfileEvent {
  /// Of Profile::sites.
  size_t site;
  /// Nanoseconds of std::chrono::steady_clock.
  int64_t begin, end;
  /// Floating-point operations (a convolution's are those of the direct sum; an
  /// operation of a kernel whose sizes cannot be told before counts nothing)
  /// and the bytes of all operands, each counted once.
  double flops, bytes;
};

/// A launch of a kernel that a step has made on a device.
struct ProfileLaunch {
  /// Of Profile::sites.
  size_t site;
  std::string kernel;
  /// In x, y and z.
  int64_t blocks[3], threads[3];
  /// Of a block, and the registers of a thread.
  int64_t sharedBytes, registers;
  /// Nanoseconds of std::chrono::steady_clock.
  int64_t begin, end;
  /// Of the warps that a multiprocessor can have at a time, the part that it
  /// has of this kernel.
  double occupancy;
};

/// One run of the model that did not fail, with its events.
struct ProfileRun {
  int64_t begin, end;
  /// Counts the threads that run the session, from 0.
  size_t thread;
  std::vector<ProfileEvent> events;
  std::vector<ProfileLaunch> launches;
};

struct Profile {
  std::vector<ProfileSite> sites;
  std::vector<ProfileRun> runs;
  /// Runs that came after the profile had as many events as it keeps.
  size_t droppedRuns = 0;

  /// The profile keeps no further run once it has so many events.
  static constexpr size_t kMaxEvents = 1000000;
};

/// The profile in Chrome's trace event format, which Perfetto and
/// chrome://tracing show: an array of complete events, of the category
/// "Session" for runs, "Node" for steps and "Kernel" for launches on a device,
/// which have blocks, threads and occupancy. Times count from
/// `start`, in nanoseconds of the steady clock, or from the first run where
/// that is earlier.
SARDONYX_API std::string toTrace(const Profile &profile,
                                 int64_t start = INT64_MAX);

} // namespace sardonyx

#endif // SARDONYX_MODEL_PROFILE_H
