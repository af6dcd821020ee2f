//===- Progress.h - A line that tells what takes long -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TOOLS_SARDONYX_PROGRESS_H
#define SARDONYX_TOOLS_SARDONYX_PROGRESS_H

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

/// Where the standard error is a terminal, a line "compiling model.onnx, 2 s"
/// on it from half a second on; it is gone when this is.
class Progress {
public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

private:
  void show();

  std::string what;
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  std::thread thread;
};

#endif // SARDONYX_TOOLS_SARDONYX_PROGRESS_H
