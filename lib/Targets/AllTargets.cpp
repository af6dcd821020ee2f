//===- AllTargets.cpp - The targets of this tree --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Targets/CPU/CPUTarget.h"

using namespace sardonyx;

llvm::ArrayRef<TargetInfo> sardonyx::getLinkedTargets() {
  static const TargetInfo targets[] = {getCPUTarget()};
  return targets;
}
