//===- BodyOnLanes.cpp - What of a body differs between lanes ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/BodyOnLanes.h"
#include "Rows/AccessPattern.h"
#include "Rows/ByteTable.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

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

/// Whether a value is nothing but a place in tables of bytes, which no vector
/// has to hold as an index.
static bool isPlaceInTables(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    auto extract = dyn_cast<tensor::ExtractOp>(user);
    return extract && isByteTable(extract);
  });
}

/// A number that is known, or from outside of `body`; null for another.
static OpFoldResult getFixed(Block *body, Value value) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return Builder(value.getContext()).getIndexAttr(*known);
  return value.getParentBlock() != body ? OpFoldResult(value) : OpFoldResult();
}

/// Where the run begins from which `value` counts the positions along `lane`;
/// null if it doesn't.
static OpFoldResult getBegin(RowStage &stage, int64_t lane, Value value) {
  OpFoldResult begin = Builder(value.getContext()).getIndexAttr(0);
  if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
    begin = getFixed(stage.body, difference.getRhs());
    value = difference.getLhs();
  }
  auto index = value.getDefiningOp<linalg::IndexOp>();
  return index && index->getBlock() == stage.body &&
                 stage.dims[index.getDim()] == lane
             ? begin
             : OpFoldResult();
}

/// The run of positions along `lane` that `op` asks for.
static std::optional<LaneRun> getRun(RowStage &stage, int64_t lane,
                                     Operation *op) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  // As unsigned, what lies before the run is behind it, too.
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::ult)
    return std::nullopt;
  OpFoldResult begin = getBegin(stage, lane, compare.getLhs());
  if (!begin)
    return std::nullopt;
  OpFoldResult size = getFixed(stage.body, compare.getRhs());
  return size ? std::optional<LaneRun>({begin, size}) : std::nullopt;
}

std::optional<LaneRun> cpu::findLaneRun(ReductionGroup &group, int64_t lane) {
  std::optional<LaneRun> found;
  if (group.reduced.any())
    return std::nullopt;
  for (RowStage &stage : group.stages) {
    // Some positions are computed twice.
    for (const RowAccess &before :
         ArrayRef(stage.args).drop_front(stage.numInputs))
      if (before.kind != RowAccess::None)
        return std::nullopt;
    for (auto select : stage.body->getOps<arith::SelectOp>()) {
      Operation *condition = select.getCondition().getDefiningOp();
      if (!condition || !select.getType().isIndex())
        continue;
      std::optional<LaneRun> run = getRun(stage, lane, condition);
      if (!run || getConstantIntValue(run->size).value_or(2) < 2 ||
          getBegin(stage, lane, select.getTrueValue()) != run->low)
        continue;
      if (found && !(*found == *run))
        return std::nullopt;
      found = run;
    }
  }
  return found;
}

/// Whether nothing in the run reads `value`.
bool BodyOnLanes::isOutsideOfRun(Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::IndexCastOp>(user))
      return isOutsideOfRun(user->getResult(0));
    auto select = dyn_cast<arith::SelectOp>(user);
    return select && use.getOperandNumber() == 2 &&
           llvm::is_contained(isInRun, select.getCondition().getDefiningOp());
  });
}

Value cpu::getShortPlace(Value place) {
  auto cast = place.getDefiningOp<arith::IndexCastOp>();
  if (!cast || !getElementTypeOrSelf(cast.getIn()).isInteger(32))
    return {};
  const bool isPlace = llvm::all_of(place.getUses(), [](OpOperand &use) {
    auto extract = dyn_cast<tensor::ExtractOp>(use.getOwner());
    return extract && use.getOperandNumber() + 1 == extract->getNumOperands();
  });
  return isPlace ? cast.getIn() : Value();
}

std::optional<BodyOnLanes::Kind> BodyOnLanes::getExtract(tensor::ExtractOp op) {
  auto indices = op.getIndices();
  if (indices.empty())
    return Uniform;
  if (isByteTable(op))
    return get(indices.front()) == Uniform ? Uniform : Varying;
  for (Value index : indices.drop_back())
    if (get(index) != Uniform)
      return std::nullopt;
  Kind last = get(indices.back());
  if (last == Uniform)
    return Uniform;
  if (last == Shifted)
    readsOfRun.push_back(op);
  if (last == Varying) {
    // Where each is one of few terms of a sum a gather takes as long as loads.
    if (group.reduced.any())
      return std::nullopt;
    gathers.push_back(op);
    return Varying;
  }
  if (last == Either) {
    auto select = indices.back().getDefiningOp<arith::SelectOp>();
    const bool isPositionIf = get(select.getTrueValue()) == Position;
    choices[op] = {select.getCondition(),
                   isPositionIf ? select.getFalseValue()
                                : select.getTrueValue(),
                   isPositionIf};
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
  if (llvm::is_contained(isInRun, &op))
    return Uniform;
  if (run && isa<arith::SubIOp>(op) &&
      getBegin(stage, lane, op.getResult(0)) == run->low)
    return Shifted;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Value yes = select.getTrueValue(), no = select.getFalseValue();
    if (run &&
        llvm::is_contained(isInRun, select.getCondition().getDefiningOp()) &&
        getBegin(stage, lane, yes) == run->low)
      return Shifted;
    auto isOutside = [&](Value value) {
      return value.getParentBlock() != stage.body;
    };
    auto isFixed = [&](Value value) {
      return isOutside(value) || getConstantIntValue(value);
    };
    if (isOutside(select.getCondition()) &&
        ((get(yes) == Position && isFixed(no)) ||
         (isFixed(yes) && get(no) == Position)))
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
    if (get(value) == Varying && !isPlaceInTables(value) &&
        !getShortPlace(value) && !(run && isOutsideOfRun(value)))
      widest =
          std::max(widest, type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
    return true;
  };
  if (run)
    for (Operation &op : *stage.body)
      if (getRun(stage, lane, &op) == run)
        isInRun.push_back(&op);
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
