//===- DedupKernels.cpp - Keep one of several equal kernels -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils.h"
#include "sardonyx/Dispatch/Passes.h"

#include "mlir/IR/OperationSupport.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXDEDUPKERNELS
#include "sardonyx/Dispatch/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Of everything but names and locations.
static llvm::hash_code hashKernel(func::FuncOp kernel) {
  llvm::hash_code hash = mlir::hash_value(kernel.getFunctionType());
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

static bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

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
        return areEqual(kernel, other);
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
