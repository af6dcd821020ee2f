//===- RowValues.cpp - What the stages of a group compute -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values of a group's stages at a point of its loops: what their bodies
// read, compute and store.
//
//===----------------------------------------------------------------------===//

#include "Kernel/Vectorize.h"
#include "Rows/ReductionCombiner.h"
#include "Rows/RowGroupEmitter.h"
#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

Copies RowGroupEmitter::getArg(unsigned stage, unsigned arg, const Point &point,
                               Scope &scope) {
  const RowAccess &access = group.stages[stage].args[arg];
  switch (access.kind) {
  case RowAccess::None:
    return {Value()};
  case RowAccess::Scalar:
    return {access.value};
  case RowAccess::Memory:
    if (const Copies *known = scope.findLoad(stage, arg))
      return *known;
    return load(access, point);
  case RowAccess::Stage:
    return evaluate(access.stage, point, scope)[access.result];
  }
  return {};
}

/// The elements of `memref` at `indices`, the last of which is a vector: a load
/// where they are neighbours.
static Value emitGather(OpBuilder &b, Location loc, VectorType type,
                        Value memref, SmallVector<Value> indices) {
  Value places = indices.back();
  if (auto cast = places.getDefiningOp<arith::IndexCastOp>())
    if (getElementTypeOrSelf(cast.getIn()).isInteger(32))
      places = cast.getIn();
  auto placeType = cast<VectorType>(places.getType());
  const int64_t lanes = type.getNumElements();
  Value first = vector::ExtractOp::create(b, loc, places, ArrayRef<int64_t>{0});
  SmallVector<Attribute> steps;
  for (int64_t lane = 0; lane < lanes; ++lane)
    steps.push_back(b.getIntegerAttr(placeType.getElementType(), lane));
  Value step = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(placeType, steps));
  Value neighbours = arith::AddIOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, placeType, first), step);
  Value isNeighbour = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                            places, neighbours);
  Value areNeighbours = vector::ReductionOp::create(
      b, loc, vector::CombiningKind::AND, isNeighbour);
  auto branch = scf::IfOp::create(
      b, loc, areNeighbours,
      [&](OpBuilder &then, Location at) {
        if (!first.getType().isIndex())
          first =
              arith::IndexCastOp::create(then, at, then.getIndexType(), first);
        indices.back() = first;
        scf::YieldOp::create(
            then, at,
            vector::LoadOp::create(then, at, type, memref, indices)
                .getResult());
      },
      [&](OpBuilder &otherwise, Location at) {
        indices.back() = arith::ConstantIndexOp::create(otherwise, at, 0);
        auto maskType = VectorType::get(lanes, otherwise.getI1Type());
        Value all = arith::ConstantOp::create(
            otherwise, at, DenseElementsAttr::get(maskType, true));
        Value none = arith::ConstantOp::create(otherwise, at,
                                               otherwise.getZeroAttr(type));
        scf::YieldOp::create(otherwise, at,
                             vector::GatherOp::create(otherwise, at, type,
                                                      memref, indices, places,
                                                      all, none)
                                 .getResult());
      });
  return branch.getResult(0);
}

/// What is read if `condition`, which is the same in all lanes, holds, and else
/// `other`. A choice of two vectors would become a load under a mask, which
/// some processors keep waiting for stores. Null where it is no read.
static Value emitReadIf(OpBuilder &b, Location loc, arith::SelectOp select,
                        Value condition, Value read, Value other) {
  Operation *load = read.getDefiningOp();
  if (isa<VectorType>(condition.getType()) ||
      !isa_and_nonnull<vector::LoadOp, memref::LoadOp>(load) ||
      !select.getTrueValue().getDefiningOp<tensor::ExtractOp>() ||
      !select.getTrueValue().hasOneUse() ||
      load->getBlock() != b.getInsertionBlock())
    return Value();
  auto branch = scf::IfOp::create(b, loc, read.getType(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  if (auto type = dyn_cast<VectorType>(read.getType()))
    other = broadcastTo(b, loc, other, type.getShape());
  scf::YieldOp::create(b, loc, other);
  b.setInsertionPointToStart(branch.thenBlock());
  load->moveBefore(scf::YieldOp::create(b, loc, read));
  return branch.getResult(0);
}

/// An element that a body reads at positions that it computes, a check, or
/// whether a position is in the run; null for another comparison.
Value RowGroupEmitter::emitSpecial(Operation *op, ArrayRef<Value> operands,
                                   RowStage &stage, const Point &point,
                                   unsigned copy) {
  if (auto check = dyn_cast<sardonyx::sdx::CheckOp>(op)) {
    sardonyx::sdx::CheckOp::create(b, loc, operands[0], check.getMessageAttr(),
                                   operands.drop_front(), check.getKindAttr());
    return Value();
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return plan.run ? emitReadIf(b, loc, select, operands[0], operands[1],
                                 operands[2])
                    : Value();
  if (isa<arith::CmpIOp>(op))
    return point.isInRun && plan.isInRun.contains(op)
               ? arith::ConstantOp::create(b, loc, b.getBoolAttr(true))
               : Value();
  Value memref = stage.extracts.lookup(op);
  SmallVector<Value> indices(operands.drop_front());
  if (indices.empty() || !isa<VectorType>(indices.back().getType()))
    return memref::LoadOp::create(b, loc, memref, indices);
  if (isByteTable(cast<tensor::ExtractOp>(op))) {
    auto place = indices.back().getDefiningOp<arith::IndexCastUIOp>();
    return tables.find(memref)->second.lookUp(b, loc, place.getIn());
  }
  auto type = VectorType::get(plan.lanes, op->getResult(0).getType());
  if (plan.gathers.contains(op))
    return emitGather(b, loc, type, memref, indices);
  auto emitLoad = [&]() -> Value {
    // The last index is the position along the lanes, or in the run.
    indices.back() = point.ivs[plan.lane];
    if (plan.readsOfRun.contains(op))
      indices.back() = arith::SubIOp::create(
          b, loc, indices.back(),
          getValueOrCreateConstantIndexOp(b, loc, plan.run->low));
    if (copy > 0 && !point.isTile)
      indices.back() = arith::AddIOp::create(b, loc, indices.back(),
                                             index(copy * plan.lanes));
    if (!point.mask)
      return vector::LoadOp::create(b, loc, type, memref, indices);
    return vector::MaskedLoadOp::create(
        b, loc, type, memref, indices, point.mask,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
  };
  auto choice = plan.choices.find(op);
  if (choice == plan.choices.end())
    return emitLoad();
  const LaneChoice &found = choice->second;
  auto branch = scf::IfOp::create(b, loc, type, found.condition,
                                  /*withElseRegion=*/true);
  for (bool isPosition : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isPosition == found.isPositionIf
                                   ? branch.thenBlock()
                                   : branch.elseBlock());
    Value read;
    if (isPosition) {
      read = emitLoad();
    } else {
      std::optional<int64_t> known = getConstantIntValue(found.fixed);
      indices.back() = known ? index(*known) : found.fixed;
      read =
          broadcastTo(b, loc, memref::LoadOp::create(b, loc, memref, indices),
                      {plan.lanes});
    }
    scf::YieldOp::create(b, loc, read);
  }
  return branch.getResult(0);
}

/// What makes `value` of a body, be it in an earlier stage or behind a
/// conversion; `stage` becomes the one that it is in.
static Operation *findDefinition(ReductionGroup &group, unsigned &stage,
                                 Value value) {
  while (true) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      RowStage &reader = group.stages[stage];
      if (arg.getOwner() != reader.body)
        return nullptr;
      RowAccess &access = reader.args[arg.getArgNumber()];
      if (access.kind != RowAccess::Stage)
        return nullptr;
      stage = access.stage;
      value =
          group.stages[stage].body->getTerminator()->getOperand(access.result);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return op;
    value = op->getOperand(0);
  }
}

/// Whether what `access` reads is a square root, or the sum of exp(x - max x)
/// of a softmax: nothing so small that its reciprocal would be infinite, and
/// for a sum at least 1.
static bool hasFiniteReciprocal(ReductionGroup &group,
                                const RowAccess &access) {
  unsigned at = access.stage;
  Value result =
      group.stages[at].body->getTerminator()->getOperand(access.result);
  Operation *op = findDefinition(group, at, result);
  if (isa_and_nonnull<math::SqrtOp>(op))
    return true;
  if (!isa_and_nonnull<arith::AddFOp>(op) || !group.stages[at].isReduction)
    return false;
  return llvm::any_of(op->getOperands(), [&](Value term) {
    unsigned stage = at;
    auto exp =
        dyn_cast_or_null<math::ExpOp>(findDefinition(group, stage, term));
    if (!exp)
      return false;
    auto difference = dyn_cast_or_null<arith::SubFOp>(
        findDefinition(group, stage, exp.getOperand()));
    return difference &&
           isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(
               findDefinition(group, stage, difference.getRhs())) &&
           group.stages[stage].isReduction;
  });
}

/// The body of `stage` at `point`; `accs` are the accumulators of a reduction.
SmallVector<Copies> RowGroupEmitter::compute(unsigned index, const Point &point,
                                             Scope &scope,
                                             ArrayRef<Copies> accs) {
  RowStage &stage = group.stages[index];
  SmallVector<Copies> args;
  for (unsigned i = 0; i < stage.args.size(); ++i) {
    if (i >= stage.numInputs && !accs.empty())
      args.push_back(accs[i - stage.numInputs]);
    else
      args.push_back(getArg(index, i, point, scope));
  }
  // Division of a row by what a reduction made of it: one division and a
  // multiplication for each element. The result may differ in the last bit.
  llvm::SmallBitVector reciprocal(args.size());
  for (auto [i, access] : llvm::enumerate(stage.args)) {
    if (access.kind != RowAccess::Stage || !plan.inner[index] ||
        stage.isReduction || !isDivisorOnly(stage.body->getArgument(i)) ||
        !hasFiniteReciprocal(group, access))
      continue;
    Value divisor = args[i].front();
    bool isRowValue =
        group.stages[access.stage].isReduction || !plan.inner[access.stage];
    if (!isRowValue || !plan.laneReduced || isa<VectorType>(divisor.getType()))
      continue;
    Value one = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(divisor.getType(), 1.0));
    args[i] = {arith::DivFOp::create(b, loc, one, divisor)};
    reciprocal.set(i);
  }
  llvm::SmallBitVector numbers(args.size());
  if (stage.isReduction && !accs.empty())
    for (unsigned r = 0; r < stage.resultTypes.size(); ++r)
      numbers[stage.numInputs + r] = startsWithNumber(stage, r);
  SmallVector<Copies> results(stage.resultTypes.size());
  for (unsigned copy = 0; copy < point.copies; ++copy) {
    SmallVector<Value> values;
    for (const Copies &arg : args)
      values.push_back(pick(arg, copy));
    auto position = [&](int64_t loop) -> Value {
      int64_t d = stage.dims[loop];
      if (d < 0 || !point.ivs[d])
        return this->index(0);
      if (point.isTile && d == plan.transposed)
        return arith::AddIOp::create(b, loc, point.ivs[d], this->index(copy))
            .getResult();
      if (d != plan.lane || !point.onVectors)
        return point.ivs[d];
      auto type = VectorType::get(plan.lanes, b.getIndexType());
      Value first = point.ivs[d];
      if (copy > 0 && !point.isTile)
        first = arith::AddIOp::create(b, loc, first,
                                      this->index(copy * plan.lanes));
      return arith::AddIOp::create(
          b, loc, vector::BroadcastOp::create(b, loc, type, first),
          vector::StepOp::create(b, loc, type));
    };
    auto special = [&](Operation *op, ArrayRef<Value> operands) {
      return emitSpecial(op, operands, stage, point, copy);
    };
    SmallVector<Value> yielded =
        emitVectorBody(b, loc, *stage.body, shape(point), values, position,
                       reciprocal, numbers, special);
    for (auto [result, value] : llvm::zip(results, yielded))
      result.push_back(value);
  }
  return results;
}

const SmallVector<Copies> &
RowGroupEmitter::evaluate(unsigned stage, const Point &point, Scope &scope) {
  if (const SmallVector<Copies> *known = scope.findResults(stage))
    return *known;
  SmallVector<Copies> values;
  if (plan.kept[stage] && plan.level[stage] < point.level)
    for (const RowAccess &access : keptIn[stage])
      values.push_back(load(access, point));
  else
    values = compute(stage, point, scope);
  return scope.results[stage] = std::move(values);
}

void RowGroupEmitter::storeResults(unsigned stage, const Point &point,
                                   Scope &scope) {
  const SmallVector<Copies> &values = *scope.findResults(stage);
  for (auto [i, access] : llvm::enumerate(group.stages[stage].stores))
    if (access.kind == RowAccess::Memory)
      store(access, point, values[i]);
    else if (plan.kept[stage] && plan.level[stage] == point.level)
      store(keptIn[stage][i], point, values[i]);
}
