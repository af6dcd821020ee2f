//===- Linker.h - Compiled objects in this process --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_COMPILE_LINKER_H
#define SARDONYX_LIB_SESSION_COMPILE_LINKER_H

#include "sardonyx-c/RuntimeABI.h"
#include "sardonyx/Model/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace sardonyx {

/// The objects of one model, linked against the runtime.
class LinkedCode {
public:
  /// `needsMain`, `needsInit`: which of `sdx_main` and `sdx_init` there have to
  /// be. `perfMap`: whether to write the kernels' names for `perf`.
  /// `callsProcess`: whether objects may call all functions of this process,
  /// not the runtime's alone.
  static Expected<std::unique_ptr<LinkedCode>>
  link(const std::vector<std::string> &objects, bool needsMain, bool needsInit,
       bool perfMap, bool callsProcess = false);
  ~LinkedCode();

  /// Null unless they were needed.
  sdx_entry_point initEntry() const { return init; }
  sdx_entry_point mainEntry() const { return main; }

private:
  struct Jit;
  LinkedCode();
  std::unique_ptr<Jit> jit;
  sdx_entry_point init = nullptr, main = nullptr;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_COMPILE_LINKER_H
