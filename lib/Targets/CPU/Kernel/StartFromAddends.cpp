//===- StartFromAddends.cpp - Sums that start from what is added ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of bytes wrap, so that their order is free.
//
//===----------------------------------------------------------------------===//

#include "Kernel/RootKernel.h"

#include "lib/Dispatch/Utils.h"
#include "sardonyx/Targets/CPU/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace sardonyx {
#define GEN_PASS_DEF_CPUSTARTFROMADDENDS
#include "sardonyx/Targets/CPU/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

namespace {

/// What the body of `generic`, elementwise on a kernel's sums, adds to these
/// before anything else: numbers of their last dimension.
class Addends {
public:
  explicit Addends(linalg::GenericOp generic) : generic(generic) {}

  /// Follows the sums from `value` on. Returns what all terms are added to.
  Value collect(Value value) {
    while (value.hasOneUse()) {
      Operation *user = *value.user_begin();
      const bool isMinus = isa<arith::SubIOp>(user);
      if ((!isMinus && !isa<arith::AddIOp>(user)) ||
          (isMinus && user->getOperand(1) == value))
        break;
      Value other = user->getOperand(user->getOperand(0) == value ? 1 : 0);
      if (!isOfColumns(other))
        break;
      terms.push_back({other, isMinus});
      value = user->getResult(0);
    }
    return value;
  }
  bool empty() const { return terms.empty(); }

  /// The sum of the terms, elementwise in the place of `zeros`.
  Value emit(OpBuilder &b, Value zeros) {
    llvm::SetVector<Value> read;
    for (auto [value, isMinus] : terms)
      findArguments(value, read);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (Value argument : read) {
      OpOperand *operand =
          generic.getMatchingOpOperand(cast<BlockArgument>(argument));
      inputs.push_back(operand->get());
      maps.push_back(generic.getMatchingIndexingMap(operand));
    }
    maps.push_back(b.getMultiDimIdentityMap(generic.getNumLoops()));
    return linalg::GenericOp::create(
               b, generic.getLoc(), TypeRange(zeros.getType()), inputs,
               ValueRange(zeros), maps, generic.getIteratorTypesArray(),
               [&](OpBuilder &body, Location loc, ValueRange args) {
                 IRMapping map;
                 map.map(read.getArrayRef(), args.drop_back());
                 linalg::YieldOp::create(body, loc, emitSum(body, loc, map));
               })
        .getResult(0);
  }

private:
  bool isInBody(Value value) {
    return value.getParentBlock() == generic.getBody();
  }

  bool isOfColumns(Value value) {
    if (!isInBody(value))
      return true;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      OpOperand *operand = generic.getMatchingOpOperand(argument);
      AffineMap map = generic.getMatchingIndexingMap(operand);
      return generic.isDpsInput(operand) &&
             llvm::all_of(map.getResults(), [&](AffineExpr e) {
               auto dim = dyn_cast<AffineDimExpr>(e);
               return isa<AffineConstantExpr>(e) ||
                      (dim && dim.getPosition() + 1 == map.getNumDims());
             });
    }
    Operation *op = value.getDefiningOp();
    return isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
           !isa<linalg::IndexOp>(op) &&
           llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isOfColumns(operand); });
  }

  void findArguments(Value value, llvm::SetVector<Value> &read) {
    if (!isInBody(value))
      return;
    if (isa<BlockArgument>(value)) {
      read.insert(value);
      return;
    }
    for (Value operand : value.getDefiningOp()->getOperands())
      findArguments(operand, read);
  }

  Value emitSum(OpBuilder &b, Location loc, IRMapping &map) {
    Value sum;
    for (auto [value, isMinus] : terms) {
      Value term = copy(b, value, map);
      if (!sum && isMinus)
        sum = arith::ConstantOp::create(
            b, loc, cast<TypedAttr>(b.getZeroAttr(term.getType())));
      if (!sum)
        sum = term;
      else if (isMinus)
        sum = arith::SubIOp::create(b, loc, sum, term);
      else
        sum = arith::AddIOp::create(b, loc, sum, term);
    }
    return sum;
  }

  Value copy(OpBuilder &b, Value value, IRMapping &map) {
    if (isInBody(value) && !map.contains(value)) {
      for (Value operand : value.getDefiningOp()->getOperands())
        copy(b, operand, map);
      b.clone(*value.getDefiningOp(), map);
    }
    return map.lookupOrDefault(value);
  }

  linalg::GenericOp generic;
  SmallVector<std::pair<Value, bool>> terms;
};

struct StartFromAddendsPass
    : sardonyx::impl::CPUStartFromAddendsBase<StartFromAddendsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    FailureOr<NarrowConvOp> root = findRoot<NarrowConvOp>(func, "contraction");
    if (failed(root))
      return signalPassFailure();
    NarrowConvOp op = *root;
    if (!op || !op->getResult(0).hasOneUse() || !isZeroFilled(op.getInit()) ||
        !getElementTypeOrSelf(op.getInit().getType()).isInteger(32))
      return;
    OpOperand &use = *op->getResult(0).use_begin();
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || !generic.isDpsInput(&use) ||
        generic.getNumParallelLoops() != generic.getNumLoops() ||
        !generic.getMatchingIndexingMap(&use).isIdentity())
      return;
    BlockArgument sums = generic.getMatchingBlockArgument(&use);
    Addends addends(generic);
    Value total = addends.collect(sums);
    if (addends.empty())
      return;
    // What the addends are made of is there where the generic is.
    OpBuilder b(generic);
    op.getInitMutable().assign(addends.emit(b, op.getInit()));
    op->moveBefore(generic);
    total.replaceAllUsesWith(sums);
    eraseDeadInBodies(func);
  }
};

} // namespace
