//===- PollHostLoops.cpp - Loops that a run can be ended in ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextConstant.h"
#include "sardonyx/Host/Passes.h"
#include "sardonyx/NodeName.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/CallInterfaces.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXPOLLHOSTLOOPS
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

/// Trips assumed of a loop whose bounds are not known, to tell whether a loop
/// around it is heavy: rather many.
static constexpr int64_t kUnknownTrips = 1024;
/// Operations of one trip of a loop of a kernel that has to poll.
static constexpr int64_t kHeavyTrip = 2000;
/// Trips assumed to tell how often a loop polls: rather few.
static constexpr int64_t kFewTrips = 64;
/// Operations of one trip beside which a poll, which takes as long as some
/// fifty of them, costs nothing.
static constexpr int64_t kLongTrip = 4000;
/// Operations between two polls of a loop of shorter trips.
static constexpr int64_t kPollDistance = 16000;
/// Trips between two polls of a loop over iterations that the thread pool hands
/// out: it looks itself after about a millisecond of them.
static constexpr int64_t kTripsOfChunk = 16;
/// More than anything that has to be told apart.
static constexpr int64_t kMany = int64_t(1) << 40;

static int64_t tripsOf(Operation *op, int64_t unknown) {
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return isa<scf::WhileOp>(op) ? unknown : 1;
  auto lower = getConstantIntValue(loop.getLowerBound());
  auto upper = getConstantIntValue(loop.getUpperBound());
  auto step = getConstantIntValue(loop.getStep());
  if (!lower || !upper || !step || *step <= 0)
    return unknown;
  return *upper > *lower ? llvm::divideCeil(*upper - *lower, *step) : 0;
}

/// Whether `op` may take any time: it calls something that returns.
static bool mayTakeLong(Operation &op) {
  auto call = dyn_cast<LLVM::CallOp>(op);
  if (call && call.getCallee() == "sdx_rt_check_failed")
    return false;
  return isa<CallOpInterface>(op);
}

/// Whether `op` is a loop over memory.
static bool isMove(Operation *op) {
  return isa<LLVM::MemcpyOp, LLVM::MemsetOp>(op);
}

/// About how many operations `op`, which moves memory, is worth: one for 8
/// bytes; `unknown` for an open number of bytes.
static int64_t costOfMove(Operation &op, int64_t unknown) {
  constexpr int64_t kBytes = 8;
  std::optional<int64_t> bytes = getConstantIntValue(op.getOperand(2));
  return bytes ? llvm::divideCeil(std::clamp<int64_t>(*bytes, 1, kMany), kBytes)
               : unknown;
}

/// About how many operations one run of a block takes, if loops of open bounds
/// in it make `unknown` trips.
static int64_t costOf(Block &block, int64_t unknown = kUnknownTrips) {
  int64_t cost = 0;
  for (Operation &op : block) {
    int64_t inner = mayTakeLong(op) ? kPollDistance
                    : isMove(&op)   ? costOfMove(op, unknown)
                                    : 1;
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        inner += costOf(nested, unknown);
    // Both factors are below 2^41.
    int64_t trips = std::min(tripsOf(&op, unknown), kMany);
    inner = trips > kMany / inner ? kMany : trips * inner;
    cost = std::min(kMany, cost + inner);
  }
  return cost;
}

namespace {

struct PollLoopsPass : sardonyx::impl::SDXPollHostLoopsBase<PollLoopsPass> {
  void runOnOperation() override {
    pollFunction = {};
    numNames = 0;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      bool isHost = func.getName() == "main" || func.getName() == "init";
      // Polls would count as work of the loops around theirs.
      SmallVector<std::pair<scf::ForOp, int64_t>> loops;
      func.walk([&](scf::ForOp loop) {
        if (isHost || isHeavy(loop))
          loops.emplace_back(loop, tripsToPoll(loop));
      });
      func.walk([&](scf::WhileOp loop) {
        if (isHost)
          countTrips(func, loop);
        else
          pollInSearch(loop);
      });
      for (auto [loop, trips] : loops)
        pollNowAndThen(loop, trips);
    }
  }

private:
  /// Whether a trip of a kernel's loop takes so long that the run may have to
  /// be ended before the next. Loops deep inside of others are short enough.
  static bool isHeavy(scf::ForOp loop) {
    unsigned depth = 0;
    for (auto outer = loop->getParentOfType<LoopLikeOpInterface>(); outer;
         outer = outer->getParentOfType<LoopLikeOpInterface>())
      ++depth;
    bool innermost = true;
    loop.getBody()->walk([&](Operation *op) {
      innermost &= !isa<LoopLikeOpInterface>(op) && !isMove(op);
    });
    return depth <= 1 && !innermost && costOf(*loop.getBody()) >= kHeavyTrip;
  }

  LLVM::LLVMFuncOp declarePoll() {
    if (pollFunction)
      return pollFunction;
    ModuleOp module = getOperation();
    pollFunction = module.lookupSymbol<LLVM::LLVMFuncOp>("sdx_rt_poll");
    if (pollFunction)
      return pollFunction;
    auto b = OpBuilder::atBlockBegin(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(&getContext()),
        {b.getI64Type(), LLVM::LLVMPointerType::get(&getContext())});
    return pollFunction = LLVM::LLVMFuncOp::create(b, module.getLoc(),
                                                   "sdx_rt_poll", type);
  }

  void pollIn(Block *body) {
    auto b = OpBuilder::atBlockBegin(body);
    poll(b, body->getParentOp()->getLoc());
  }

  /// Whether the iterations of a parallel loop that a thread was given are the
  /// trips of `loop`.
  static bool isChunk(scf::ForOp loop) {
    auto func = dyn_cast<func::FuncOp>(loop->getParentOp());
    return func && func.getNumArguments() >= 2 &&
           loop.getLowerBound() == func.getArgument(0) &&
           loop.getUpperBound() == func.getArgument(1);
  }

  /// In one of how many trips a loop polls: a power of two.
  static int64_t tripsToPoll(scf::ForOp loop) {
    int64_t cost = costOf(*loop.getBody(), kFewTrips);
    if (cost >= kLongTrip)
      return isChunk(loop) && costOf(*loop.getBody(), 1) < kLongTrip
                 ? kTripsOfChunk
                 : 1;
    return llvm::bit_floor(
        static_cast<uint64_t>(kPollDistance / std::max<int64_t>(1, cost)));
  }

  /// Polls in the last of every so many trips, so that a loop of fewer does not
  /// poll at all.
  void pollNowAndThen(scf::ForOp loop, int64_t trips) {
    if (trips == 1 || getConstantIntValue(loop.getStep()) != 1)
      return pollIn(loop.getBody());
    auto b = OpBuilder::atBlockBegin(loop.getBody());
    pollInLast(b, loop.getLoc(), loop.getInductionVar(), trips, 1);
  }

  /// Polls where `counter`, which grows by `step`, is in the last of every so
  /// many trips.
  void pollInLast(OpBuilder &b, Location loc, Value counter, int64_t trips,
                  int64_t step) {
    Type type = counter.getType();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
    };
    Value last = constant(trips * step - 1);
    Value place = arith::AndIOp::create(b, loc, counter, last);
    Value isLast =
        step == 1 ? arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          place, last)
                  : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                          place, constant((trips - 1) * step));
    scf::IfOp::create(b, loc, isLast, [&](OpBuilder &then, Location at) {
      poll(then, at);
      scf::YieldOp::create(then, at);
    });
  }

  /// Polls in a kernel's loop with a condition: in the last of every so many
  /// trips where its first value counts them.
  void pollInSearch(scf::WhileOp loop) {
    constexpr int64_t kMaxStep = 64;
    Block *body = loop.getAfterBody();
    auto next =
        loop.getYieldOp().getResults().empty()
            ? arith::AddIOp()
            : loop.getYieldOp().getOperand(0).getDefiningOp<arith::AddIOp>();
    std::optional<int64_t> step =
        next ? getConstantIntValue(next.getRhs()) : std::nullopt;
    const int64_t trips = llvm::bit_floor(static_cast<uint64_t>(
        kPollDistance / std::max<int64_t>(1, costOf(*body, kFewTrips))));
    if (!step || *step < 1 || *step > kMaxStep || !llvm::isPowerOf2_64(*step) ||
        body->getNumArguments() == 0 || next.getLhs() != body->getArgument(0) ||
        trips <= 1)
      return pollIn(body);
    auto b = OpBuilder::atBlockBegin(body);
    pollInLast(b, loop.getLoc(), body->getArgument(0), trips, *step);
  }

  void poll(OpBuilder &b, Location loc) {
    Value none = LLVM::ConstantOp::create(b, loc, b.getI64Type(), 0);
    Value nobody =
        LLVM::ZeroOp::create(b, loc, LLVM::LLVMPointerType::get(&getContext()));
    LLVM::CallOp::create(b, loc, declarePoll(), ValueRange{none, nobody});
  }

  /// Counts the trips of an ONNX Loop in a variable and tells each poll.
  void countTrips(func::FuncOp func, scf::WhileOp loop) {
    Location loc = loop.getLoc();
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    auto entry = OpBuilder::atBlockBegin(&func.getBody().front());
    Type i64 = entry.getI64Type();
    Value one = LLVM::ConstantOp::create(entry, loc, i64, 1);
    Value count = LLVM::AllocaOp::create(entry, loc, pointer, i64, one);
    OpBuilder before(loop);
    Value zero = LLVM::ConstantOp::create(before, loc, i64, 0);
    LLVM::StoreOp::create(before, loc, zero, count);
    auto b = OpBuilder::atBlockBegin(loop.getAfterBody());
    Value trip = LLVM::AddOp::create(
        b, loc, LLVM::LoadOp::create(b, loc, i64, count), one);
    LLVM::StoreOp::create(b, loc, trip, count);
    LLVM::CallOp::create(b, loc, declarePoll(),
                         ValueRange{trip, makeName(b, loc)});
  }

  Value makeName(OpBuilder &b, Location loc) {
    std::string text = sardonyx::describeNode(loc);
    if (text.empty())
      return LLVM::ZeroOp::create(b, loc,
                                  LLVM::LLVMPointerType::get(&getContext()));
    return LLVM::AddressOfOp::create(
        b, loc,
        sardonyx::createText(getOperation(), loc,
                             "sdx_loop_" + Twine(numNames++), text));
  }

  LLVM::LLVMFuncOp pollFunction;
  unsigned numNames = 0;
};

} // namespace
