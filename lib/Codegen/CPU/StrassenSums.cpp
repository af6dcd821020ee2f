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
      SmallVector<Value> sums{s1, s2, s3, s4, a22};
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
    Value isFar = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ugt, high,
        arith::AddIOp::create(b, low, i32(kMostDistance)));
    Value isLarge = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, high,
                                          i32(kMostExponent));
    Value bad = arith::OrIOp::create(b, isFar, isLarge);
    scf::YieldOp::create(
        b, ValueRange{arith::OrIOp::create(b, loop.getRegionIterArg(0), bad)});
  }
  memref::StoreOp::create(b, loop.getResult(0), rows.bad, tile);
}

/// Whether the first tile makes the columns of a phase: weights as such lie
/// together already where a panel has no other piece between them.
bool StrassenEmitter::makesColumns(ColumnSum sum) {
  bool isSum =
      sum != ColumnSum::B11 && sum != ColumnSum::B21 && sum != ColumnSum::B22;
  return isSum || plan.pieces > 1;
}

/// The columns of a phase, which are made where they are asked for, and kept.
StrassenEmitter::Operand
StrassenEmitter::makeColumns(const StrassenProducts &at, ColumnSum sum) {
  Operand made = getColumns(at);
  Operand b11 = getWeights(at, /*isRight=*/false, /*isLater=*/false);
  Operand b12 = getWeights(at, /*isRight=*/true, /*isLater=*/false);
  Operand b21 = getWeights(at, /*isRight=*/false, /*isLater=*/true);
  Operand b22 = getWeights(at, /*isRight=*/true, /*isLater=*/true);
  auto get = [=](Value k, int64_t p) -> Value {
    switch (sum) {
    case ColumnSum::B11:
      return b11(k, p);
    case ColumnSum::B21:
      return b21(k, p);
    case ColumnSum::B22:
      return b22(k, p);
    case ColumnSum::T1:
      return arith::SubFOp::create(b, b12(k, p), b11(k, p));
    case ColumnSum::T3:
      return arith::SubFOp::create(b, b22(k, p), b12(k, p));
    case ColumnSum::T2: // t3 + b11
      return arith::AddFOp::create(b, made(k, p), b11(k, p));
    case ColumnSum::T4: // b21 - t2
      return arith::SubFOp::create(b, b21(k, p), made(k, p));
    }
    llvm_unreachable("an unknown sum of columns");
  };
  Value piece = at.piece;
  return [=](Value k, int64_t p) -> Value {
    Value value = get(k, p);
    if (makesColumns(sum))
      emitStore(b, value, scratch.columns, {piece, math.constant(p), k, zero});
    return value;
  };
}
