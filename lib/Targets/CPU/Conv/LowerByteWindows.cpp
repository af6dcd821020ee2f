//===- LowerByteWindows.cpp - Windows of single channels on vectors -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/ByteWindows.h"
#include "Kernel/RootKernel.h"
#include "Plan/ByteWindowPlan.h"
#include "Plan/Plan.h"

#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERBYTEWINDOWS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// Emits the kernel around an `OpT`, if `func` is one.
template <typename OpT, typename MakeT>
static LogicalResult lower(func::FuncOp func, StringRef what, MakeT make) {
  FailureOr<OpT> root = findRoot<OpT>(func, what);
  if (failed(root))
    return failure();
  if (!*root)
    return success();
  const TargetAttr target = cpu::getTargetOrDefault(func);
  FailureOr<ByteWindowPlanAttr> plan =
      getPlan<ByteWindowPlanAttr>(func, *root, ByteWindowFacts(*root, target));
  if (failed(plan))
    return failure();
  func->removeAttr(kPlanAttr);
  KernelBody body(func);
  auto kernel = make(*root, target, *plan, body);
  return emitKernel(func, *root, body, kernel);
}

namespace {

struct LowerByteWindowsPass
    : sardonyx::impl::CPULowerByteWindowsBase<LowerByteWindowsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    auto makeConv = [](DepthwiseByteConvOp op, TargetAttr target,
                       ByteWindowPlanAttr plan, KernelBody &body) {
      return DepthwiseByteConvKernel(op, target, plan, body);
    };
    auto makePool = [](ByteMaxPoolOp op, TargetAttr, ByteWindowPlanAttr plan,
                       KernelBody &body) {
      return ByteMaxPoolKernel(op, plan, body);
    };
    if (failed(lower<DepthwiseByteConvOp>(func, "contraction", makeConv)) ||
        failed(lower<ByteMaxPoolOp>(func, "pooling", makePool)))
      signalPassFailure();
  }
};

} // namespace
