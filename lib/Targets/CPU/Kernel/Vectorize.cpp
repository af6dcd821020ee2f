//===- Vectorize.cpp - Linalg bodies on vectors ---------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel/Vectorize.h"
#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sardonyx::cpu {

static unsigned getBits(Type type) {
  type = getElementTypeOrSelf(type);
  if (type.isIndex())
    return 64;
  return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
}

bool isVectorizableBody(Block &body) {
  auto isLaneType = [](Type t) { return t.isIntOrIndexOrFloat(); };
  if (!llvm::all_of(body.getArgumentTypes(), isLaneType))
    return false;
  for (Operation &op : body.without_terminator()) {
    if (op.getNumRegions() != 0 ||
        !llvm::all_of(op.getResultTypes(), isLaneType))
      return false;
    if (isa<linalg::IndexOp>(op) || op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!OpTrait::hasElementwiseMappableTraits(&op))
      return false;
  }
  return true;
}

bool isDivisorOnly(BlockArgument arg) {
  return !arg.use_empty() && llvm::all_of(arg.getUses(), [](OpOperand &use) {
    return isa<arith::DivFOp>(use.getOwner()) && use.getOperandNumber() == 1 &&
           use.getOwner()->getOperand(0) != use.get();
  });
}

bool mayTrapOnPadding(Block &body) {
  for (Operation &op : body)
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
            arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
      return true;
  return false;
}

unsigned getWidestBits(Block &body) {
  unsigned bits = 1;
  for (Type type : body.getArgumentTypes())
    bits = std::max(bits, getBits(type));
  for (Operation &op : body)
    for (Type type : op.getResultTypes())
      if (!op.hasTrait<OpTrait::ConstantLike>())
        bits = std::max(bits, getBits(type));
  return bits;
}

/// The product that `sum` adds onto an accumulator of `body`: a result whose
/// value before is the other operand. Null if `sum` is no such sum.
static arith::MulFOp getAccumulatedProduct(arith::AddFOp sum, Block &body) {
  Operation *yield = body.getTerminator();
  unsigned first = body.getNumArguments() - yield->getNumOperands();
  if (!sum.getType().isF32() && !sum.getType().isF64())
    return nullptr;
  for (auto [i, yielded] : llvm::enumerate(yield->getOperands())) {
    if (yielded != sum.getResult())
      continue;
    Value before = body.getArgument(first + i);
    Value product = sum.getLhs() == before   ? sum.getRhs()
                    : sum.getRhs() == before ? sum.getLhs()
                                             : Value();
    return product ? product.getDefiningOp<arith::MulFOp>() : nullptr;
  }
  return nullptr;
}

Value broadcastTo(OpBuilder &b, Location loc, Value value,
                  ArrayRef<int64_t> shape) {
  if (shape.empty() || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      b, loc, VectorType::get(shape, value.getType()), value);
}

Value emitBetter(OpBuilder &b, Location loc, bool larger, Value value,
                 Value other) {
  Value isBetter = arith::CmpFOp::create(
      b, loc, larger ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT,
      value, other);
  return arith::SelectOp::create(b, loc, isBetter, value, other);
}

/// The better of each order is an instruction on x86, and its second value
/// where they don't compare: one of the two is NaN then, and otherwise both are
/// the same (or zeros). Their bits together take an instruction less than a
/// comparison with NaN and a choice.
Value emitMaximum(ImplicitLocOpBuilder &b, Value x, Value y) {
  auto bits = cast<VectorType>(x.getType()).clone(b.getI32Type());
  auto largerBits = [&](Value x, Value y) -> Value {
    Value larger = emitBetter(b, b.getLoc(), /*larger=*/true, x, y);
    return arith::BitcastOp::create(b, bits, larger);
  };
  Value both = arith::OrIOp::create(b, largerBits(x, y), largerBits(y, x));
  return arith::BitcastOp::create(b, x.getType(), both);
}

/// Which operand of `op`, maxnumf or minnumf, is an argument of `body` in
/// `numbers`; null if there is none.
static OpOperand *findNumber(Operation &op, Block &body,
                             const llvm::SmallBitVector &numbers) {
  if (numbers.empty() || !isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
    return nullptr;
  for (OpOperand &operand : op.getOpOperands())
    if (auto arg = dyn_cast<BlockArgument>(operand.get());
        arg && arg.getOwner() == &body && numbers[arg.getArgNumber()])
      return &operand;
  return nullptr;
}

/// Clones the operations of `body` that `isNeeded`, all if it is null, and puts
/// what their values become into `map`, where the arguments are.
static void cloneOnVectors(OpBuilder &b, Location loc, Block &body,
                           ArrayRef<int64_t> shape, IRMapping &map,
                           llvm::function_ref<bool(Operation &)> isNeeded,
                           llvm::function_ref<Value(int64_t)> index,
                           const llvm::SmallBitVector &reciprocal,
                           const llvm::SmallBitVector &numbers,
                           SpecialOp special) {
  for (Operation &op : body.without_terminator()) {
    if (isNeeded && !isNeeded(op))
      continue;
    if (auto indexOp = dyn_cast<linalg::IndexOp>(op)) {
      map.map(indexOp.getResult(), index(indexOp.getDim()));
      continue;
    }
    const bool mayBeSpecial = isa<arith::CmpIOp, arith::SelectOp>(op);
    if (special && (mayBeSpecial || isa<tensor::ExtractOp, sdx::CheckOp>(op))) {
      SmallVector<Value> operands;
      for (Value operand : op.getOperands())
        operands.push_back(map.lookupOrDefault(operand));
      Value result = special(&op, operands);
      if (result)
        map.map(op.getResult(0), result);
      if (result || !mayBeSpecial)
        continue;
    }
    if (auto division = dyn_cast<arith::DivFOp>(op)) {
      auto divisor = dyn_cast<BlockArgument>(division.getRhs());
      if (divisor && divisor.getOwner() == &body && !reciprocal.empty() &&
          reciprocal[divisor.getArgNumber()]) {
        Value lhs = map.lookupOrDefault(division.getLhs());
        Value rhs = map.lookupOrDefault(division.getRhs());
        if (isa<VectorType>(lhs.getType()) || isa<VectorType>(rhs.getType())) {
          lhs = broadcastTo(b, loc, lhs, shape);
          rhs = broadcastTo(b, loc, rhs, shape);
        }
        map.map(division.getResult(),
                arith::MulFOp::create(b, loc, lhs, rhs).getResult());
        continue;
      }
    }
    bool onVectors = llvm::any_of(op.getOperands(), [&](Value v) {
      return isa<VectorType>(map.lookupOrDefault(v).getType());
    });
    if (auto sum = dyn_cast<arith::AddFOp>(op); sum && onVectors)
      if (auto product = getAccumulatedProduct(sum, body)) {
        Value before =
            sum.getLhs() == product.getResult() ? sum.getRhs() : sum.getLhs();
        auto onLanes = [&](Value v) {
          return broadcastTo(b, loc, map.lookupOrDefault(v), shape);
        };
        map.map(sum.getResult(), vector::FMAOp::create(
                                     b, loc, onLanes(product.getLhs()),
                                     onLanes(product.getRhs()), onLanes(before))
                                     .getResult());
        continue;
      }
    if (OpOperand *number = findNumber(op, body, numbers)) {
      auto onLanes = [&](Value v) {
        Value mapped = map.lookupOrDefault(v);
        return onVectors ? broadcastTo(b, loc, mapped, shape) : mapped;
      };
      map.map(op.getResult(0),
              emitBetter(b, loc, isa<arith::MaxNumFOp>(op),
                         onLanes(op.getOperand(1 - number->getOperandNumber())),
                         onLanes(number->get())));
      continue;
    }
    if (!onVectors) {
      b.clone(op, map);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(
          broadcastTo(b, loc, map.lookupOrDefault(operand), shape));
    SmallVector<Type> types;
    for (Type type : op.getResultTypes())
      types.push_back(VectorType::get(shape, type));
    OperationState state(loc, op.getName().getStringRef(), operands, types,
                         op.getAttrs());
    map.map(op.getResults(), b.create(state)->getResults());
  }
}

SmallVector<Value> emitVectorBody(OpBuilder &b, Location loc, Block &body,
                                  ArrayRef<int64_t> shape, ValueRange args,
                                  llvm::function_ref<Value(int64_t)> index,
                                  const llvm::SmallBitVector &reciprocal,
                                  const llvm::SmallBitVector &numbers,
                                  SpecialOp special) {
  IRMapping map;
  map.map(body.getArguments(), args);
  cloneOnVectors(b, loc, body, shape, map, /*isNeeded=*/nullptr, index,
                 reciprocal, numbers, special);
  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(map.lookupOrDefault(value));
  return results;
}

SmallVector<Value> emitVectorValues(OpBuilder &b, Location loc, Block &body,
                                    ArrayRef<int64_t> shape, ValueRange args,
                                    ValueRange wanted) {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Value> open(wanted);
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == &body && needed.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  IRMapping map;
  map.map(body.getArguments(), args);
  cloneOnVectors(
      b, loc, body, shape, map,
      [&](Operation &op) { return needed.contains(&op); }, /*index=*/nullptr,
      /*reciprocal=*/{}, /*numbers=*/{}, /*special=*/nullptr);
  SmallVector<Value> results;
  for (Value value : wanted)
    results.push_back(map.lookupOrDefault(value));
  return results;
}

} // namespace sardonyx::cpu
