//===- AllTargets.cpp - The targets of this tree --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Objects/Facts.h"
#include "sardonyx/Targets/Target.h"

using namespace sardonyx;

static sdx::TargetAttrInterface describeCPU(mlir::MLIRContext *context,
                                            const TargetOptions &options) {
  context->getOrLoadDialect<cpu::CPUDialect>();
  return getTargetAttr(context, options);
}

llvm::ArrayRef<TargetInfo> sardonyx::getLinkedTargets() {
  static constexpr TargetInfo targets[] = {
      {"cpu", registerCPUTarget, registerCPUPasses, describeCPU}};
  return targets;
}
