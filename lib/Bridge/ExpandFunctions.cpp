//===- ExpandFunctions.cpp - Replace operators by their bodies ------------===//

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
  explicit ExpandFunctionsPass(std::function<bool(Operation *)> shouldExpand)
      : shouldExpand(std::move(shouldExpand)) {}

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
    if (shouldExpand)
      return shouldExpand(op);
    StringRef name = op->getName().getStringRef();
    if (llvm::is_contained(except, name))
      return false;
    return ops.empty() || llvm::is_contained(ops, name);
  }

  std::function<bool(Operation *)> shouldExpand;
  llvm::SmallPtrSet<Operation *, 4> refused;
};

} // namespace

std::unique_ptr<Pass>
createOnnxExpandFunctions(std::function<bool(Operation *)> shouldExpand) {
  return std::make_unique<ExpandFunctionsPass>(std::move(shouldExpand));
}

} // namespace sardonyx
