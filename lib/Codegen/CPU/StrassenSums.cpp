//===- StrassenSums.cpp - Sums of rows and columns ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of rows serve all panels of a thread. Those of columns serve one group
// of panels over one range of k; so that they cost as little as possible, and
// wait for no memory, a row of them is made from time to time beside the
// products of the step before.
//
//===----------------------------------------------------------------------===//

#include "StrassenEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The sums of the rows of a tile with those half of the rows below, in the
/// range of k of the step, and whether a row must not be multiplied by way of
/// them: the two are of other sizes, or sums might overflow.
void StrassenEmitter::emitRowSums(Value tile) {
  // Powers of two between two rows at most; what a number may be at most.
  constexpr int64_t kMostDistance = 3, kMostExponent = 240, kMantissaBits = 23;
  int64_t lanes = std::min<int64_t>(matmul.vectorBits / 32, plan.half());
  auto bits = VectorType::get({lanes}, b.getI32Type());
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(bits));
  auto i32 = [&](int64_t value) { return emitSplat(b, b.getI32Type(), value); };
  Value first = math.mul(tile, tileRows);
  Value good = arith::ConstantOp::create(b, b.getBoolAttr(false));
  auto loop = scf::ForOp::create(b, zero, math.constant(tileRows),
                                 math.constant(1), ValueRange{good});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value row = math.add(first, loop.getInductionVar());
    StrassenTile one{row, 1, /*isLimited=*/true};
    Value top = getRow(one, 0, /*isBottom=*/false);
    Value bottom = getRow(one, 0, /*isBottom=*/true);
    auto inner =
        scf::ForOp::create(b, zero, math.constant(plan.half()),
                           math.constant(lanes), ValueRange{none, none});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(inner.getBody());
      Value inHalf = inner.getInductionVar();
      Value at = math.add(step.depth, inHalf);
      Value later = math.add(at, plan.half());
      Value a11 = emitLoad(b, matmul.lhs, {top, at}, lanes);
      Value a12 = emitLoad(b, matmul.lhs, {top, later}, lanes);
      Value a21 = emitLoad(b, matmul.lhs, {bottom, at}, lanes);
      Value a22 = emitLoad(b, matmul.lhs, {bottom, later}, lanes);
      Value s1 = arith::AddFOp::create(b, a21, a22);
      Value s2 = arith::SubFOp::create(b, s1, a11);
      Value s3 = arith::SubFOp::create(b, a11, a21);
      Value s4 = arith::SubFOp::create(b, a12, s2);
      // A range of sums is half as long.
      Value to = math.add(math.div(step.depth, 2), inHalf);
      SmallVector<Value> sums{s1, s2, s3, s4, a22};
      for (auto [number, sum] : llvm::enumerate(sums))
        emitStore(b, sum, rows.sums, {math.constant(number), row, to});
      Value above =
          emitLarger(b, emitLarger(b, inner.getRegionIterArg(0), a11), a12);
      Value below =
          emitLarger(b, emitLarger(b, inner.getRegionIterArg(1), a21), a22);
      scf::YieldOp::create(b, ValueRange{above, below});
    }
    auto exponent = [&](Value most) -> Value {
      Value largest =
          vector::ReductionOp::create(b, vector::CombiningKind::MAXUI, most);
      return arith::ShRUIOp::create(b, largest, i32(kMantissaBits));
    };
    Value above = exponent(inner.getResult(0));
    Value below = exponent(inner.getResult(1));
    Value low = arith::MinUIOp::create(b, above, below);
    Value high = arith::MaxUIOp::create(b, above, below);
    Value isFar = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ugt, high,
        arith::AddIOp::create(b, low, i32(kMostDistance)));
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, high,
                                          i32(kMostExponent));
    Value bad = arith::OrIOp::create(b, isFar, isLarge);
    scf::YieldOp::create(
        b, ValueRange{arith::OrIOp::create(b, loop.getRegionIterArg(0), bad)});
  }
  memref::StoreOp::create(b, loop.getResult(0), rows.bad,
                          {math.div(step.depth, plan.depth), tile});
}

/// The sums beside the periods from `from` to `end`, or to the last.
void StrassenEmitter::emitSums(const StrassenSums &sums, Value from,
                               Value end) {
  auto row = [&](Value period) {
    Value periods = math.sub(period, sums.origin);
    return math.div(math.mul(periods, sums.share), kStrassenShareUnit);
  };
  Value last = end ? math.min(row(end), sums.count) : sums.count;
  emitFor(b, row(from), last, 1,
          [&](Value row) { emitColumnSums(sums.of, row); });
}

/// Row `row` of the sums of columns of a step: one value of k of a panel.
void StrassenEmitter::emitColumnSums(const StrassenStep &of, Value row) {
  // As far ahead as memory needs to bring four streams, and not so far that
  // products beside have pushed them out of the L1 cache.
  constexpr int64_t kRowsAhead = 4;
  Value p = panels == 1 ? zero : math.div(row, plan.half());
  Value k = panels == 1 ? row : math.sub(row, math.mul(p, plan.half()));
  Value left = math.add(of.panel, p);
  Value right = math.add(left, plan.pairs);
  Value at = math.add(of.depth, k), later = math.add(at, plan.half());
  int64_t packed = matmul.op.getPanelWidth();
  if (matmul.comesFromMemory)
    for (auto [panel, depth] :
         {std::pair(left, at), std::pair(right, at), std::pair(left, later),
          std::pair(right, later)})
      for (int64_t i = 0; i < packed; i += Prefetch::kLine)
        emitFetch(b, matmul.rhs,
                  {panel, math.add(depth, kRowsAhead), math.constant(i)});
  // Few registers are left beside a tile.
  int64_t lanes = std::min<int64_t>(matmul.vectorBits / 32, packed);
  for (int64_t i = 0; i < packed; i += lanes) {
    Value column = math.constant(i);
    Value b11 = emitLoad(b, matmul.rhs, {left, at, column}, lanes);
    Value b12 = emitLoad(b, matmul.rhs, {right, at, column}, lanes);
    Value b21 = emitLoad(b, matmul.rhs, {left, later, column}, lanes);
    Value b22 = emitLoad(b, matmul.rhs, {right, later, column}, lanes);
    Value t1 = arith::SubFOp::create(b, b12, b11);
    Value t2 = arith::SubFOp::create(b, b22, t1);
    Value t3 = arith::SubFOp::create(b, b22, b12);
    Value t4 = arith::SubFOp::create(b, b21, t2);
    for (auto [number, sum] : llvm::enumerate(ArrayRef<Value>{t1, t2, t3, t4}))
      emitStore(b, sum, scratch.columns,
                {of.slot, math.constant(number), p, k, column});
  }
}
