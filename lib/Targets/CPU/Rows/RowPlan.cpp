//===- RowPlan.cpp - How the loops of a group are laid out ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/RowPlan.h"
#include "Kernel/Vectorize.h"
#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace sardonyx::cpu {

/// Work that is done again rather than kept in memory for the next pass.
static constexpr int64_t kCheapCycles = 6;

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

bool getLaneCoefficients(const RowAccess &access, int64_t lane,
                         SmallVectorImpl<int64_t> &coefficients) {
  MLIRContext *context = access.map.getContext();
  unsigned numDims = access.map.getNumDims();
  AffineExpr dim = getAffineDimExpr(lane, context);
  for (AffineExpr expr : access.map.getResults()) {
    AffineExpr step =
        simplifyAffineExpr(expr.replace(dim, dim + 1) - expr, numDims, 0);
    auto constant = dyn_cast<AffineConstantExpr>(step);
    if (!constant)
      return false;
    coefficients.push_back(constant.getValue());
  }
  return true;
}

AccessPattern getAccessPattern(const RowAccess &access, int64_t lane) {
  if (access.kind != RowAccess::Memory)
    return AccessPattern::Uniform;
  if (!access.map.isFunctionOfDim(lane))
    return AccessPattern::Uniform;
  SmallVector<int64_t> coefficients;
  if (!getLaneCoefficients(access, lane, coefficients))
    return AccessPattern::Irregular;
  auto type = cast<MemRefType>(access.value.getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return AccessPattern::Irregular;
  bool last = true;
  for (auto [c, stride] :
       llvm::zip(ArrayRef(coefficients).drop_back(), strides))
    if (c != 0) {
      last = false;
      if (ShapedType::isDynamic(stride) && !type.getLayout().isIdentity())
        return AccessPattern::Irregular;
    }
  if (last && coefficients.back() == 0)
    return AccessPattern::Uniform;
  return last && coefficients.back() == 1 ? AccessPattern::Contiguous
                                          : AccessPattern::Strided;
}

int64_t getInterleave(const RowAccess &access, int64_t lane) {
  SmallVector<int64_t> coefficients;
  if (getAccessPattern(access, lane) != AccessPattern::Strided ||
      !getLaneCoefficients(access, lane, coefficients))
    return 0;
  for (int64_t c : ArrayRef(coefficients).drop_back())
    if (c != 0)
      return 0;
  return coefficients.back() >= 2 && coefficients.back() <= 4
             ? coefficients.back()
             : 0;
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

/// Whether each result of the reduction is one combining operation on its
/// accumulator, which then may be split over lanes.
static bool matchReduction(RowStage &stage,
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
    bool inner = stage.isReduction || stage.domain.anyCommon(group.reduced);
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

/// How the values of a body depend on the position along the lanes.
class BodyOnLanes {
public:
  BodyOnLanes(ReductionGroup &group, RowStage &stage, int64_t lane)
      : group(group), stage(stage), lane(lane) {}

  /// Whether the body can be computed on vectors.
  bool fits();

  /// Bits of the widest value that differs between lanes.
  unsigned widest = 8;
  /// Vectors that the body loads by itself.
  unsigned loads = 0;
  SmallVector<std::pair<Value, bool>> conditions;

private:
  /// The same in all lanes; the position along the lanes; that or a fixed
  /// position, as a value from outside says; anything else.
  enum Kind { Uniform, Position, Either, Varying };

  Kind get(Value value) {
    auto it = kinds.find(value);
    return it == kinds.end() ? Uniform : it->second;
  }
  Kind getArgument(RowAccess &access);
  std::optional<Kind> getResult(Operation &op);
  std::optional<Kind> getExtract(tensor::ExtractOp op);

  ReductionGroup &group;
  RowStage &stage;
  int64_t lane;
  llvm::DenseMap<Value, Kind> kinds;
};

BodyOnLanes::Kind BodyOnLanes::getArgument(RowAccess &access) {
  if (access.kind == RowAccess::Memory)
    return getAccessPattern(access, lane) == AccessPattern::Uniform ? Uniform
                                                                    : Varying;
  if (access.kind != RowAccess::Stage)
    return Uniform;
  RowStage &from = group.stages[access.stage];
  bool isTotal = from.isReduction && group.reduced[lane];
  return from.domain[lane] && !isTotal ? Varying : Uniform;
}

std::optional<BodyOnLanes::Kind> BodyOnLanes::getExtract(tensor::ExtractOp op) {
  auto indices = op.getIndices();
  if (indices.empty())
    return Uniform;
  for (Value index : indices.drop_back())
    if (get(index) != Uniform)
      return std::nullopt;
  Kind last = get(indices.back());
  if (last == Uniform)
    return Uniform;
  if (last == Varying)
    return std::nullopt;
  if (last == Either) {
    auto select = indices.back().getDefiningOp<arith::SelectOp>();
    conditions.push_back(
        {select.getCondition(), get(select.getTrueValue()) == Position});
  }
  ++loads;
  return Varying;
}

std::optional<BodyOnLanes::Kind> BodyOnLanes::getResult(Operation &op) {
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return stage.dims[index.getDim()] == lane ? Position : Uniform;
  if (op.hasTrait<OpTrait::ConstantLike>())
    return Uniform;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return getExtract(extract);
  if (auto check = dyn_cast<sdx::CheckOp>(op)) {
    if (llvm::any_of(check->getOperands(),
                     [&](Value v) { return get(v) != Uniform; }))
      return std::nullopt;
    return Uniform;
  }
  if (op.getNumRegions() != 0 || !OpTrait::hasElementwiseMappableTraits(&op))
    return std::nullopt;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Kind yes = get(select.getTrueValue()), no = get(select.getFalseValue());
    bool isOutside = select.getCondition().getParentBlock() != stage.body;
    if (isOutside && ((yes == Position && no == Uniform) ||
                      (yes == Uniform && no == Position)))
      return Either;
  }
  bool uniform = llvm::all_of(op.getOperands(),
                              [&](Value v) { return get(v) == Uniform; });
  return uniform ? Uniform : Varying;
}

bool BodyOnLanes::fits() {
  auto note = [&](Value value) {
    Type type = value.getType();
    if (!type.isIntOrIndexOrFloat())
      return false;
    if (get(value) == Varying)
      widest =
          std::max(widest, type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
    return true;
  };
  for (auto [arg, access] : llvm::zip(stage.body->getArguments(), stage.args)) {
    kinds[arg] = getArgument(access);
    if (!note(arg))
      return false;
  }
  for (Operation &op : stage.body->without_terminator()) {
    std::optional<Kind> kind = getResult(op);
    if (!kind)
      return false;
    for (Value result : op.getResults()) {
      kinds[result] = *kind;
      if (!note(result))
        return false;
    }
  }
  for (Type type : stage.resultTypes)
    widest =
        std::max(widest, type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
  return true;
}

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
  for (RowStage &stage : group.stages) {
    BodyOnLanes body(group, stage, lane);
    if (!body.fits())
      return std::nullopt;
    cost += body.loads;
    for (RowAccess &arg : stage.args)
      if (!add(arg, 6))
        return std::nullopt;
    for (RowAccess &store : stage.stores)
      if (!add(store, 12))
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

/// Looks for one dimension along which all strided loads are contiguous.
static void chooseTranspose(ReductionGroup &group, RowPlan &plan) {
  if (group.reduced.any())
    return;
  int64_t found = -1;
  for (RowStage &stage : group.stages) {
    for (RowAccess &store : stage.stores)
      if (store.kind == RowAccess::Memory &&
          getAccessPattern(store, plan.lane) != AccessPattern::Contiguous)
        return;
    for (RowAccess &arg : stage.args) {
      if (arg.kind != RowAccess::Memory ||
          getAccessPattern(arg, plan.lane) != AccessPattern::Strided ||
          getInterleave(arg, plan.lane))
        continue;
      auto last = dyn_cast<AffineDimExpr>(arg.map.getResults().back());
      if (!last ||
          getAccessPattern(arg, last.getPosition()) !=
              AccessPattern::Contiguous ||
          (found >= 0 && found != last.getPosition()))
        return;
      found = last.getPosition();
    }
  }
  if (found < 0)
    return;
  int64_t lanes = std::min(plan.lanes, kTile);
  for (int64_t d : {found, plan.lane})
    if (int64_t size = group.getStaticSize(d); size >= 0 && size < lanes)
      return;
  plan.transposed = found;
  plan.lanes = lanes;
  plan.unroll = 1;
}

static void chooseLane(ReductionGroup &group, RowPlan &plan,
                       unsigned vectorBits) {
  if (vectorBits == 0)
    return;
  int64_t lanes = vectorBits / 32;
  double best = 0;
  for (unsigned d = 0; d < group.getNumDims(); ++d) {
    auto cost = rateLane(group, d, lanes);
    if (cost && (plan.lane < 0 || *cost < best)) {
      plan.lane = d;
      best = *cost;
    }
  }
  if (plan.lane < 0)
    return;
  unsigned widest = 8;
  for (RowStage &stage : group.stages) {
    BodyOnLanes body(group, stage, plan.lane);
    (void)body.fits();
    widest = std::max(widest, body.widest);
    llvm::append_range(plan.conditions, body.conditions);
    plan.maskedTail &= !mayTrapOnPadding(*stage.body);
  }
  lanes = std::clamp<int64_t>(vectorBits / widest, 2, 64);
  plan.laneReduced = group.reduced[plan.lane];
  int64_t size = group.getStaticSize(plan.lane);
  if (size > 0)
    lanes = std::min<int64_t>(lanes, llvm::PowerOf2Ceil(size));
  plan.lanes = lanes;

  int64_t cycles = 0, longest = 0;
  for (auto [s, stage] : llvm::enumerate(group.stages)) {
    int64_t body = estimateBody(*stage.body);
    cycles += body;
    if (plan.inner[s] || group.reduced.none())
      longest = std::max(longest, body);
  }
  bool reduces = group.reduced.any();
  // Where there are 16 registers, not 32, the constants of a function leave no
  // room for copies.
  bool hasRoom = vectorBits >= 512 || longest < 16;
  if (reduces) // four accumulators hide the latency of an addition
    plan.unroll = hasRoom ? 4 : 2;
  else
    plan.unroll = cycles <= 4 ? 4 : cycles <= 16 && hasRoom ? 2 : 1;
  while (plan.unroll > 1 && size > 0 && size < plan.unroll * lanes)
    plan.unroll /= 2;
  // A gather or scatter under a mask is a branch for each lane on many
  // processors: the tail is scalar then.
  auto isScattered = [&](RowAccess &access, bool isStore) {
    return access.kind == RowAccess::Memory &&
           getAccessPattern(access, plan.lane) == AccessPattern::Strided &&
           (isStore || !getInterleave(access, plan.lane));
  };
  if (!plan.laneReduced)
    for (RowStage &stage : group.stages) {
      for (RowAccess &arg : stage.args)
        plan.maskedTail &= !isScattered(arg, false);
      for (RowAccess &store : stage.stores)
        plan.maskedTail &= !isScattered(store, true);
    }
  if (!plan.laneReduced) {
    chooseTranspose(group, plan);
    return;
  }
  plan.kinds.resize(group.stages.size());
  for (auto [stage, kinds] : llvm::zip(group.stages, plan.kinds))
    if (stage.isReduction)
      (void)matchReduction(stage, kinds);
}

RowPlan makeRowPlan(ReductionGroup &group, unsigned vectorBits) {
  RowPlan plan;
  computeLevels(group, plan);
  KeepPlanner(group, plan).run();
  chooseLane(group, plan, vectorBits);
  return plan;
}

} // namespace sardonyx::cpu
