//===- Profile.h - What sardonyx profile shows ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_PROFILE_H
#define SARDONYX_TOOLS_SARDONYX_PROFILE_H

#include "sardonyx/Model/Profile.h"
#include <string>
#include <vector>

/// A step or several. Times are means of the runs that took neither long nor
/// short, so that rows and what lies between them add up to a run.
struct ProfileRow {
  std::string form, kernel;
  std::vector<std::string> nodes;
  /// The types of the nodes, "Conv + Relu".
  std::string operators;
  /// Calls in a run.
  double calls = 0;
  double seconds = 0;
  /// Of one run, on average.
  double flops = 0, bytes = 0;
  /// The part of a run's time; all rows' and ProfileTable::outsideShare add up
  /// to 1.
  double share = 0;
  /// The time that the machine would need at its peaks, as a part of
  /// `seconds`; 0 where no peak is known.
  double roofline = 0;
  /// How it can be more than 1; else empty.
  std::string reason;
};

/// A step of one run, in seconds from its beginning.
struct TimelineStep {
  size_t row;
  double begin, end;
};

/// Launches of a kernel on a device with the same blocks.
struct LaunchRow {
  std::string kernel;
  /// "132 x 1 x 1" blocks of "256 x 1 x 1" threads.
  std::string blocks, threads;
  int64_t registers = 0, sharedBytes = 0;
  double occupancy = 0;
  /// Calls in a run, and seconds of all of them.
  double calls = 0, seconds = 0;
};

struct ProfileTable {
  std::string model;
  std::vector<std::string> inputs; // "x float [1, 3, 224, 224]"
  unsigned threads = 1;
  /// "AMD EPYC 9R14 (znver4)", or "NVIDIA H200 (sm_90, 132 multiprocessors)".
  std::string machine;
  bool isDevice = false;
  size_t runs = 0;
  /// Seconds of a run, and what of them lies in no step.
  double seconds = 0, outsideSeconds = 0, outsideShare = 0;
  double peakGflops = 0, peakGBs = 0;
  /// Of products of 16 bits; 0: not known.
  double peakTensorGflops = 0;
  /// The slowest first.
  std::vector<ProfileRow> rows;
  std::vector<LaunchRow> launches;
  /// The run in the middle, in order.
  std::vector<TimelineStep> timeline;
};

/// Fills all but the model, inputs, machine and peaks, which must be there. A
/// row is what `by` says: "step", "kernel" or "form".
void fillTable(const sardonyx::Profile &profile, const std::string &by,
               ProfileTable &table);

/// "236 GFLOP/s, 46.2 GB/s from memory".
std::string describePeaks(const ProfileTable &table);

/// The table as an HTML page that needs no other file.
std::string toHtml(const ProfileTable &table);

#endif // SARDONYX_TOOLS_SARDONYX_PROFILE_H
