//===- ReductionCombiner.cpp - How reductions combine --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows/ReductionCombiner.h"
#include "Kernel/Vectorize.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using vector::CombiningKind;

namespace sardonyx::cpu {

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

Value ReductionCombiner::reduceLanes(OpBuilder &b, Location loc,
                                     Value vector) const {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  for (; lanes % 2 == 0; lanes /= 2) {
    Value low = extractLanes(b, loc, vector, 0, lanes / 2);
    Value high = extractLanes(b, loc, vector, lanes / 2, lanes / 2);
    vector = combine(b, loc, low, high);
  }
  if (lanes == 1)
    return vector::ExtractOp::create(b, loc, vector, 0);
  return vector::ReductionOp::create(b, loc, kind, vector);
}

} // namespace sardonyx::cpu
