//===- SetThreadCount.cpp - How many threads share loops over tasks -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"
#include "sardonyx/Targets/NVPTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace sardonyx {
#define GEN_PASS_DEF_NVSETTHREADCOUNT
#include "sardonyx/Targets/NVPTX/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

/// Ranges that a device computes at a time. What they found is put together by
/// one thread, so more of them would take longer again.
static constexpr int64_t kThreadCount = 1024;

namespace {

struct SetThreadCountPass
    : sardonyx::impl::NVSetThreadCountBase<SetThreadCountPass> {
  void runOnOperation() override {
    getOperation().walk([](sdx::ThreadCountOp op) {
      OpBuilder b(op);
      Value count =
          arith::ConstantIndexOp::create(b, op.getLoc(), kThreadCount);
      op.getResult().replaceAllUsesWith(count);
      op.erase();
    });
  }
};

} // namespace
