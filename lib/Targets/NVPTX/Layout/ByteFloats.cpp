//===- ByteFloats.cpp - Products of floats of eight bits ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/ByteFloats.h"

#include "Common/ShortOperands.h"
#include "Matmul/MatmulPlan.h"

#include "lib/Dispatch/Utils.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace sardonyx;

/// What `value` of a body is where its argument `code` is a constant; null
/// where that does not follow.
static Attribute evaluate(Value value, Value code, Attribute constant,
                          DenseMap<Value, Attribute> &known) {
  if (value == code)
    return constant;
  Attribute &found = known[value];
  if (found || matchPattern(value, m_Constant(&found)))
    return found;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !isa<arith::ArithDialect>(op->getDialect()))
    return {};
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(evaluate(operand, code, constant, known));
    if (!operands.back())
      return {};
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return {};
  Attribute result = dyn_cast<Attribute>(results.front());
  if (!result)
    result = evaluate(cast<Value>(results.front()), code, constant, known);
  return known[value] = result;
}

/// Whether `value`, of f32, is what the float of `type` stands for whose bits
/// are the argument `code` of a body. Bodies are written in many ways, and
/// there are few such floats.
static bool isDecoded(Value value, Value code, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  Builder b(value.getContext());
  for (unsigned bits = 0; bits < 256; ++bits) {
    APFloat expected(semantics, APInt(8, bits));
    bool loses = false;
    expected.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                     &loses);
    DenseMap<Value, Attribute> known;
    auto number = dyn_cast_or_null<FloatAttr>(evaluate(
        value, code, b.getIntegerAttr(b.getI8Type(), APInt(8, bits)), known));
    if (!number || !number.getType().isF32())
      return false;
    const APFloat actual = number.getValue();
    if (expected.isNaN() ? !actual.isNaN() : !actual.bitwiseIsEqual(expected))
      return false;
  }
  return true;
}

namespace {
/// Floats of eight bits as i8, and the f32 that they are multiplied by: one, or
/// a tensor of which `map` says which element is a position's.
struct Decoded {
  Value codes, scale;
  AffineMap map;
};
} // namespace

/// `tensor` as the numbers of floats of `type` times a scale; nothing if it is
/// something else.
static std::optional<Decoded> findDecoded(Value tensor, FloatType type) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || !isElementwiseGeneric(op) || op->getNumResults() != 1)
    return std::nullopt;
  Block *body = op.getBody();
  Value yielded = body->getTerminator()->getOperand(0);
  OpOperand *bytes = nullptr;
  for (OpOperand *input : op.getDpsInputOperands())
    if (getElementTypeOrSelf(input->get()).isInteger(8) &&
        op.getMatchingIndexingMap(input).isIdentity())
      bytes = input;
  auto scaled = yielded.getDefiningOp<arith::MulFOp>();
  if (!bytes || !scaled || !yielded.getType().isF32())
    return std::nullopt;
  Value code = op.getMatchingBlockArgument(bytes);
  for (auto [number, scale] : {std::pair(scaled.getLhs(), scaled.getRhs()),
                               std::pair(scaled.getRhs(), scaled.getLhs())}) {
    Decoded decoded;
    decoded.codes = bytes->get();
    decoded.scale = scale;
    if (auto argument = dyn_cast<BlockArgument>(scale);
        argument && argument.getOwner() == body) {
      if (argument.getArgNumber() >= op.getNumDpsInputs() || scale == code)
        continue;
      OpOperand *input = op.getDpsInputOperand(argument.getArgNumber());
      decoded.scale = input->get();
      decoded.map = op.getMatchingIndexingMap(input);
      // The same for all that are added up.
      if (decoded.map.isFunctionOfDim(decoded.map.getNumDims() - 1))
        continue;
    } else if (scale.getParentBlock() == body) {
      continue;
    }
    if (isDecoded(number, code, type))
      return decoded;
  }
  return std::nullopt;
}

/// `tensor`, as findDecoded tells, or in another shape, if the scale is one.
/// The codes are in the shape of `tensor` then.
static std::optional<Decoded> findInAnyShape(OpBuilder &b, Value tensor,
                                             FloatType type) {
  Operation *op = tensor.getDefiningOp();
  if (!isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                       tensor::CastOp>(op))
    return findDecoded(tensor, type);
  std::optional<Decoded> decoded = findInAnyShape(b, op->getOperand(0), type);
  if (!decoded || (decoded->map && decoded->map.getNumResults() != 0))
    return std::nullopt;
  IRMapping mapping;
  mapping.map(op->getOperand(0), decoded->codes);
  Operation *moved = b.clone(*op, mapping);
  auto shape = cast<RankedTensorType>(tensor.getType());
  moved->getResult(0).setType(shape.clone(b.getI8Type()));
  decoded->codes = moved->getResult(0);
  if (decoded->map)
    decoded->map = AffineMap::get(shape.getRank(), 0, {}, b.getContext());
  return decoded;
}

bool nv::multiplyByteFloats(sdx::DequantMatmulOp op) {
  if (!op.getElement() || !getElementTypeOrSelf(op.getLhs()).isF32() ||
      !isZeroFilled(op.getInit()) ||
      !canMultiplyByteFloats(op, getTargetOrDefault(op)))
    return false;
  OpBuilder b(op);
  std::optional<Decoded> decoded =
      findInAnyShape(b, op.getLhs(), cast<FloatType>(*op.getElement()));
  if (!decoded)
    return false;
  Location loc = op.getLoc();
  op.getLhsMutable().assign(decoded->codes);
  b.setInsertionPointAfter(op);
  Value product = op.getResult();
  auto uses = llvm::to_vector(llvm::make_pointer_range(product.getUses()));
  auto type = cast<RankedTensorType>(product.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<Value> inputs = {product};
  SmallVector<AffineMap> maps = {identity};
  if (decoded->map) {
    inputs.push_back(decoded->scale);
    maps.push_back(decoded->map);
  }
  maps.push_back(identity);
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, product), type.getElementType());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto scaled = linalg::GenericOp::create(
      b, loc, type, inputs, empty, maps, loops,
      [&](OpBuilder &inner, Location at, ValueRange args) {
        Value scale = decoded->map ? args[1] : decoded->scale;
        linalg::YieldOp::create(
            inner, at,
            arith::MulFOp::create(inner, at, args[0], scale).getResult());
      });
  for (OpOperand *use : uses)
    use->set(scaled.getResult(0));
  return true;
}
