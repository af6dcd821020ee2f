//===- Plan.cpp - Plans of kernels, given or selected ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"

using namespace mlir;
using namespace sardonyx;

LogicalResult cpu::emitMisfit(func::FuncOp kernel, Operation *root,
                              Attribute plan, StringRef reason) {
  return emitError(root->getLoc())
         << "the plan " << plan << " of kernel '" << kernel.getName()
         << "' does not fit: " << reason;
}
