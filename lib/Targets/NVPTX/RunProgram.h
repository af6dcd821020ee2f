//===- RunProgram.h - Programs that help to compile -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_RUNPROGRAM_H
#define SARDONYX_TARGETS_NVPTX_RUNPROGRAM_H

#include <string>
#include <vector>

namespace sardonyx::nv {

/// How a program has ended.
struct ProgramResult {
  /// Its exit status; -1 where it did not run or did not exit.
  int status = -1;
  /// What it has written to its standard output and errors.
  std::string output;
  /// Why the status is -1: "it was ended by signal 9".
  std::string problem;
};

/// Runs a program, words[0] being its file, without input, and waits for it.
/// After `seconds` it is killed. The process's signals and its alarm are left
/// alone.
ProgramResult runProgram(const std::vector<std::string> &words, double seconds);

} // namespace sardonyx::nv

#endif // SARDONYX_TARGETS_NVPTX_RUNPROGRAM_H
