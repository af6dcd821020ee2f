//===- Recompose.cpp - Raise chains of small ops to operators -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompose.h"
#include "sardonyx/Transforms/Passes.h"

#include "dialects/SDX/SDX.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace sardonyx {
#define GEN_PASS_DEF_ONNXRECOMPOSE
#include "sardonyx/Transforms/Passes.h.inc"
} // namespace sardonyx

using namespace mlir;
using namespace sardonyx;

std::optional<double> sardonyx::getScalarFor(Value constant, Value other) {
  DenseElementsAttr value;
  auto type = dyn_cast<RankedTensorType>(constant.getType());
  auto otherType = dyn_cast<RankedTensorType>(other.getType());
  if (!type || !isa<FloatType>(type.getElementType()) ||
      !type.hasStaticShape() || type.getNumElements() != 1 ||
      !matchPattern(constant, m_Constant(&value)))
    return std::nullopt;
  // A constant of higher rank would add dimensions.
  if (type.getRank() != 0 &&
      (!otherType || type.getRank() > otherType.getRank()))
    return std::nullopt;
  APFloat number = value.getSplatValue<APFloat>();
  bool ignored;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &ignored);
  return number.convertToDouble();
}

bool sardonyx::isSameScalar(Type type, double value, double wanted) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  if (!element)
    return false;
  unsigned bits = APFloat::semanticsPrecision(element.getFloatSemantics());
  // Two units in the last place, and no more than f32 has: f64 models are
  // written with constants that were f32 once.
  double tolerance = std::ldexp(2.0, 1 - static_cast<int>(std::min(bits, 24u)));
  return std::abs(value - wanted) <= std::abs(wanted) * tolerance;
}

bool sardonyx::isScalarFor(Value constant, Value other, double wanted) {
  std::optional<double> value = getScalarFor(constant, other);
  return value && isSameScalar(constant.getType(), *value, wanted);
}

Value sardonyx::matchWithScalar(Operation *op, double wanted) {
  if (!op || op->getNumOperands() != 2)
    return {};
  Value a = op->getOperand(0), b = op->getOperand(1);
  if (isScalarFor(b, a, wanted))
    return a;
  return isScalarFor(a, b, wanted) ? b : Value();
}

static void collect(Value value, bool root, unsigned depth, double &scalar,
                    SmallVectorImpl<Value> &factors) {
  Operation *op = value.getDefiningOp();
  bool open = depth > 0 && op && (root || sdx::hasOneReader(value));
  if (auto mul = dyn_cast_or_null<onnx::MulOp>(open ? op : nullptr)) {
    for (auto [factor, other] :
         {std::pair<Value, Value>(mul.getA(), mul.getB()),
          std::pair<Value, Value>(mul.getB(), mul.getA())}) {
      if (auto number = getScalarFor(factor, other))
        scalar *= *number;
      else
        collect(factor, false, depth - 1, scalar, factors);
    }
    return;
  }
  if (auto div = dyn_cast_or_null<onnx::DivOp>(open ? op : nullptr)) {
    auto number = getScalarFor(div.getB(), div.getA());
    if (number && *number != 0) {
      scalar /= *number;
      return collect(div.getA(), false, depth - 1, scalar, factors);
    }
  }
  factors.push_back(value);
}

void sardonyx::collectFactors(Value product, double &scalar,
                              SmallVectorImpl<Value> &factors) {
  collect(product, /*root=*/true, /*depth=*/6, scalar, factors);
}

namespace {
struct OnnxRecomposePass
    : sardonyx::impl::OnnxRecomposeBase<OnnxRecomposePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateRecomposeActivationPatterns(patterns);
    populateRecomposeNormalizationPatterns(patterns);
    populateRecomposeQuantizedPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
