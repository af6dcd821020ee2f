//===- LowerChannelWindows.cpp - Windows of single channels on vectors
//-------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/ChannelWindows.h"
#include "Kernel/RootKernel.h"
#include "Plan/ChannelWindowPlan.h"
#include "Plan/Plan.h"

#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPULOWERCHANNELWINDOWS
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
  FailureOr<ChannelWindowPlanAttr> plan = getPlan<ChannelWindowPlanAttr>(
      func, *root, ChannelWindowFacts(*root, target));
  if (failed(plan))
    return failure();
  func->removeAttr(kPlanAttr);
  KernelBody body(func);
  auto kernel = make(*root, target, *plan, body);
  return emitKernel(func, *root, body, kernel);
}

namespace {

struct LowerChannelWindowsPass
    : sardonyx::impl::CPULowerChannelWindowsBase<LowerChannelWindowsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    auto makeConv = [](DepthwiseNarrowConvOp op, TargetAttr target,
                       ChannelWindowPlanAttr plan, KernelBody &body) {
      return DepthwiseNarrowConvKernel(op, target, plan, body);
    };
    auto makePool = [](ChannelsLastMaxPoolOp op, TargetAttr,
                       ChannelWindowPlanAttr plan, KernelBody &body) {
      return ChannelsLastMaxPoolKernel(op, plan, body);
    };
    if (failed(lower<DepthwiseNarrowConvOp>(func, "contraction", makeConv)) ||
        failed(lower<ChannelsLastMaxPoolOp>(func, "pooling", makePool)))
      signalPassFailure();
  }
};

} // namespace
