//===- ReductionCombiner.cpp - How reductions combine --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/ReductionCombiner.h"
#include "Kernel/Vectorize.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using vector::CombiningKind;

namespace sardonyx::cpu {

/// Fewer lanes are not asked whether one of them is NaN.
static constexpr int64_t kFewestLanes = 4;

bool startsWithNumber(const RowStage &stage, unsigned r) {
  const RowAccess &init = stage.args[stage.numInputs + r];
  FloatAttr constant;
  return init.kind == RowAccess::Scalar &&
         matchPattern(init.value, m_Constant(&constant)) &&
         !constant.getValue().isNaN();
}

TypedAttr ReductionCombiner::getNeutral(OpBuilder &b, Type type) const {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    switch (kind) {
    case CombiningKind::MUL:
      return b.getFloatAttr(type, 1.0);
    case CombiningKind::MAXIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(semantics, true));
    case CombiningKind::MINIMUMF:
      return b.getFloatAttr(type, APFloat::getInf(semantics, false));
    case CombiningKind::MAXNUMF:
    case CombiningKind::MINNUMF:
      return b.getFloatAttr(
          type, ofNumbers
                    ? APFloat::getInf(semantics, kind == CombiningKind::MAXNUMF)
                    : APFloat::getNaN(semantics));
    default:
      return b.getFloatAttr(type, APFloat::getZero(semantics, true));
    }
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  switch (kind) {
  case CombiningKind::MUL:
    return b.getIntegerAttr(type, APInt(bits, 1));
  case CombiningKind::AND:
  case CombiningKind::MINUI:
    return b.getIntegerAttr(type, APInt::getAllOnes(bits));
  case CombiningKind::MAXSI:
    return b.getIntegerAttr(type, APInt::getSignedMinValue(bits));
  case CombiningKind::MINSI:
    return b.getIntegerAttr(type, APInt::getSignedMaxValue(bits));
  default:
    return b.getIntegerAttr(type, APInt::getZero(bits));
  }
}

Value ReductionCombiner::combine(OpBuilder &b, Location loc, Value x,
                                 Value y) const {
  if (ofNumbers &&
      (kind == CombiningKind::MAXNUMF || kind == CombiningKind::MINNUMF))
    return emitBetter(b, loc, kind == CombiningKind::MAXNUMF, y, x);
  return vector::makeArithReduction(b, loc, kind, x, y);
}

/// One half combined with the other, down to one lane or an odd number.
static Value reduceHalves(OpBuilder &b, Location loc, CombiningKind kind,
                          Value vector,
                          llvm::function_ref<Value(Value, Value)> combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (; lanes % 2 == 0; lanes /= 2) {
    Value low = extractLanes(b, loc, vector, 0, lanes / 2);
    Value high = extractLanes(b, loc, vector, lanes / 2, lanes / 2);
    vector = combine(low, high);
  }
  if (lanes == 1)
    return vector::ExtractOp::create(b, loc, vector, 0);
  return vector::ReductionOp::create(b, loc, kind, vector);
}

Value ReductionCombiner::reduceLanes(OpBuilder &b, Location loc,
                                     Value vector) const {
  auto combineHalves = [&](Value low, Value high) {
    return combine(b, loc, low, high);
  };
  auto type = cast<VectorType>(vector.getType());
  const bool isMax = kind == CombiningKind::MAXIMUMF;
  if ((!isMax && kind != CombiningKind::MINIMUMF) ||
      type.getNumElements() < kFewestLanes ||
      !(type.getElementType().isF32() || type.getElementType().isF64()))
    return reduceHalves(b, loc, kind, vector, combineHalves);
  // Without NaN each step is one instruction, and not four.
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, vector, vector);
  Value hasNaN = vector::ReductionOp::create(b, loc, CombiningKind::OR, isNaN);
  auto branch = scf::IfOp::create(b, loc, type.getElementType(), hasNaN,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc,
                       reduceHalves(b, loc, kind, vector, combineHalves));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(
      b, loc, reduceHalves(b, loc, kind, vector, [&](Value low, Value high) {
        return emitBetter(b, loc, isMax, low, high);
      }));
  return branch.getResult(0);
}

} // namespace sardonyx::cpu
