//===- DedupKernels.cpp - Keep one of several equal kernels -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEquality.h"
#include "sardonyx/Dispatch/Passes.h"

#include "dialects/SDX/SDX.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXDEDUPKERNELS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct DedupKernelsPass
    : sardonyx::impl::SDXDedupKernelsBase<DedupKernelsPass> {
  void runOnOperation() override {
    DenseMap<size_t, SmallVector<func::FuncOp, 1>> distinct;
    llvm::StringMap<StringRef> replacements;
    SmallVector<func::FuncOp> duplicates;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(sdx::kKernelAttr))
        continue;
      auto &candidates = distinct[hashKernel(kernel)];
      auto *equal = llvm::find_if(candidates, [&](func::FuncOp other) {
        return areEqualKernels(kernel, other);
      });
      if (equal == candidates.end()) {
        candidates.push_back(kernel);
        continue;
      }
      replacements[kernel.getName()] = equal->getName();
      duplicates.push_back(kernel);
    }
    getOperation().walk([&](sdx::CallOp call) {
      auto it = replacements.find(call.getCallee());
      if (it != replacements.end())
        call.setCallee(it->second);
    });
    for (func::FuncOp kernel : duplicates)
      kernel.erase();
  }
};

} // namespace
