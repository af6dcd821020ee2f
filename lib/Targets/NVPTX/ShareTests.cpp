//===- ShareTests.cpp - Tests that the threads of a warp share ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a task asks whether something holds for one of many indices, a warp has
// it: all its threads do the same, but of the indices each tests another one.
// What they write is the same, so that each reads what it has written itself.
//
//===----------------------------------------------------------------------===//

#include "ThreadLoops.h"
#include "dialects/NV/NV.h"
#include "dialects/SDX/TaskLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace sardonyx;

static constexpr int64_t kWarp = 32;

/// What the index of such a search is less than; null where it has another form
/// than that of sdx.any.
static Value findLimit(scf::WhileOp search) {
  Block *before = search.getBeforeBody(), *after = search.getAfterBody();
  if (search.getNumResults() != 2 || !search.getResult(0).use_empty() ||
      before->getNumArguments() != 2 ||
      !before->getArgument(0).getType().isIndex() ||
      !before->getArgument(1).getType().isInteger(1) ||
      !llvm::equal(search.getConditionOp().getArgs(), before->getArguments()))
    return {};
  auto next = search.getYieldOp().getOperand(0).getDefiningOp<arith::AddIOp>();
  if (!next || next.getLhs() != after->getArgument(0) ||
      !isConstantIntValue(next.getRhs(), 1))
    return {};
  for (Operation &op : *before)
    if (auto less = dyn_cast<arith::CmpIOp>(op))
      if (less.getPredicate() == arith::CmpIPredicate::slt &&
          less.getLhs() == before->getArgument(0) &&
          less.getRhs().getParentBlock() != before)
        return less.getRhs();
  return {};
}

/// Whether `condition` holds in one of a warp's threads.
static Value holdsInWarp(ImplicitLocOpBuilder &b, Value condition) {
  Value bits = arith::ExtUIOp::create(b, b.getI32Type(), condition);
  for (int32_t distance = kWarp / 2; distance > 0; distance /= 2)
    bits = arith::OrIOp::create(
        b, bits,
        gpu::ShuffleOp::create(b, bits, distance, kWarp, gpu::ShuffleMode::XOR)
            .getShuffleResult());
  return arith::TruncIOp::create(b, b.getI1Type(), bits);
}

static void shareTest(scf::WhileOp search, Value limit) {
  Block *after = search.getAfterBody();
  scf::YieldOp yield = search.getYieldOp();
  Value first = after->getArgument(0);
  auto b = ImplicitLocOpBuilder::atBlockBegin(search.getLoc(), after);
  // The last index more than once is none too many.
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value own = arith::AddIOp::create(b, first, thread);
  Value last =
      arith::SubIOp::create(b, limit, arith::ConstantIndexOp::create(b, 1));
  Value at = arith::MinSIOp::create(b, own, last);
  first.replaceAllUsesExcept(at, own.getDefiningOp());
  b.setInsertionPoint(yield);
  Value next =
      arith::AddIOp::create(b, first, arith::ConstantIndexOp::create(b, kWarp));
  yield->setOperand(0, next);
  yield->setOperand(1, holdsInWarp(b, yield.getOperand(1)));
}

void nv::shareTests(scf::ParallelOp loop) {
  SmallVector<std::pair<scf::WhileOp, Value>> searches;
  WalkResult result = loop.walk([&](Operation *op) {
    // A thread's own memory, and an end that is not all threads'.
    if (isa<memref::AllocOp, sdx::CheckOp>(op))
      return WalkResult::interrupt();
    auto search = dyn_cast<scf::WhileOp>(op);
    if (search && search->hasAttr(sdx::kAnyAttr))
      if (Value limit = findLimit(search))
        searches.emplace_back(search, limit);
    return WalkResult::advance();
  });
  if (result.wasInterrupted() || searches.empty())
    return;
  for (auto [search, limit] : searches)
    shareTest(search, limit);
  loop->setAttr(
      kThreadsAttr,
      IntegerAttr::get(IntegerType::get(loop.getContext(), 64), kWarp));
}
