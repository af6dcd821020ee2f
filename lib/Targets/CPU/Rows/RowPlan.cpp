//===- RowPlan.cpp - How the loops of a group are laid out ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowPlan.h"
#include "Kernel/Vectorize.h"
#include "Rows/AccessPattern.h"
#include "Rows/BodyOnLanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sardonyx::cpu {

/// Work that is done again rather than kept in memory for the next pass.
static constexpr int64_t kCheapCycles = 6;

bool isInnerStage(const ReductionGroup &group, const RowStage &stage) {
  return stage.isReduction || stage.domain.anyCommon(group.reduced);
}

int64_t estimateBody(Block &body) {
  int64_t cycles = 0;
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (isa<math::MathDialect>(op.getDialect()) &&
        !isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::FloorOp,
             math::CeilOp, math::RoundEvenOp, math::CopySignOp>(op))
      cycles += 16;
    else if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
                 arith::RemUIOp, arith::RemFOp>(op))
      cycles += 6;
    else
      cycles += 1;
  }
  return cycles;
}

static std::optional<vector::CombiningKind> getKind(Operation *op) {
  using vector::CombiningKind;
  return llvm::TypeSwitch<Operation *, std::optional<CombiningKind>>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return CombiningKind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return CombiningKind::MUL; })
      .Case([](arith::MaximumFOp) { return CombiningKind::MAXIMUMF; })
      .Case([](arith::MinimumFOp) { return CombiningKind::MINIMUMF; })
      .Case([](arith::MaxNumFOp) { return CombiningKind::MAXNUMF; })
      .Case([](arith::MinNumFOp) { return CombiningKind::MINNUMF; })
      .Case([](arith::MaxSIOp) { return CombiningKind::MAXSI; })
      .Case([](arith::MinSIOp) { return CombiningKind::MINSI; })
      .Case([](arith::MaxUIOp) { return CombiningKind::MAXUI; })
      .Case([](arith::MinUIOp) { return CombiningKind::MINUI; })
      .Case([](arith::AndIOp) { return CombiningKind::AND; })
      .Case([](arith::OrIOp) { return CombiningKind::OR; })
      .Case([](arith::XOrIOp) { return CombiningKind::XOR; })
      .Default([](Operation *) { return std::nullopt; });
}

bool matchReduction(RowStage &stage,
                    SmallVectorImpl<vector::CombiningKind> &kinds) {
  Operation *yield = stage.body->getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    BlockArgument acc = stage.body->getArgument(stage.numInputs + i);
    Operation *combiner = value.getDefiningOp();
    if (!combiner || combiner->getBlock() != stage.body || !acc.hasOneUse() ||
        *acc.getUsers().begin() != combiner || !value.hasOneUse())
      return false;
    auto kind = getKind(combiner);
    if (!kind)
      return false;
    kinds.push_back(*kind);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Passes over the row
//===----------------------------------------------------------------------===//

static void computeLevels(ReductionGroup &group, RowPlan &plan) {
  for (RowStage &stage : group.stages) {
    bool inner = isInnerStage(group, stage);
    int level = inner ? 0 : -1;
    for (RowAccess &arg : stage.args) {
      if (arg.kind != RowAccess::Stage)
        continue;
      int from = plan.level[arg.stage];
      bool isWhole =
          group.stages[arg.stage].isReduction || !plan.inner[arg.stage];
      level = std::max(level, isWhole && inner ? from + 1 : from);
    }
    plan.level.push_back(level);
    plan.inner.push_back(inner);
    plan.maxLevel = std::max(plan.maxLevel, level);
  }
}

/// Decides where the results of elementwise stages are for passes after theirs.
class KeepPlanner {
public:
  KeepPlanner(ReductionGroup &group, RowPlan &plan) : group(group), plan(plan) {
    plan.kept.resize(group.stages.size());
    plan.keptIn.resize(group.stages.size());
    computeLastReads();
  }

  void run() {
    for (unsigned s = 0; s < group.stages.size(); ++s)
      if (plan.inner[s])
        for (RowAccess &arg : group.stages[s].args)
          if (isRow(arg) && plan.level[arg.stage] < plan.level[s])
            require(arg.stage);
  }

private:
  bool isRow(RowAccess &arg) {
    return arg.kind == RowAccess::Stage && plan.inner[arg.stage] &&
           !group.stages[arg.stage].isReduction;
  }

  void require(unsigned s) {
    if (plan.kept[s])
      return;
    RowStage &stage = group.stages[s];
    if (estimateBody(*stage.body) <= kCheapCycles) {
      for (RowAccess &arg : stage.args)
        if (isRow(arg))
          require(arg.stage);
      return;
    }
    plan.kept[s] = true;
    for (unsigned r = 0; r < stage.stores.size(); ++r)
      plan.keptIn[s].push_back(stage.stores[r].kind == RowAccess::Memory
                                   ? stage.stores[r]
                                   : findRoom(s, stage.resultTypes[r]));
  }

  /// A stage and the pass that it runs in, in the order of running.
  using Moment = std::pair<int, unsigned>;

  /// When what each stage gives may be read last, be it to compute cheap stages
  /// once more.
  void computeLastReads() {
    for (unsigned s = 0; s < group.stages.size(); ++s)
      lastReads.push_back({plan.level[s], s});
    for (unsigned reader = group.stages.size(); reader-- > 0;) {
      Moment last = group.stages[reader].isReduction
                        ? Moment(plan.level[reader], reader)
                        : lastReads[reader];
      for (RowAccess &arg : group.stages[reader].args)
        if (arg.kind == RowAccess::Stage)
          lastReads[arg.stage] = std::max(lastReads[arg.stage], last);
    }
  }

  /// The memory of a result that is written anyway when stage `s` is read last,
  /// or later, serves as scratch until then.
  RowAccess findRoom(unsigned s, Type type) {
    RowStage &stage = group.stages[s];
    Moment lastRead = lastReads[s];
    for (unsigned y = s + 1; y < group.stages.size(); ++y) {
      RowStage &later = group.stages[y];
      if (!plan.inner[y] || later.isReduction ||
          plan.level[y] <= plan.level[s] ||
          Moment(plan.level[y], y) < lastRead || !later.domain.all() ||
          !stage.domain.all())
        continue;
      for (RowAccess &store : later.stores)
        if (store.kind == RowAccess::Memory && !taken.contains(store.value) &&
            cast<MemRefType>(store.value.getType()).getElementType() == type) {
          taken.insert(store.value);
          return store;
        }
    }
    return RowAccess();
  }

  ReductionGroup &group;
  RowPlan &plan;
  SmallVector<Moment> lastReads;
  llvm::SmallPtrSet<Value, 4> taken;
};

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Whether vectors along the lanes may overlap: nothing is kept by position,
/// and all that is read has other elements between (windows of stride 2), so no
/// store changes what the next vector reads. Masks would cost more there, two
/// for each vector: under them a Zen 5 fetches nothing ahead.
static bool mayOverlap(ReductionGroup &group, const RowPlan &plan) {
  bool interleaves = false;
  if (plan.run || !plan.choices.empty() || !plan.gathers.empty() ||
      llvm::is_contained(plan.kept, true))
    return false;
  for (RowStage &stage : group.stages) {
    if (!stage.extracts.empty())
      return false;
    for (RowAccess &arg : stage.args) {
      if (arg.kind != RowAccess::Memory || !arg.map.isFunctionOfDim(plan.lane))
        continue;
      if (!getInterleave(arg, plan.lane))
        return false;
      interleaves = true;
    }
    for (RowAccess &store : stage.stores)
      if (store.kind == RowAccess::Memory &&
          getAccessPattern(store, plan.lane) != AccessPattern::Contiguous)
        return false;
  }
  return interleaves;
}

/// What follows from the dimension along the lanes.
static void layOutLanes(ReductionGroup &group, RowPlan &plan) {
  plan.laneReduced = group.reduced[plan.lane];
  plan.run = findLaneRun(group, plan.lane);
  // A gather or scatter under a mask is a branch for each lane on many
  // processors: the tail is scalar then.
  auto isScattered = [&](RowAccess &access, bool isStore) {
    return access.kind == RowAccess::Memory &&
           getAccessPattern(access, plan.lane) == AccessPattern::Strided &&
           (isStore || !getInterleave(access, plan.lane));
  };
  for (RowStage &stage : group.stages) {
    BodyOnLanes body(group, stage, plan.lane);
    (void)body.fits();
    for (auto [read, choice] : body.choices)
      plan.choices[read] = choice;
    plan.maskedTail &= !mayTrapOnPadding(*stage.body);
    if (plan.laneReduced)
      continue;
    plan.maskedTail &= body.gathers.empty();
    plan.gathers.insert(body.gathers.begin(), body.gathers.end());
    plan.isInRun.insert(body.isInRun.begin(), body.isInRun.end());
    plan.readsOfRun.insert(body.readsOfRun.begin(), body.readsOfRun.end());
    for (RowAccess &arg : stage.args)
      plan.maskedTail &= !isScattered(arg, false);
    for (RowAccess &store : stage.stores)
      plan.maskedTail &= !isScattered(store, true);
  }
  if (!plan.laneReduced) {
    plan.overlapsTail = mayOverlap(group, plan);
    return;
  }
  plan.kinds.resize(group.stages.size());
  for (auto [stage, kinds] : llvm::zip(group.stages, plan.kinds))
    if (stage.isReduction)
      (void)matchReduction(stage, kinds);
  plan.isExact = llvm::all_of(group.stages, [](RowStage &stage) {
    if (!stage.isReduction)
      return true;
    return llvm::none_of(stage.body->getTerminator()->getOperands(),
                         [](Value v) {
                           return isa_and_nonnull<arith::AddFOp, arith::MulFOp>(
                               v.getDefiningOp());
                         });
  });
}

/// The parallel dimensions, of a few positions together, that nothing the group
/// reads or computes depends on. More would be too many rows to write at once.
static SmallVector<unsigned, 2> findRepeated(ReductionGroup &group,
                                             const RowPlan &plan) {
  constexpr int64_t kMostPositions = 4;
  SmallVector<unsigned, 2> found;
  if (plan.lane < 0 || group.reduced.any())
    return found;
  auto isRead = [&](unsigned d) {
    return llvm::any_of(group.stages, [&](RowStage &stage) {
      return llvm::any_of(stage.args,
                          [&](RowAccess &arg) {
                            return arg.kind == RowAccess::Memory &&
                                   arg.map.isFunctionOfDim(d);
                          }) ||
             stage.body
                 ->walk([&](linalg::IndexOp op) {
                   return stage.dims[op.getDim()] == d ? WalkResult::interrupt()
                                                       : WalkResult::advance();
                 })
                 .wasInterrupted();
    });
  };
  int64_t positions = 1;
  for (unsigned d = group.getNumDims(); d-- > 0;) {
    const int64_t size = group.getStaticSize(d);
    if (d == plan.lane || d == plan.transposed || size < 2 ||
        positions * size > kMostPositions || isRead(d))
      continue;
    positions *= size;
    found.push_back(d);
  }
  return found;
}

RowPlan makeRowPlan(ReductionGroup &group, RowsPlanAttr choice) {
  RowPlan plan;
  plan.lane = choice.getLane();
  plan.lanes = choice.getLanes();
  plan.unroll = choice.getUnroll();
  plan.transposed = choice.getTransposed();
  plan.interleaves = plan.transposed >= 0 &&
                     plan.transposed == findInterleavedStores(group, plan.lane);
  plan.deinterleaves =
      plan.transposed >= 0 &&
      plan.transposed == findInterleavedLoads(group, plan.lane);
  plan.chunk = choice.getChunk();
  plan.prefetch = choice.getPrefetch();
  plan.rows = choice.getRows();
  plan.repeated = findRepeated(group, plan);
  computeLevels(group, plan);
  KeepPlanner(group, plan).run();
  if (plan.lane >= 0)
    layOutLanes(group, plan);
  return plan;
}

} // namespace sardonyx::cpu
