//===- Cast.cpp - Conversions between element types -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StringsAndSequences/Strings.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/ShapeArithmetic.h"
#include "Support/SmallFloats.h"

#include "dialects/ONNX/ONNX.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace sardonyx {

namespace {

/// Cast and CastLike: the result's type says what to convert to.
template <typename OpT> LogicalResult lowerCast(Lowering<OpT> &b) {
  Type from = getOnnxElementType(b.op->getOperand(0));
  Type to = getOnnxElementType(b.op->getResult(0));
  Value input = b.in.getOperands().front();
  if (!convertElementType(from) || !convertElementType(to))
    return b.refuseAlways("a cast from " + debugString(from) + " to " +
                          debugString(to) + " is not supported");
  if (from == to)
    return b.replace(input);
  if (isStringType(from) || isStringType(to)) {
    if (Value result = castStrings(b, input, from, to))
      return b.replace(result);
    return b.refuseAlways("a cast from " + debugString(from) + " to " +
                          debugString(to) + " is not supported");
  }
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    return castScalar(b, loc, args[0], from, to);
  };
  TypedTensor typed{input, from};
  if (isSmallFloat(to)) {
    // The op says how to round: the body makes the stored byte itself.
    bool saturate = b.op.getSaturate();
    StringRef roundMode = b.op.getRoundMode();
    Type byte = b.getI8Type();
    FailureOr<Value> bytes = createElementwise(
        b, b.getLoc(), typed, byte, getConvertedType(b.op->getResult(0)),
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value value = castScalar(b, loc, args[0], from, to);
          return encodeSmallFloat(b, loc, value, to, saturate, roundMode);
        });
    if (failed(bytes))
      return b.refuse("its shapes don't agree");
    return b.replace(*bytes);
  }
  if (Value small = scalariseElementwise(b, b.getLoc(), typed, to, body))
    return b.replace(small);
  FailureOr<Value> result = createElementwise(
      b, b.getLoc(), typed, to, getConvertedType(b.op->getResult(0)), body);
  if (failed(result))
    return b.refuse("its shapes don't agree");
  return b.replace(*result);
}

/// The bits of a stored element in how another type of that width is stored.
Value castBits(TensorBuilder &b, Value stored, Type onnxType) {
  Type type = convertElementType(onnxType);
  if (stored.getType() != type)
    return arith::BitcastOp::create(b, type, stored);
  if (isa<ComplexType>(onnxType))
    return stored;
  unsigned unused = type.getIntOrFloatBitWidth();
  unused -= std::min(unused, onnxType.getIntOrFloatBitWidth());
  if (!unused || isBoolType(onnxType))
    return stored;
  // Above the bits of a narrow type lies its sign, if it has one.
  Value shift = b.integer(type, unused);
  Value high = arith::ShLIOp::create(b, stored, shift);
  if (onnxType.isSignlessInteger())
    return arith::ShRSIOp::create(b, high, shift);
  return arith::ShRUIOp::create(b, high, shift);
}

LogicalResult lowerBitCast(Lowering<onnx::BitCastOp> &b) {
  Type from = getOnnxElementType(b.op.getInput());
  Type to = getOnnxElementType(b.op->getResult(0));
  if (!convertElementType(from) || !convertElementType(to))
    return b.refuseAlways("a cast from " + debugString(from) + " to " +
                          debugString(to) + " is not supported");
  // A bool is a byte here, as it is in ONNX's own arrays.
  auto widthOf = [](Type type) {
    if (isa<ComplexType>(type))
      type = convertElementType(type);
    return isBoolType(type) ? 8 : type.getIntOrFloatBitWidth();
  };
  if (widthOf(from) != widthOf(to))
    return b.refuseAlways("the types differ in width");
  Value input = b.in.getInput();
  if (from == to)
    return b.replace(input);
  auto body = [&](TensorBuilder &s, ValueRange args) -> SmallVector<Value> {
    return {castBits(s, args[0], to)};
  };
  return b.replace(b.map(input, convertElementType(to), body));
}

} // namespace

void populateCastPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns) {
  addLowering<onnx::CastOp, lowerCast<onnx::CastOp>>(patterns, converter);
  addLowering<onnx::CastLikeOp, lowerCast<onnx::CastLikeOp>>(patterns,
                                                             converter);
  addLowering<onnx::BitCastOp, lowerBitCast>(patterns, converter);
}

} // namespace sardonyx
