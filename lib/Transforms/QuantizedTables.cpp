//===- QuantizedTables.cpp - Functions of one byte ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever lies between the bytes of one tensor and a QuantizeLinear to bytes,
// element by element, is a function of 256 values. The operations are put on
// a constant of all bytes, and become a table that is made once, when a model
// is loaded, by the very code that would have been run: the table holds what
// they compute, and elements are picked from it.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace sardonyx;

/// Elements of a table, and of a tensor for which a table is no gain.
static constexpr int64_t kTableSize = 256;

namespace {

/// Finds the one tensor of bytes that a value is computed from.
class ByteFunction {
public:
  /// The tensor; null if there is none.
  static Value findSource(onnx::QuantizeLinearOp op);
  /// `value` of `shape` instead, from what `map` has in the place of the
  /// source.
  static Value rebuild(OpBuilder &b, Value value, IRMapping &map,
                       ArrayRef<int64_t> shape);

private:
  /// What a value is computed from: constants only, or also `source`.
  struct Origin {
    Value source;
    /// Whether there is a function of many instructions on the way.
    bool isLong = false;
  };

  std::optional<Origin> find(Value value, unsigned depth);
  std::optional<Origin> findThrough(Operation *op, unsigned depth);

  /// Bounds the work of a match.
  static constexpr unsigned kMaxDepth = 64;
  DenseMap<Value, std::optional<Origin>> memo;
};

} // namespace

static RankedTensorType getBytesType(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isInteger(8) ? type : RankedTensorType();
}

/// The place of an element in a table, as Gather counts it: a byte, or a
/// negative number, which counts from the end.
static Value getTablePlaces(onnx::GatherOp op) {
  auto table = dyn_cast<RankedTensorType>(op.getData().getType());
  auto cast = op.getIndices().getDefiningOp<onnx::CastOp>();
  if (!table || table.getShape() != ArrayRef(kTableSize) || !cast ||
      !getBytesType(cast.getInput()))
    return {};
  return cast.getInput();
}

/// Whether each element of the result is made of those at its place, with
/// parameters that are the same for all.
static bool isElementwise(Operation *op) {
  if (auto quantize = dyn_cast<onnx::QuantizeLinearOp>(op)) {
    auto given = Quantization::get(quantize);
    return given && !given->axis;
  }
  if (auto dequantize = dyn_cast<onnx::DequantizeLinearOp>(op)) {
    auto given = Quantization::get(dequantize);
    return given && !given->axis;
  }
  return op->hasTrait<onnx::Elementwise>() && isPure(op) &&
         op->getNumResults() == 1;
}

/// Whether an elementwise operation takes a few instructions.
static bool isShort(Operation *op) {
  return op->hasTrait<onnx::Arithmetic>() ||
         isa<onnx::CastOp, onnx::DequantizeLinearOp, onnx::HardSigmoidOp,
             onnx::LeakyReluOp, onnx::PReluOp, onnx::QuantizeLinearOp,
             onnx::ReluOp>(op);
}

std::optional<ByteFunction::Origin> ByteFunction::findThrough(Operation *op,
                                                              unsigned depth) {
  Value result = op->getResult(0);
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type || !type.getElementType().isIntOrFloat())
    return std::nullopt;
  if (auto gather = dyn_cast<onnx::GatherOp>(op))
    if (Value places = getTablePlaces(gather)) {
      std::optional<Origin> from = find(places, depth);
      if (from)
        from->isLong = true;
      return from;
    }
  if (!isElementwise(op))
    return std::nullopt;
  Origin origin;
  origin.isLong = !isShort(op);
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType()))
      continue; // left out
    auto from = find(operand, depth);
    if (!from ||
        (origin.source && from->source && origin.source != from->source))
      return std::nullopt;
    if (from->source)
      origin.source = from->source;
    origin.isLong |= from->isLong;
  }
  // Nothing is broadcast against the bytes.
  if (origin.source &&
      type.getShape() != getBytesType(origin.source).getShape())
    return std::nullopt;
  return origin;
}

std::optional<ByteFunction::Origin> ByteFunction::find(Value value,
                                                       unsigned depth) {
  auto known = memo.find(value);
  if (known != memo.end())
    return known->second;
  std::optional<Origin> result;
  Operation *op = value.getDefiningOp();
  if (op && op->hasTrait<OpTrait::ConstantLike>()) {
    if (hasOneElement(value))
      result = Origin();
  } else {
    if (op && depth < kMaxDepth && op->getNumResults() == 1)
      result = findThrough(op, depth + 1);
    if (!result && getBytesType(value))
      result = Origin{value};
  }
  memo[value] = result;
  return result;
}

Value ByteFunction::findSource(onnx::QuantizeLinearOp op) {
  if (!getBytesType(op.getY()))
    return {};
  ByteFunction function;
  auto origin = function.findThrough(op, 0);
  if (!origin || !origin->source)
    return {};
  RankedTensorType type = getBytesType(origin->source);
  bool isSmall = type.hasStaticShape() && type.getNumElements() <= kTableSize;
  if (isSmall || type.getRank() == 0)
    return {};
  // What is quantised to be dequantised again is computed in one kernel, with
  // the convolution before it: a few more instructions there cost less than
  // bytes that are written and read.
  bool isInRegisters = origin->source.getDefiningOp<onnx::QuantizeLinearOp>();
  return isInRegisters && !origin->isLong ? Value() : origin->source;
}

Value ByteFunction::rebuild(OpBuilder &b, Value value, IRMapping &map,
                            ArrayRef<int64_t> shape) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return value;
  bool isOfBytes = false;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    // The first operand of a Gather is a table, a constant of its own.
    if (!isa<onnx::GatherOp>(op) || i > 0)
      isOfBytes |= rebuild(b, operand, map, shape) != operand;
  if (!isOfBytes) {
    map.map(value, value);
    return value;
  }
  Value result = b.clone(*op, map)->getResult(0);
  result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  return result;
}

bool sardonyx::isTableOfBytes(onnx::QuantizeLinearOp op) {
  return ByteFunction::findSource(op) != nullptr;
}

namespace {

struct LookUpBytes : OpRewritePattern<onnx::QuantizeLinearOp> {
  explicit LookUpBytes(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(onnx::QuantizeLinearOp op,
                                PatternRewriter &b) const override {
    Value source = ByteFunction::findSource(op);
    // In a loop nothing is hoisted out of it.
    if (!source || !op->getParentOp()->hasTrait<OpTrait::IsIsolatedFromAbove>())
      return b.notifyMatchFailure(op, "no function of one byte");
    Location loc = op.getLoc();
    RankedTensorType type = getBytesType(source);
    Value bytes = createAllBytes(b, loc, type);
    IRMapping map;
    map.map(source, bytes);
    Value table = ByteFunction::rebuild(
        b, op.getY(), map, cast<RankedTensorType>(bytes.getType()).getShape());
    auto tableType =
        RankedTensorType::get({kTableSize}, getElementTypeOrSelf(table));
    if (table.getType() != tableType) {
      Value shape = onnx::createConstant(
          b, loc,
          DenseElementsAttr::get(RankedTensorType::get({1}, b.getI64Type()),
                                 kTableSize));
      table = onnx::ReshapeOp::create(b, loc, tableType, table, shape,
                                      /*allowzero=*/0);
    }
    constexpr int64_t kOnnxInt32 = 6;
    Value places = onnx::CastOp::create(b, loc, type.clone(b.getI32Type()),
                                        source, /*round_mode=*/"up",
                                        /*saturate=*/1, kOnnxInt32);
    b.replaceOpWithNewOp<onnx::GatherOp>(op, op.getType(), table, places,
                                         /*axis=*/0);
    return success();
  }

private:
  /// Each byte at the place that Gather finds it by, in a shape that
  /// broadcasts as `type` does.
  static Value createAllBytes(OpBuilder &b, Location loc,
                              RankedTensorType type) {
    SmallVector<int64_t> shape(type.getRank(), 1);
    shape.back() = kTableSize;
    SmallVector<APInt> values;
    for (int64_t i = 0; i < kTableSize; ++i)
      values.emplace_back(8, i);
    return onnx::createConstant(
        b, loc, DenseElementsAttr::get(type.clone(shape), values));
  }
};

} // namespace

void sardonyx::populateQuantizedTablePatterns(RewritePatternSet &patterns) {
  patterns.add<LookUpBytes>(patterns.getContext());
}
