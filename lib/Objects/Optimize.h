//===- Optimize.h - LLVM's optimiser for kernels ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_OBJECTS_OPTIMIZE_H
#define SARDONYX_LIB_OBJECTS_OPTIMIZE_H

#include "dialects/CPU/CPU.h"
#include "sardonyx/Objects/Objects.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace sardonyx {

/// Whether somebody wants no result of the compilation any more.
inline bool isStopped(const TargetOptions &options) {
  return options.stop && options.stop->load();
}

/// Runs LLVM's optimiser on `module`.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              cpu::TargetAttr target, const TargetOptions &options);

} // namespace sardonyx

#endif // SARDONYX_LIB_OBJECTS_OPTIMIZE_H
