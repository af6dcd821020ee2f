//===- ExpandFunctions.cpp - Replace operators by their bodies ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Bridge/Bridge.h"
#include "sardonyx/Bridge/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace sardonyx {

#define GEN_PASS_DEF_ONNXEXPANDFUNCTIONS
#include "sardonyx/Bridge/Passes.h.inc"

namespace {

struct ExpandFunctionsPass
    : impl::OnnxExpandFunctionsBase<ExpandFunctionsPass> {
  using OnnxExpandFunctionsBase::OnnxExpandFunctionsBase;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    unsigned expanded = 0;
    // Bodies use operators that have bodies themselves.
    for (bool changed = true; changed;) {
      changed = false;
      SmallVector<Operation *> candidates;
      // Outer ops first: expanding one moves the graphs inside of it.
      getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (!wants(op) || !hasOnnxFunctionBody(op))
          return WalkResult::advance();
        candidates.push_back(op);
        return WalkResult::skip();
      });
      for (Operation *op : candidates) {
        if (failed(expandOnnxFunction(op, rewriter))) {
          refused.insert(op);
          continue;
        }
        changed = true;
        if (++expanded > maxOps) {
          emitError(UnknownLoc::get(&getContext()))
              << "expanding functions makes more than " << maxOps
              << " expansions";
          return signalPassFailure();
        }
      }
    }
    refused.clear();
  }

private:
  bool wants(Operation *op) const {
    // A body cannot appear by trying again.
    if (refused.contains(op))
      return false;
    StringRef name = op->getName().getStringRef();
    if (llvm::is_contained(except, name) || (unlowered && isLowered(op)))
      return false;
    return ops.empty() || llvm::is_contained(ops, name);
  }

  static bool isLowered(Operation *op) {
    auto *dialect = op->getDialect();
    auto *lowering =
        dialect
            ? dialect
                  ->getRegisteredInterface<onnx::OnnxLoweringDialectInterface>()
            : nullptr;
    return lowering && lowering->hasLowering(op->getName().getStringRef());
  }

  llvm::SmallPtrSet<Operation *, 4> refused;
};

} // namespace

} // namespace sardonyx
