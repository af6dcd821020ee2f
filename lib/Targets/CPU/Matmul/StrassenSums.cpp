//===- StrassenSums.cpp - Sums of rows and columns ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sums of rows serve all panels of a thread. Those of columns serve one group
// of panels over one range of k: the first tile makes them as it multiplies by
// them, so that they cost a load and a store beside its multiply-adds.
//
//===----------------------------------------------------------------------===//

#include "Matmul/StrassenEmitter.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

/// The sums of the rows of a tile with those half of the rows below, in the
/// range of k of the step, and whether a row must not be multiplied by way of
/// them: the two are of other sizes, or sums might overflow.
void StrassenEmitter::emitRowSums(Value tile) {
  // Powers of two between two rows at most; what a number may be at most.
  constexpr int64_t kMaxDistance = 3, kMaxExponent = 240, kMantissaBits = 23;
  int64_t lanes = std::min<int64_t>(matmul.target.getLanes(), plan.half());
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
      Value s3 = arith::SubFOp::create(b, a21, a11);
      Value s4 = arith::SubFOp::create(b, a12, s2);
      const Value sums[kRowSums] = {s1, s3, s2, a22, s4};
      for (auto [number, sum] : llvm::enumerate(sums))
        emitStore(b, sum, rows.sums, {math.constant(number), row, inHalf});
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
    Value isFar =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, high,
                              arith::AddIOp::create(b, low, i32(kMaxDistance)));
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, high,
                                          i32(kMaxExponent));
    Value bad = arith::OrIOp::create(b, isFar, isLarge);
    scf::YieldOp::create(
        b, ValueRange{arith::OrIOp::create(b, loop.getRegionIterArg(0), bad)});
  }
  memref::StoreOp::create(b, loop.getResult(0), rows.bad, tile);
}

/// Whether the columns of a phase are made: weights as such lie together
/// already where a panel has no other piece between them.
Value StrassenEmitter::makesColumns(const StrassenPhase &phase) {
  if (plan.pieces == 1)
    return phase.isSum;
  return arith::ConstantOp::create(b, b.getBoolAttr(true));
}

/// What `body` gives with the columns of a phase, which are made where it asks
/// for them, and kept: weights, or these less others (t1 = b12 - b11 and
/// -t3 = b12 - b22), or less what the phase before has made (t2 = b11 + t3,
/// t4 = b21 - t2).
StrassenEmitter::Accumulators StrassenEmitter::makeColumns(
    const StrassenPhase &phase, const StrassenProducts &at, TypeRange types,
    function_ref<Accumulators(const Operand &columns, bool areSums)> body) {
  Operand weights = getFirstWeights(phase, at), made = getColumns(at);
  Value isLast = ofPhase(phase.number, {0, 0, 0, 1, 0, 0, 0});
  Operand others = getWeights(at, isLast, isLast);
  auto keep = [this, piece = at.piece](Value k, int64_t p, Value value) {
    emitStore(b, value, scratch.columns, {piece, math.constant(p), k, zero});
    return value;
  };
  auto difference = [&](const Operand &subtracted) {
    return body(
        [&](Value k, int64_t p) {
          return keep(
              k, p, arith::SubFOp::create(b, weights(k, p), subtracted(k, p)));
        },
        /*areSums=*/true);
  };
  auto sum = [&] {
    return choose(
        types, phase.isSumOfMade, [&] { return difference(made); },
        [&] { return difference(others); });
  };
  if (plan.pieces == 1)
    return sum();
  return choose(types, phase.isSum, sum, [&] {
    return body([&](Value k, int64_t p) { return keep(k, p, weights(k, p)); },
                /*areSums=*/false);
  });
}
