//===- VerifyIndices.cpp - Which accesses nothing keeps in bounds ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel takes the sizes of one buffer for those of others, so each kernel is
// looked at with the sizes that its calls pass.
//
//===----------------------------------------------------------------------===//

#include "Common/IndexValues.h"
#include "Common/MemoryAccess.h"
#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/Common/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXVERIFYINDICES
#include "sardonyx/Targets/Common/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

namespace {

struct VerifyIndicesPass
    : sardonyx::impl::SDXVerifyIndicesBase<VerifyIndicesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || func->hasAttr(sdx::kKernelAttr))
        continue;
      IndexValues values(bounds);
      values.nameSizes(func);
      visitRegion(func.getBody(), values);
    }
    // A kernel that nothing calls is looked at by itself.
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && func->hasAttr(sdx::kKernelAttr) &&
          !called.contains(func)) {
        IndexValues values(bounds);
        visitRegion(func.getBody(), values);
      }
    if (fail && !reported.empty())
      signalPassFailure();
  }

private:
  void visitRegion(Region &region, IndexValues &values) {
    for (Block &block : region) {
      size_t before = bounds.countFacts();
      for (Operation &op : block)
        visit(&op, values);
      bounds.popFacts(before);
    }
  }

  void visit(Operation *op, IndexValues &values) {
    if (auto check = dyn_cast<sdx::CheckOp>(op))
      return values.assume(check.getCondition(), true,
                           isa<func::FuncOp>(op->getParentOp()));
    if (auto call = dyn_cast<sdx::CallOp>(op))
      return visitCall(call, values);
    if (auto access = MemoryAccess::get(op)) {
      if (std::string what = values.findUncovered(*access); !what.empty())
        report(op, *access, what);
      return;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region *region :
           {&branch.getThenRegion(), &branch.getElseRegion()}) {
        size_t before = bounds.countFacts();
        values.assume(branch.getCondition(), region == &branch.getThenRegion());
        visitRegion(*region, values);
        bounds.popFacts(before);
      }
      return;
    }
    for (Region &region : op->getRegions())
      visitRegion(region, values);
  }

  void visitCall(sdx::CallOp call, IndexValues &values) {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal())
      return;
    called.insert(callee);
    SmallVector<Value> args(call.getIns());
    llvm::append_range(args, call.getOuts());
    IndexValues inner(bounds);
    // Calls with the same sizes need one look.
    std::string key = callee.getName().str();
    for (auto [arg, value] : llvm::zip(callee.getArguments(), args))
      key += ";" + inner.bind(arg, value, values);
    if (!seen.insert(key).second)
      return;
    visitRegion(callee.getBody(), inner);
  }

  void report(Operation *op, const MemoryAccess &access, StringRef what) {
    if (!reported.insert(op).second)
      return;
    InFlightDiagnostic diagnostic = fail ? op->emitError() : op->emitRemark();
    diagnostic << "nothing keeps this " << (access.isStore ? "store" : "load")
               << " within " << access.memref.getType() << ": " << what;
  }

  IndexBounds bounds;
  DenseSet<Operation *> called, reported;
  llvm::StringSet<> seen;
};

} // namespace
