//===- TestBlocks.cpp - Searches on vectors -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search asks whether a test holds for one of the indices up to a limit. The
// test of a vector of them ends the search like that of one; lanes past the
// limit are masked off. Where the search also tells which index, rows are long:
// whole vectors go first, without masks, and the rest as before.
//
//===----------------------------------------------------------------------===//

#include "Loops/TestBlocks.h"
#include "dialects/SDX/TaskLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace sardonyx;

namespace {

class Search {
public:
  explicit Search(scf::WhileOp op) : op(op) {}

  bool matches();
  void replace(unsigned vectorBits);

private:
  bool findLimit();
  Value test(ImplicitLocOpBuilder &b, Value from, int64_t lanes, Value mask);
  void replaceByMasks(int64_t lanes);
  void findPlace(int64_t lanes);
  bool isOutside(Value value) {
    return !op->isAncestor(value.getParentBlock()->getParentOp());
  }

  scf::WhileOp op;
  Value limit;
  unsigned widest = 8;
};

} // namespace

/// Whether the search has the form that sdx.any tells of; what its index is
/// less than.
bool Search::findLimit() {
  Block *before = op.getBeforeBody(), *after = op.getAfterBody();
  if (!op->hasAttr(sdx::kAnyAttr) || op.getNumResults() != 2 ||
      before->getNumArguments() != 2 ||
      !before->getArgument(0).getType().isIndex() ||
      !before->getArgument(1).getType().isInteger(1) ||
      !llvm::equal(op.getConditionOp().getArgs(), before->getArguments()))
    return false;
  auto next = op.getYieldOp().getOperand(0).getDefiningOp<arith::AddIOp>();
  if (!next || next.getLhs() != after->getArgument(0) ||
      !isConstantIntValue(next.getRhs(), 1))
    return false;
  for (Operation &inner : *before)
    if (auto less = dyn_cast<arith::CmpIOp>(inner))
      if (less.getPredicate() == arith::CmpIPredicate::slt &&
          less.getLhs() == before->getArgument(0) && isOutside(less.getRhs()))
        limit = less.getRhs();
  return limit != nullptr;
}

bool Search::matches() {
  if (!findLimit())
    return false;
  Block *body = op.getAfterBody();
  Value index = body->getArgument(0);
  if (!body->getArgument(1).use_empty() ||
      body->getTerminator()->getOperand(1).getParentBlock() != body)
    return false;
  for (Operation &inner : body->without_terminator()) {
    if (&inner == op.getYieldOp().getOperand(0).getDefiningOp())
      continue;
    for (Type type : inner.getResultTypes()) {
      if (!type.isIntOrFloat())
        return false;
      widest = std::max(widest, type.getIntOrFloatBitWidth());
    }
    if (auto load = dyn_cast<memref::LoadOp>(inner)) {
      auto indices = load.getIndices();
      if (indices.empty() || indices.back() != index ||
          !load.getMemRefType().areTrailingDimsContiguous(1) ||
          !isOutside(load.getMemRef()) ||
          !llvm::all_of(indices.drop_back(),
                        [&](Value v) { return isOutside(v); }))
        return false;
      continue;
    }
    if (inner.getNumRegions() != 0 ||
        !OpTrait::hasElementwiseMappableTraits(&inner) ||
        llvm::is_contained(inner.getOperands(), index))
      return false;
  }
  return true;
}

/// The test of a vector of indices, of those in `mask` (may be null).
Value Search::test(ImplicitLocOpBuilder &s, Value from, int64_t lanes,
                   Value mask) {
  IRMapping map;
  auto onLanes = [&](Value value) -> Value {
    Value mapped = map.lookupOrDefault(value);
    if (isa<VectorType>(mapped.getType()))
      return mapped;
    return vector::BroadcastOp::create(
        s, VectorType::get(lanes, mapped.getType()), mapped);
  };
  for (Operation &inner : op.getAfterBody()->without_terminator()) {
    if (&inner == op.getYieldOp().getOperand(0).getDefiningOp())
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(inner)) {
      SmallVector<Value> indices(load.getIndices().drop_back());
      indices.push_back(from);
      auto type = VectorType::get(lanes, load.getType());
      Value loaded;
      if (mask) {
        Value none = arith::ConstantOp::create(s, s.getZeroAttr(type));
        loaded = vector::MaskedLoadOp::create(s, type, load.getMemRef(),
                                              indices, mask, none);
      } else {
        loaded = vector::LoadOp::create(s, type, load.getMemRef(), indices);
      }
      map.map(load.getResult(), loaded);
      continue;
    }
    if (inner.hasTrait<OpTrait::ConstantLike>()) {
      s.clone(inner, map);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(onLanes(operand));
    SmallVector<Type> types;
    for (Type type : inner.getResultTypes())
      types.push_back(VectorType::get(lanes, type));
    OperationState state(s.getLoc(), inner.getName().getStringRef(), operands,
                         types, inner.getAttrs());
    map.map(inner.getResults(), s.create(state)->getResults());
  }
  Value holds = onLanes(op.getYieldOp().getOperand(1));
  return mask ? arith::AndIOp::create(s, holds, mask).getResult() : holds;
}

void Search::replace(unsigned vectorBits) {
  const int64_t lanes = std::max<int64_t>(2, vectorBits / widest);
  if (op.getResult(0).use_empty())
    replaceByMasks(lanes);
  else
    findPlace(lanes);
}

void Search::replaceByMasks(int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto maskType = VectorType::get(lanes, b.getI1Type());
  Value step = arith::ConstantIndexOp::create(b, lanes);
  auto search = scf::WhileOp::create(
      b, op.getResultTypes(), op.getInits(),
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        ImplicitLocOpBuilder s(loc, builder);
        Value isIn = arith::CmpIOp::create(s, arith::CmpIPredicate::slt,
                                           state[0], limit);
        Value yes = arith::ConstantIntOp::create(s, 1, 1);
        Value isOpen = arith::XOrIOp::create(s, state[1], yes);
        scf::ConditionOp::create(s, arith::AndIOp::create(s, isIn, isOpen),
                                 state);
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        ImplicitLocOpBuilder s(loc, builder);
        Value mask = vector::CreateMaskOp::create(
            s, maskType, arith::SubIOp::create(s, limit, state[0]).getResult());
        Value holds = vector::ReductionOp::create(
            s, vector::CombiningKind::OR, test(s, state[0], lanes, mask));
        Value next = arith::AddIOp::create(s, state[0], step);
        scf::YieldOp::create(s, ValueRange{next, holds});
      });
  op.getResult(1).replaceAllUsesWith(search.getResult(1));
  op.erase();
}

/// Tests whole vectors until one has a lane that holds; where none has, the
/// search goes on behind them.
void Search::findPlace(int64_t lanes) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto bitsType = b.getIntegerType(lanes);
  Value step = arith::ConstantIndexOp::create(b, lanes);
  Value none = arith::ConstantIntOp::create(b, bitsType, 0);
  // The state is the vector's first index, and its lanes that hold as bits.
  auto search = scf::WhileOp::create(
      b, TypeRange{b.getIndexType(), bitsType}, ValueRange{op.getInits()[0]},
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        ImplicitLocOpBuilder s(loc, builder);
        Value end = arith::AddIOp::create(s, state[0], step);
        Value isIn =
            arith::CmpIOp::create(s, arith::CmpIPredicate::sle, end, limit);
        auto bits = scf::IfOp::create(
            s, isIn,
            [&](OpBuilder &inner, Location at) {
              ImplicitLocOpBuilder t(at, inner);
              Value holds = test(t, state[0], lanes, /*mask=*/{});
              Value packed = vector::BitCastOp::create(
                  t, VectorType::get(1, bitsType), holds);
              Value bits = vector::ExtractOp::create(t, packed, 0);
              scf::YieldOp::create(t, bits);
            },
            [&](OpBuilder &inner, Location at) {
              scf::YieldOp::create(inner, at, none);
            });
        Value isNone = arith::CmpIOp::create(s, arith::CmpIPredicate::eq,
                                             bits.getResult(0), none);
        scf::ConditionOp::create(s, arith::AndIOp::create(s, isIn, isNone),
                                 ValueRange{state[0], bits.getResult(0)});
      },
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        ImplicitLocOpBuilder s(loc, builder);
        Value next = arith::AddIOp::create(s, state[0], step);
        scf::YieldOp::create(s, next);
      });
  Value holds = arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                      search.getResult(1), none);
  auto result = scf::IfOp::create(b, op.getResultTypes(), holds,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  op.replaceAllUsesWith(result.getResults());
  b.setInsertionPointToStart(result.thenBlock());
  Value lane = math::CountTrailingZerosOp::create(b, search.getResult(1));
  Value place = arith::AddIOp::create(
      b, search.getResult(0),
      arith::IndexCastUIOp::create(b, b.getIndexType(), lane).getResult());
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value next = arith::AddIOp::create(b, place, one);
  scf::YieldOp::create(b, ValueRange{next, holds});
  b.setInsertionPointToStart(result.elseBlock());
  auto yield = scf::YieldOp::create(b, op.getResults());
  op->moveBefore(yield);
  op.getInitsMutable()[0].set(search.getResult(0));
}

void cpu::testBlocks(func::FuncOp func, TargetAttr target) {
  SmallVector<scf::WhileOp> loops;
  func.walk([&](scf::WhileOp loop) { loops.push_back(loop); });
  for (scf::WhileOp loop : loops)
    if (Search search(loop); search.matches())
      search.replace(target.getVectorBits());
}
