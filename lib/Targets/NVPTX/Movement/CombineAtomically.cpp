//===- CombineAtomically.cpp - Updates of elements by many threads --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/CombineAtomically.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

static tensor::InsertOp insertOf(const Update &update) {
  return cast<tensor::InsertOp>(update.op);
}
static Type elementOf(const Update &update) {
  return insertOf(update).getScalar().getType();
}

/// Sums that there is an instruction for.
static bool addAtomically(ImplicitLocOpBuilder &b, const Update &update,
                          const IRMapping &mapping, Value address) {
  tensor::ExtractOp load = update.old;
  Value old = load.getResult();
  Operation *op = insertOf(update).getScalar().getDefiningOp();
  if (!isa<arith::AddFOp, arith::AddIOp>(op) ||
      elementOf(update).getIntOrFloatBitWidth() < 32)
    return false;
  Value other = op->getOperand(op->getOperand(0) == old);
  auto kind =
      isa<arith::AddFOp>(op) ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add;
  LLVM::AtomicRMWOp::create(b, kind, address, mapping.lookupOrDefault(other),
                            LLVM::AtomicOrdering::monotonic, kAtomicScope);
  return true;
}

/// What the element becomes whose bits were `bits`.
static Value combine(ImplicitLocOpBuilder &b, const Update &update,
                     const IRMapping &outside, Value bits) {
  auto convert = [&](Value value, Type to) {
    return value.getType() == to
               ? value
               : arith::BitcastOp::create(b, to, value).getResult();
  };
  tensor::ExtractOp old = update.old;
  IRMapping mapping(outside);
  mapping.map(old.getResult(), convert(bits, elementOf(update)));
  for (Operation &op : *update.op->getBlock())
    if (&op != old.getOperation() && update.isMadeOfOld(op))
      b.clone(op, mapping);
  Value next = mapping.lookupOrDefault(insertOf(update).getScalar());
  return convert(next, bits.getType());
}

/// Writes `next` where `seen` still is; what is there, and whether to try
/// again.
static SmallVector<Value> exchange(ImplicitLocOpBuilder &b, Value address,
                                   Value seen, Value next) {
  // What changes nothing need not be written.
  Value differs =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, seen, next);
  auto some = scf::IfOp::create(b, TypeRange{seen.getType(), b.getI1Type()},
                                differs, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(some.thenBlock());
  auto swap = LLVM::AtomicCmpXchgOp::create(
      b, address, seen, next, LLVM::AtomicOrdering::monotonic,
      LLVM::AtomicOrdering::monotonic, kAtomicScope);
  Value found = LLVM::ExtractValueOp::create(b, swap, 0);
  Value done = LLVM::ExtractValueOp::create(b, swap, 1);
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  Value again = arith::XOrIOp::create(b, done, yes);
  scf::YieldOp::create(b, ValueRange{found, again});
  b.setInsertionPointToStart(some.elseBlock());
  Value no = arith::ConstantIntOp::create(b, 0, 1);
  scf::YieldOp::create(b, ValueRange{seen, no});
  return {some.getResult(0), some.getResult(1)};
}

void nv::combineAtomically(ImplicitLocOpBuilder &b, const Update &update,
                           const IRMapping &mapping, Value address) {
  if (addAtomically(b, update, mapping, address))
    return;
  Type word = b.getIntegerType(elementOf(update).getIntOrFloatBitWidth());
  Value first = LLVM::LoadOp::create(b, word, address);
  scf::WhileOp::create(
      b, TypeRange{word}, ValueRange{first},
      [&](OpBuilder &builder, Location loc, ValueRange state) {
        ImplicitLocOpBuilder s(loc, builder);
        Value next = combine(s, update, mapping, state[0]);
        SmallVector<Value> done = exchange(s, address, state[0], next);
        scf::ConditionOp::create(s, done[1], done[0]);
      },
      [](OpBuilder &builder, Location loc, ValueRange state) {
        scf::YieldOp::create(builder, loc, state);
      });
}
