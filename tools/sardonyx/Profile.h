//===- Profile.h - What sardonyx profile shows ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_PROFILE_H
#define SARDONYX_TOOLS_SARDONYX_PROFILE_H

#include <string>
#include <vector>

/// A step or several: in a run they take `seconds` in the median.
struct ProfileRow {
  std::string form, kernel;
  std::vector<std::string> nodes;
  /// Calls in all runs.
  double calls = 0;
  double seconds = 0;
  /// Of one run, on average.
  double flops = 0, bytes = 0;
  /// The time that the machine would need at its peaks, as a part of
  /// `seconds`; 0 where no peak is known.
  double roofline = 0;
};

/// Launches of a kernel on a device with the same blocks.
struct LaunchRow {
  std::string kernel;
  /// "132 x 1 x 1" blocks of "256 x 1 x 1" threads.
  std::string blocks, threads;
  int64_t registers = 0, sharedBytes = 0;
  double occupancy = 0;
  /// In all runs; seconds of all calls of a run, on average.
  double calls = 0, seconds = 0;
};

struct ProfileTable {
  std::string model;
  std::vector<std::string> inputs; // "x float [1, 3, 224, 224]"
  unsigned threads = 1;
  /// "NVIDIA H200 (sm_90, 132 multiprocessors)"; empty: the processor.
  std::string device;
  size_t runs = 0;
  /// Median seconds of a run.
  double seconds = 0;
  /// The part of all runs' time that the rows account for.
  double covered = 0;
  double peakGflops = 0, peakGBs = 0;
  /// Of products of 16 bits; 0: not known.
  double peakTensorGflops = 0;
  /// The slowest first.
  std::vector<ProfileRow> rows;
  std::vector<LaunchRow> launches;
};

/// "236 GFLOP/s, 46.2 GB/s from memory".
std::string describePeaks(const ProfileTable &table);

/// The table as an HTML page that needs no other file.
std::string toHtml(const ProfileTable &table);

#endif // SARDONYX_TOOLS_SARDONYX_PROFILE_H
