//===- RowsPlan.cpp - How elementwise and row kernels are computed --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowsPlan.h"

#include "Kernel/Vectorize.h"
#include "Rows/AccessPattern.h"
#include "Rows/BodyOnLanes.h"
#include "Rows/RowPlan.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The bounds of plans by hand.
static constexpr int64_t kMinLanes = 2, kMaxLanes = 64, kMaxUnroll = 8,
                         kMaxRows = 8, kMaxChunk = int64_t(1) << 30;

/// Where what is no whole vector goes one by one, rows of open sizes are taken
/// for short ones.
static constexpr int64_t kLanesOfOpen = 16;

/// A cost of `lane` along the vectors; none when it is impossible.
static std::optional<double> rateLane(ReductionGroup &group, int64_t lane,
                                      int64_t lanes) {
  int64_t size = group.getStaticSize(lane);
  if (size >= 0 && size < 2)
    return std::nullopt;
  double cost = 0;
  auto add = [&](RowAccess &access, double strided) {
    if (access.kind != RowAccess::Memory)
      return true;
    Type type = cast<MemRefType>(access.value.getType()).getElementType();
    if (!type.isIntOrFloat() || type.getIntOrFloatBitWidth() < 8)
      return false;
    switch (getAccessPattern(access, lane)) {
    case AccessPattern::Uniform:
      cost += 0.25;
      return true;
    case AccessPattern::Contiguous:
      cost += 1;
      return true;
    case AccessPattern::Strided:
      cost += getInterleave(access, lane) ? 2 : strided;
      return true;
    case AccessPattern::Irregular:
      return false;
    }
    return false;
  };
  bool reduced = group.reduced[lane];
  const bool interleaves =
      !findLaneRun(group, lane) && findInterleavedStores(group, lane) >= 0;
  for (RowStage &stage : group.stages) {
    BodyOnLanes body(group, stage, lane);
    if (!body.fits())
      return std::nullopt;
    constexpr double kGather = 6;
    cost += body.loads + kGather * body.gathers.size();
    for (RowAccess &arg : stage.args)
      if (!add(arg, kGather))
        return std::nullopt;
    for (RowAccess &store : stage.stores)
      if (!add(store, interleaves ? 2 : 12))
        return std::nullopt;
    SmallVector<vector::CombiningKind> kinds;
    if (reduced && ((stage.isReduction && !matchReduction(stage, kinds)) ||
                    mayTrapOnPadding(*stage.body)))
      return std::nullopt;
  }
  if (size >= 0)
    cost *= static_cast<double>(llvm::alignTo(size, lanes)) / size;
  return cost + (reduced ? 0.5 : 0);
}
/// Widest square tile that is transposed in registers.
static constexpr int64_t kTile = 16;

/// Whether squares of `lanes` x `lanes` fit into the two dimensions, as far as
/// one knows.
static bool fitSquares(ReductionGroup &group, int64_t transposed, int64_t lane,
                       int64_t lanes) {
  return llvm::all_of(ArrayRef<int64_t>({transposed, lane}), [&](int64_t d) {
    int64_t size = group.getStaticSize(d);
    return size < 0 || size >= lanes;
  });
}

/// The one dimension along which all loads that stride along `lane` are
/// contiguous; -1 without one.
static int64_t findTransposed(ReductionGroup &group, int64_t lane) {
  if (group.reduced.any() || findLaneRun(group, lane))
    return -1;
  int64_t found = -1;
  for (RowStage &stage : group.stages) {
    for (RowAccess &store : stage.stores)
      if (store.kind == RowAccess::Memory &&
          getAccessPattern(store, lane) != AccessPattern::Contiguous)
        return -1;
    for (RowAccess &arg : stage.args) {
      if (arg.kind != RowAccess::Memory ||
          getAccessPattern(arg, lane) != AccessPattern::Strided ||
          getInterleave(arg, lane))
        continue;
      auto last = dyn_cast<AffineDimExpr>(arg.map.getResults().back());
      if (!last ||
          getAccessPattern(arg, last.getPosition()) !=
              AccessPattern::Contiguous ||
          (found >= 0 && found != last.getPosition()))
        return -1;
      found = last.getPosition();
    }
  }
  return found;
}

/// The dimension along which what strides along `lane` is interleaved; -1
/// without one.
static int64_t findInterleaved(ReductionGroup &group, int64_t lane) {
  if (findLaneRun(group, lane))
    return -1;
  const int64_t stores = findInterleavedStores(group, lane);
  return stores >= 0 ? stores : findInterleavedLoads(group, lane);
}

static int64_t chooseLane(ReductionGroup &group, unsigned vectorBits) {
  int64_t chosen = -1;
  double best = 0;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    auto cost = rateLane(group, d, vectorBits / 32);
    if (cost && (chosen < 0 || *cost < best)) {
      chosen = d;
      best = *cost;
    }
  }
  return chosen;
}

/// The positions along `lane` that go by vectors, or -1 when that is dynamic.
static int64_t getVectorizedSize(ReductionGroup &group, int64_t lane) {
  std::optional<LaneRun> run = findLaneRun(group, lane);
  return run ? getConstantIntValue(run->size).value_or(-1)
             : group.getStaticSize(lane);
}

static int64_t chooseLanes(ReductionGroup &group, int64_t lane,
                           unsigned vectorBits) {
  unsigned widest = 8;
  for (RowStage &stage : group.stages) {
    BodyOnLanes body(group, stage, lane);
    (void)body.fits();
    widest = std::max(widest, body.widest);
  }
  // Types of custom operators may have any width.
  int64_t lanes = std::clamp<int64_t>(llvm::bit_floor(vectorBits / widest),
                                      kMinLanes, kMaxLanes);
  int64_t size = getVectorizedSize(group, lane);
  if (findLaneRun(group, lane))
    return std::min<int64_t>(lanes, size < 0 ? kLanesOfOpen
                                             : llvm::bit_floor<uint64_t>(size));
  return size > 0 ? std::min<int64_t>(lanes, llvm::PowerOf2Ceil(size)) : lanes;
}

/// A body that computes a function of math takes so many cycles at least.
static constexpr int64_t kCyclesOfFunction = 16;

/// The cycles of the longest body in the loops over a row, or in all loops
/// where nothing is reduced.
static int64_t getLongestBody(ReductionGroup &group) {
  int64_t longest = 0;
  for (RowStage &stage : group.stages)
    if (group.reduced.none() || isInnerStage(group, stage))
      longest = std::max(longest, estimateBody(*stage.body));
  return longest;
}

/// Whether the elements between those of the lanes are loaded, too (windows of
/// stride 2): two vectors of these are as many loads as four of others.
static bool readsInterleaved(ReductionGroup &group, int64_t lane) {
  return llvm::any_of(group.stages, [&](RowStage &stage) {
    return llvm::any_of(stage.args, [&](RowAccess &arg) {
      return arg.kind == RowAccess::Memory && getInterleave(arg, lane) != 0;
    });
  });
}

static int64_t chooseUnroll(ReductionGroup &group, int64_t lane, int64_t lanes,
                            unsigned vectorBits) {
  bool reduces = group.reduced.any();
  int64_t cycles = 0;
  for (RowStage &stage : group.stages)
    cycles += estimateBody(*stage.body);
  // Where there are 16 registers, not 32, the constants of a function leave no
  // room for copies.
  bool hasRoom = vectorBits >= 512 || getLongestBody(group) < kCyclesOfFunction;
  int64_t unroll;
  if (reduces) // four accumulators hide the latency of an addition
    unroll = hasRoom && !readsInterleaved(group, lane) ? 4 : 2;
  else
    unroll = cycles <= 4 ? 4 : cycles <= 16 && hasRoom ? 2 : 1;
  int64_t size = getVectorizedSize(group, lane);
  while (unroll > 1 && size > 0 && size < unroll * lanes)
    unroll /= 2;
  return unroll;
}

/// The part of the lane dimension that is one task, or 0 for all of it; `step`
/// are the positions that its loop computes at a time.
static int64_t chooseChunk(ReductionGroup &group, int64_t lane, int64_t step) {
  // Iterations of a long flat loop that form one task, and how many tasks are
  // enough.
  constexpr int64_t kChunk = 4096, kEnoughTasks = 64;
  if (group.reduced[lane])
    return 0;
  int64_t tasks = 1;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    int64_t size = group.getStaticSize(d);
    // Other dynamic dimensions are the batch, which is often 1.
    if (!group.reduced[d] && d != lane)
      tasks *= size < 0 ? 1 : size;
  }
  if (tasks >= kEnoughTasks)
    return 0;
  int64_t size = group.getStaticSize(lane);
  int64_t chunk = group.reduced.any() ? step : llvm::alignTo(kChunk, step);
  return size >= 0 && size <= chunk ? 0 : chunk;
}

/// Whether fetching the next row pays: rows are too short for the processor to
/// see where they go on, few enough of them fit beside each other into the L1
/// cache, and all of them don't.
static bool choosePrefetch(const RowsFacts &facts, int64_t lane) {
  constexpr int64_t kRows = 4;
  const std::optional<NextRow> next = findNextRow(facts.group, lane);
  if (!next || next->bytes > facts.l1Bytes / kRows)
    return false;
  if (next->bytes < 0)
    return true;
  int64_t bytes = next->bytes;
  for (unsigned d = 0; d < facts.group.getNumDims(); ++d)
    if (!facts.group.reduced[d]) {
      const int64_t size = facts.group.getStaticSize(d);
      if (size < 0)
        return true;
      bytes *= size;
    }
  return bytes > facts.l1Bytes;
}

/// Rows side by side, each of `lanes` x `unroll` positions at a time: what the
/// lanes of one add up to takes as long as tens of its vectors, in which the
/// processor has little else to do where rows are short. It pays where other
/// loops over the row wait for that with functions to compute, and where there
/// are none.
static void chooseRows(const RowsFacts &facts, int64_t lane, int64_t lanes,
                       int64_t &rows, int64_t &unroll) {
  ReductionGroup &group = facts.group;
  rows = 1;
  if (!findNextRow(group, lane))
    return;
  int64_t vectors = 1, tasks = 1;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    int64_t size = group.getStaticSize(d);
    int64_t &count = group.reduced[d] ? vectors : tasks;
    if (size >= 0 && d == lane)
      size = llvm::divideCeil(size, lanes);
    count = size < 0 || count < 0 ? -1 : count * size;
  }
  const int64_t sideBySide = facts.vectorBits >= 512 ? 4 : 2;
  const bool isOnePass = llvm::all_of(group.stages, [&](RowStage &stage) {
    return stage.isReduction || !isInnerStage(group, stage);
  });
  if (vectors > kVectorsOfShortRow ||
      (tasks >= 0 && tasks < sideBySide * kEnoughRowTasks) ||
      (!isOnePass && getLongestBody(group) < kCyclesOfFunction))
    return;
  rows = sideBySide;
  // An open row may be a long one, which goes alone.
  if (vectors > 0 || !isOnePass)
    unroll = std::min<int64_t>(unroll, 2);
}

RowsPlanAttr cpu::getScalarRowsPlan(MLIRContext *context) {
  return RowsPlanAttr::get(context, 1, 1, -1, -1, 0, false, 1);
}

RowsPlanAttr cpu::selectPlan(const RowsFacts &facts) {
  ReductionGroup &group = facts.group;
  MLIRContext *context = facts.context;
  const unsigned vectorBits = facts.vectorBits;
  const int64_t lane = chooseLane(group, vectorBits);
  if (lane < 0)
    return getScalarRowsPlan(context);
  int64_t lanes = chooseLanes(group, lane, vectorBits);
  int64_t transposed = findTransposed(group, lane);
  if (transposed >= 0) {
    int64_t square = std::min(lanes, kTile);
    if (fitSquares(group, transposed, lane, square))
      return RowsPlanAttr::get(context, square, 1, lane, transposed, 0, false,
                               1);
  }
  transposed = findInterleaved(group, lane);
  // What is no whole vector of an interleaved row goes one by one.
  if (transposed >= 0) {
    const int64_t size = group.getStaticSize(lane);
    if (size < 0 || size > 1)
      lanes = std::min<int64_t>(
          lanes, size < 0 ? kLanesOfOpen : llvm::bit_floor<uint64_t>(size));
  }
  int64_t unroll =
      transposed >= 0 ? 1 : chooseUnroll(group, lane, lanes, vectorBits);
  int64_t rows;
  chooseRows(facts, lane, lanes, rows, unroll);
  return RowsPlanAttr::get(context, lanes, unroll, lane, transposed,
                           chooseChunk(group, lane, lanes * unroll),
                           choosePrefetch(facts, lane), rows);
}

/// What is wrong with 'transposed'.
static std::string whyNotTransposed(ReductionGroup &group, RowsPlanAttr plan) {
  if (plan.getTransposed() != findTransposed(group, plan.getLane()))
    return "no loads are contiguous along its dimension " +
           std::to_string(plan.getTransposed());
  if (plan.getLanes() > kTile ||
      !fitSquares(group, plan.getTransposed(), plan.getLane(), plan.getLanes()))
    return "its dimensions have no squares of 'lanes', or these are more than "
           "16";
  if (plan.getUnroll() != 1 || plan.getChunk() != 0)
    return "loads that are transposed go with an 'unroll' of 1 and no 'chunk'";
  return "";
}

/// What is wrong with 'chunk'.
static std::string whyNotChunk(ReductionGroup &group, RowsPlanAttr plan) {
  if (group.reduced[plan.getLane()])
    return "a row is no task in chunks";
  int64_t size = group.getStaticSize(plan.getLane());
  int64_t step = plan.getLanes() * plan.getUnroll();
  if (plan.getChunk() < 0 || plan.getChunk() % step != 0 ||
      plan.getChunk() > kMaxChunk || (size >= 0 && plan.getChunk() >= size))
    return "'chunk' must be a multiple of " + std::to_string(step) +
           " and less than " +
           std::to_string(size >= 0 ? std::min(size, kMaxChunk + 1)
                                    : kMaxChunk + 1);
  return "";
}

std::string cpu::whyNot(const RowsFacts &facts, RowsPlanAttr plan) {
  ReductionGroup &group = facts.group;
  const int64_t lane = plan.getLane(), dims = group.getNumDims();
  if (lane == -1)
    return plan == getScalarRowsPlan(plan.getContext())
               ? ""
               : "without 'lane' there are 'lanes' and 'unroll' of 1 only";
  if (lane < 0 || lane >= dims)
    return "it has " + std::to_string(dims) + " dimensions, from 0 on";
  if (!rateLane(group, lane, 1))
    return "it has no vectors along dimension " + std::to_string(lane);
  auto isPowerWithin = [](int64_t number, int64_t least, int64_t most) {
    return llvm::isPowerOf2_64(number) && number >= least && number <= most;
  };
  const int64_t size = group.getStaticSize(lane);
  const int64_t mostLanes =
      size >= 0 ? std::min<int64_t>(kMaxLanes, llvm::PowerOf2Ceil(size))
                : kMaxLanes;
  if (!isPowerWithin(plan.getLanes(), kMinLanes, mostLanes))
    return "'lanes' must be a power of two from " + std::to_string(kMinLanes) +
           " to " + std::to_string(mostLanes);
  const int64_t mostUnroll =
      size >= 0 ? std::clamp<int64_t>(
                      llvm::bit_floor<uint64_t>(size / plan.getLanes()), 1,
                      kMaxUnroll)
                : kMaxUnroll;
  if (!isPowerWithin(plan.getUnroll(), 1, mostUnroll))
    return "'unroll' must be a power of two from 1 to " +
           std::to_string(mostUnroll);
  if (plan.getPrefetch() && !findNextRow(group, lane))
    return "no next row lies along its dimension " + std::to_string(lane);
  if (plan.getRows() != 1) {
    const std::optional<NextRow> next = findNextRow(group, lane);
    if (!next)
      return "no next row lies along its dimension " + std::to_string(lane);
    const int64_t size = group.getStaticSize(next->rows);
    const int64_t most =
        size >= 0
            ? std::clamp<int64_t>(llvm::bit_floor<uint64_t>(size), 1, kMaxRows)
            : kMaxRows;
    if (!isPowerWithin(plan.getRows(), 1, most))
      return "'rows' must be a power of two from 1 to " + std::to_string(most);
  }
  if (plan.getTransposed() != -1 && !findLaneRun(group, lane) &&
      (plan.getTransposed() == findInterleavedStores(group, lane) ||
       plan.getTransposed() == findInterleavedLoads(group, lane))) {
    if (plan.getUnroll() != 1)
      return "what is interleaved goes with an 'unroll' of 1";
  } else if (plan.getTransposed() != -1)
    return whyNotTransposed(group, plan);
  return plan.getChunk() != 0 ? whyNotChunk(group, plan) : "";
}

void cpu::remarkFallback(func::FuncOp func, StringRef reason) {
  remark::missed(func.getLoc(), remark::RemarkOpts::name("plain-loops")
                                    .category("plans")
                                    .function(func.getName()))
      << remark::reason("{0}", reason.str());
}
