//===- LowerHostParallel.cpp - Outline parallel loops ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"
#include "sardonyx/Host/Passes.h"

#include "dialects/SDX/RareElse.h"
#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

namespace sardonyx {
#define GEN_PASS_DEF_SDXLOWERHOSTPARALLEL
#include "sardonyx/Host/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;

namespace {

/// The work, in cycles, that is worth waking a thread for.
constexpr int64_t kGrainCycles = 20000;
/// Trip count assumed for a loop whose bounds nothing is known about.
constexpr int64_t kUnknownTrips = 64;

/// The extent of one dimension of a loop: ceil((ub - lb) / step), at least 0.
Value getTripCount(OpBuilder &b, Location loc, Value lb, Value ub, Value step) {
  auto lbValue = getConstantIntValue(lb), stepValue = getConstantIntValue(step),
       ubValue = getConstantIntValue(ub);
  if (lbValue && ubValue && stepValue && *stepValue > 0)
    return arith::ConstantIndexOp::create(
        b, loc,
        std::max<int64_t>(
            0, llvm::divideCeil(std::max<int64_t>(0, *ubValue - *lbValue),
                                *stepValue)));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value span = ub;
  if (lbValue != 0)
    span = arith::SubIOp::create(b, loc, ub, lb);
  span = arith::MaxSIOp::create(b, loc, span, zero);
  if (stepValue == 1)
    return span;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value padded = arith::AddIOp::create(
      b, loc, span, arith::SubIOp::create(b, loc, step, one));
  return arith::DivUIOp::create(b, loc, padded, step);
}

/// Registers of 64 bytes that the longest vector of `types` fills, at least
/// one.
int64_t countRegisters(TypeRange types) {
  int64_t count = 1;
  for (Type type : types)
    if (auto vector = dyn_cast<VectorType>(type)) {
      unsigned bits = vector.getElementType().isIndex()
                          ? 64
                          : vector.getElementTypeBitWidth();
      count = std::max<int64_t>(
          count, llvm::divideCeil(vector.getNumElements() * bits, 512));
    }
  return count;
}

/// Cycles that `op` itself takes, roughly: one for each 64 bytes that it makes,
/// more for memory, divisions and math functions.
int64_t estimateOp(Operation &op) {
  if (op.hasTrait<OpTrait::ConstantLike>() ||
      op.hasTrait<OpTrait::IsTerminator>())
    return 0;
  int64_t units = countRegisters(op.getResultTypes());
  // What other kernels left is in the L2 cache at best.
  constexpr int64_t kAccess = 4;
  if (isa<vector::LoadOp, vector::MaskedLoadOp>(op))
    return kAccess * units;
  if (isa<vector::StoreOp, vector::MaskedStoreOp>(op))
    return kAccess * countRegisters(op.getOperandTypes());
  // A row of open size: some hundred elements.
  if (isa<LLVM::MemcpyOp, LLVM::MemsetOp>(op)) {
    constexpr int64_t kOpenBytes = 4096;
    const int64_t bytes =
        getConstantIntValue(op.getOperand(2)).value_or(kOpenBytes);
    return llvm::divideCeil(bytes, 64) * kAccess;
  }
  if (isa<math::MathDialect>(op.getDialect()))
    return 16 * units;
  if (isa<LLVM::ExpOp, LLVM::Exp2Op, LLVM::LogOp, LLVM::Log2Op, LLVM::Log10Op,
          LLVM::PowOp, LLVM::SinOp, LLVM::CosOp>(op))
    return 256 * units;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp, arith::RemFOp>(op))
    return 8 * units;
  return units;
}

/// The cycles of one run of `block` as a value. Trip counts that can be
/// computed before `outer` are.
Value estimateBlock(OpBuilder &b, Location loc, Block &block,
                    Operation *outer) {
  int64_t fixed = 0;
  Value dynamic;
  for (Operation &op : block) {
    fixed += estimateOp(op);
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    for (Region &region : op.getRegions()) {
      const bool isRare = region.getRegionNumber() == 1 &&
                          op.hasAttr(sardonyx::sdx::kRareElseAttr);
      if (region.empty() || isRare)
        continue;
      Value inner = estimateBlock(b, loc, region.front(), outer);
      if (loop) {
        auto bounds =
            std::make_tuple(loop.getLoopLowerBounds(),
                            loop.getLoopUpperBounds(), loop.getLoopSteps());
        if (!std::get<0>(bounds) || !std::get<1>(bounds) ||
            !std::get<2>(bounds)) {
          inner = arith::MulIOp::create(
              b, loc, inner,
              arith::ConstantIndexOp::create(b, loc, kUnknownTrips));
        } else {
          auto isOutside = [&](OpFoldResult v) {
            auto value = dyn_cast<Value>(v);
            return !value || getConstantIntValue(value) ||
                   !outer->isAncestor(value.getParentBlock()->getParentOp());
          };
          for (auto [lb, ub, step] :
               llvm::zip(*std::get<0>(bounds), *std::get<1>(bounds),
                         *std::get<2>(bounds))) {
            Value trips;
            if (isOutside(lb) && isOutside(ub) && isOutside(step)) {
              auto get = [&](OpFoldResult v) -> Value {
                if (auto constant = getConstantIntValue(v))
                  return arith::ConstantIndexOp::create(b, loc, *constant);
                return cast<Value>(v);
              };
              trips = getTripCount(b, loc, get(lb), get(ub), get(step));
            } else {
              trips = arith::ConstantIndexOp::create(b, loc, kUnknownTrips);
            }
            inner = arith::MulIOp::create(b, loc, inner, trips);
          }
        }
      }
      dynamic = dynamic ? arith::AddIOp::create(b, loc, dynamic, inner) : inner;
    }
  }
  Value result =
      arith::ConstantIndexOp::create(b, loc, std::max<int64_t>(fixed, 1));
  return dynamic ? arith::AddIOp::create(b, loc, result, dynamic) : result;
}

/// Turns every parallel loop in `root` into nests of sequential ones.
LogicalResult makeSequential(Operation *root) {
  SmallVector<scf::ParallelOp> loops;
  root->walk([&](scf::ParallelOp op) { loops.push_back(op); });
  for (scf::ParallelOp op : loops) {
    if (op.getNumReductions() != 0)
      return op.emitOpError("with reductions is not supported");
    OpBuilder b(op);
    SmallVector<Value> ivs;
    for (auto [lb, ub, step] :
         llvm::zip(op.getLowerBound(), op.getUpperBound(), op.getStep())) {
      auto loop = scf::ForOp::create(b, op.getLoc(), lb, ub, step);
      ivs.push_back(loop.getInductionVar());
      b.setInsertionPointToStart(loop.getBody());
    }
    Block *target = b.getInsertionBlock();
    for (auto [from, to] : llvm::zip(op.getInductionVars(), ivs))
      from.replaceAllUsesWith(to);
    target->getOperations().splice(
        target->begin(), op.getBody()->getOperations(), op.getBody()->begin(),
        std::prev(op.getBody()->end()));
    op.erase();
  }
  return success();
}

/// A stack slot in a loop would be taken anew by each iteration.
void hoistAllocas(func::FuncOp func) {
  Block &entry = func.getBody().front();
  SmallVector<memref::AllocaOp> allocas;
  func.walk([&](memref::AllocaOp op) {
    if (op->getBlock() != &entry && op->getNumOperands() == 0)
      allocas.push_back(op);
  });
  for (memref::AllocaOp op : allocas)
    op->moveBefore(&entry, entry.begin());
}

/// Buffers of an iteration whose size is known before the loop serve all
/// iterations of a range.
void hoistAllocs(scf::ForOp loop) {
  for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
    auto alloc = dyn_cast<memref::AllocOp>(op);
    if (!alloc || !llvm::all_of(alloc->getOperands(), [&](Value v) {
          return loop.isDefinedOutsideOfLoop(v);
        }))
      continue;
    memref::DeallocOp free;
    for (Operation *user : alloc->getUsers())
      if (auto dealloc = dyn_cast<memref::DeallocOp>(user))
        if (dealloc->getBlock() == loop.getBody())
          free = dealloc;
    if (!free)
      continue;
    alloc->moveBefore(loop);
    free->moveAfter(loop);
  }
}

/// The positions in a grid of `counts` of the iteration `number`.
SmallVector<Value> getPositions(OpBuilder &b, Location loc, Value number,
                                ArrayRef<Value> counts) {
  SmallVector<Value> positions(counts.size());
  for (int64_t i = counts.size() - 1; i > 0; --i) {
    // Of a grid without positions there may be a range that is empty.
    Value count = counts[i];
    if (!getConstantIntValue(count))
      count = arith::MaxSIOp::create(b, loc, count,
                                     arith::ConstantIndexOp::create(b, loc, 1));
    positions[i] = arith::RemUIOp::create(b, loc, number, count);
    number = arith::DivUIOp::create(b, loc, number, count);
  }
  positions.front() = number;
  return positions;
}

/// The positions of the next iteration.
SmallVector<Value> advance(OpBuilder &b, Location loc,
                           ArrayRef<Value> positions, ArrayRef<Value> counts) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> next(positions);
  Value carry;
  for (int64_t i = positions.size() - 1; i >= 0; --i) {
    next[i] = arith::AddIOp::create(b, loc, positions[i], one);
    if (carry)
      next[i] = arith::SelectOp::create(b, loc, carry, next[i], positions[i]);
    if (i == 0)
      break;
    carry = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next[i],
                                  counts[i]);
    next[i] = arith::SelectOp::create(b, loc, carry, zero, next[i]);
  }
  return next;
}

struct ParallelToRuntimePass
    : sardonyx::impl::SDXLowerHostParallelBase<ParallelToRuntimePass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> funcs(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp func : funcs) {
      if (func.isExternal())
        continue;
      SmallVector<scf::ParallelOp> outermost;
      func.walk<WalkOrder::PreOrder>([&](scf::ParallelOp op) {
        outermost.push_back(op);
        return WalkResult::skip();
      });
      for (auto [i, op] : llvm::enumerate(outermost))
        if (failed(outline(func, op, i)))
          return signalPassFailure();
      // Not before: what a parallel loop takes is each thread's own.
      hoistAllocas(func);
    }
    lowerThreadCounts();
  }

private:
  void lowerThreadCounts() {
    constexpr StringLiteral kName = "sdx_rt_threads";
    func::FuncOp function;
    getOperation().walk([&](sardonyx::sdx::ThreadCountOp op) {
      OpBuilder b(op);
      if (!function) {
        OpBuilder top(getOperation().getBodyRegion());
        function = func::FuncOp::create(
            top, op.getLoc(), kName, b.getFunctionType({}, {b.getIndexType()}));
        function.setPrivate();
      }
      op.replaceAllUsesWith(
          func::CallOp::create(b, op.getLoc(), function).getResult(0));
      op.erase();
    });
  }

  LogicalResult outline(func::FuncOp func, scf::ParallelOp op, size_t number) {
    Location loc = op.getLoc();
    if (op.getNumReductions() != 0)
      return op.emitOpError("with reductions is not supported");
    OpBuilder b(op);
    Value total;
    SmallVector<Value> extents;
    for (auto [lb, ub, step] :
         llvm::zip(op.getLowerBound(), op.getUpperBound(), op.getStep())) {
      extents.push_back(getTripCount(b, loc, lb, ub, step));
      total = total ? arith::MulIOp::create(b, loc, total, extents.back())
                    : extents.back();
    }
    Value work = estimateBlock(b, loc, *op.getBody(), op);
    Value grain = arith::DivUIOp::create(
        b, loc,
        arith::AddIOp::create(
            b, loc, work, arith::ConstantIndexOp::create(b, loc, kGrainCycles)),
        work);

    // Bounds are captured with what the body uses.
    SetVector<Value> used;
    getUsedValuesDefinedAbove(op.getRegion(), used);
    used.insert_range(op.getLowerBound());
    used.insert_range(op.getStep());
    used.insert_range(extents);
    SmallVector<Value> captures, constants;
    for (Value value : used)
      (matchPattern(value, m_Constant()) ? constants : captures)
          .push_back(value);

    SmallVector<Type> types(2, b.getIndexType());
    llvm::append_range(types, ValueRange(captures).getTypes());
    std::string name = (func.getName() + "_par" + Twine(number)).str();
    OpBuilder top(func);
    auto type = b.getFunctionType(types, {});
    auto body = func::FuncOp::create(top, loc, name, type);
    body.setPrivate();
    auto starter = func::FuncOp::create(
        top, loc, (sardonyx::kStarterPrefix + name).str(), type);
    starter.setPrivate();

    SmallVector<Value> operands{total, grain};
    llvm::append_range(operands, captures);
    func::CallOp::create(b, loc, starter, operands);

    buildBody(body, op, captures, constants, extents);
    op.erase();
    hoistAllocas(body);
    return makeSequential(body);
  }

  void buildBody(func::FuncOp body, scf::ParallelOp op, ValueRange captures,
                 ValueRange constants, ArrayRef<Value> extents) {
    Location loc = op.getLoc();
    Block *entry = body.addEntryBlock();
    auto b = OpBuilder::atBlockBegin(entry);
    IRMapping map;
    map.map(captures, entry->getArguments().drop_front(2));
    for (Value constant : constants)
      b.clone(*constant.getDefiningOp(), map);
    SmallVector<Value> counts;
    for (Value extent : extents)
      counts.push_back(map.lookup(extent));
    // A division by what is not known takes as long as a short iteration.
    const bool carries =
        !llvm::all_of(ArrayRef(counts).drop_front(), [](Value v) -> bool {
          return getConstantIntValue(v).has_value();
        });
    Value begin = entry->getArgument(0);
    SmallVector<Value> first;
    if (carries)
      first = getPositions(b, loc, begin, counts);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop =
        scf::ForOp::create(b, loc, begin, entry->getArgument(1), one, first);
    func::ReturnOp::create(b, loc);

    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> positions(loop.getRegionIterArgs());
    if (!carries)
      positions = getPositions(b, loc, loop.getInductionVar(), counts);
    for (auto [i, position] : llvm::enumerate(positions)) {
      Value iv = position;
      if (getConstantIntValue(op.getStep()[i]) != 1)
        iv = arith::MulIOp::create(b, loc, iv, map.lookup(op.getStep()[i]));
      if (getConstantIntValue(op.getLowerBound()[i]) != 0)
        iv = arith::AddIOp::create(b, loc, iv,
                                   map.lookup(op.getLowerBound()[i]));
      map.map(op.getInductionVars()[i], iv);
    }
    for (Operation &inner : op.getBody()->without_terminator())
      b.clone(inner, map);
    if (carries)
      scf::YieldOp::create(b, loc, advance(b, loc, positions, counts));
    hoistAllocs(loop);
  }
};

} // namespace
