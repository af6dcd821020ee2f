//===- Checks.cpp - What only the run can decide --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes and values that a model's data decide are checked before they are used.
// What a failed check says begins with the node, which is told by the location:
// nameNode writes it there before the node is lowered.
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"

#include "dialects/ONNX/ONNX.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace sardonyx {

//===----------------------------------------------------------------------===//
// The node's name
//===----------------------------------------------------------------------===//

std::string getNodeName(Operation *op) {
  if (auto name = op->getAttrOfType<StringAttr>("onnx.name"))
    return name.str();
  std::string result;
  op->getLoc()->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    if (!name)
      return WalkResult::advance();
    result = name.getName().str();
    return WalkResult::interrupt();
  });
  return result;
}

/// A name as part of a sentence: text of bounded length, without braces, which
/// stand for values in a check's message.
static std::string quote(StringRef name) {
  constexpr size_t kMax = 80;
  std::string text = name.str();
  if (text.size() > kMax)
    text = (name.take_front(kMax / 2) + "..." + name.take_back(kMax / 2 - 3))
               .str();
  text = llvm::json::fixUTF8(text);
  for (char &c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '{' || c == '}')
      c = '_';
  return "'" + text + "'";
}

void nameNode(Operation *op) {
  StringRef kind = op->getName().stripDialect();
  if (auto custom = dyn_cast<onnx::CustomOp>(op))
    kind = custom.getOpType();
  std::string text;
  auto outputs = op->getAttrOfType<ArrayAttr>("onnx.names");
  if (std::string name = getNodeName(op); !name.empty()) {
    text = "node " + quote(name) + " (" + kind.str() + ")";
  } else {
    text = kind.str();
    if (outputs && !outputs.empty())
      if (auto output = dyn_cast<StringAttr>(outputs[0]))
        text += " (output " + quote(output.getValue()) + ")";
  }
  auto description = StringAttr::get(op->getContext(), text);
  op->setLoc(FusedLoc::get({op->getLoc()}, description, op->getContext()));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void createCheck(OpBuilder &b, Location loc, Value condition,
                 const Twine &message, ArrayRef<OpFoldResult> values,
                 sdx::FailureKind kind) {
  if (getConstantIntValue(condition) == 1)
    return;
  std::string text = sdx::describeOrigin(loc);
  if (!text.empty())
    text += ": ";
  SmallVector<Value> named;
  for (Size value : values.take_front(sdx::CheckOp::kMaxValues))
    named.push_back(asIndex(b, loc, value));
  sdx::CheckOp::create(b, loc, condition, b.getStringAttr(text + message.str()),
                       named, kind);
}

/// The check that `x` and `y` compare so, unless they are the same.
static void checkCompared(OpBuilder &b, Location loc,
                          arith::CmpIPredicate predicate, Size x, Size y,
                          const Twine &message,
                          sdx::FailureKind kind = sdx::FailureKind::Failed) {
  if (isSameSize(x, y))
    return;
  createCheck(b, loc,
              arith::CmpIOp::create(b, loc, predicate, asIndex(b, loc, x),
                                    asIndex(b, loc, y)),
              message, {x, y}, kind);
}

void checkSameSize(OpBuilder &b, Location loc, Size x, Size y,
                   const Twine &message, sdx::FailureKind kind) {
  checkCompared(b, loc, arith::CmpIPredicate::eq, x, y,
                message + ": {0} and {1}", kind);
}

void checkSizeAtMost(OpBuilder &b, Location loc, Size x, Size limit,
                     const Twine &message) {
  checkCompared(b, loc, arith::CmpIPredicate::sle, x, limit,
                message + ": {0}, and {1} is the most");
}

LogicalResult checkRange(OpBuilder &b, Location loc, Size value, int64_t low,
                         int64_t high, const Twine &message) {
  if (std::optional<int64_t> known = getStaticSize(value))
    return success(low <= *known && *known <= high);
  Value v = asIndex(b, loc, value);
  auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, v,
                                 createIndex(b, loc, bound));
  };
  Value good = compare(arith::CmpIPredicate::sge, low);
  if (high != std::numeric_limits<int64_t>::max())
    good = arith::AndIOp::create(b, loc, good,
                                 compare(arith::CmpIPredicate::sle, high));
  createCheck(b, loc, good, message + ": {0}", {value});
  return success();
}

/// A negative axis counts from the end.
static Size wrapAxis(OpBuilder &b, Location loc, Size axis, int64_t rank) {
  if (std::optional<int64_t> known = getStaticSize(axis))
    return asSize(b, *known < 0 ? *known + rank : *known);
  Value value = cast<Value>(axis), zero = createIndex(b, loc, 0);
  Value negative =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, value, zero);
  Value wrapped =
      arith::AddIOp::create(b, loc, value, createIndex(b, loc, rank));
  return arith::SelectOp::create(b, loc, negative, wrapped, value).getResult();
}

LogicalResult checkAxes(OpBuilder &b, Location loc,
                        SmallVectorImpl<OpFoldResult> &axes, int64_t rank) {
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (failed(checkRange(b, loc, axis, -rank, rank - 1,
                          "an axis is out of range")))
      return failure();
    axis = wrapAxis(b, loc, axis, rank);
    for (Size other : ArrayRef(axes).take_front(i)) {
      if (isSameSize(axis, other))
        return failure();
      if (!getStaticSize(axis) || !getStaticSize(other))
        createCheck(b, loc,
                    arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                          asIndex(b, loc, axis),
                                          asIndex(b, loc, other)),
                    "axis {0} occurs twice", {axis});
    }
  }
  return success();
}

LogicalResult checkLength(OpBuilder &b, Location loc, Value list, int64_t count,
                          const Twine &name, sdx::FailureKind kind) {
  auto type = cast<RankedTensorType>(list.getType());
  if (type.getRank() > 1)
    return failure();
  Size length = type.getRank() == 0 ? asSize(b, 1) : getSize(b, loc, list, 0);
  if (std::optional<int64_t> known = getStaticSize(length))
    return success(*known == count);
  checkSameSize(b, loc, length, asSize(b, count),
                "input '" + name + "' has another length than it must have",
                kind);
  return success();
}

//===----------------------------------------------------------------------===//
// Sizes from data
//===----------------------------------------------------------------------===//

/// The product of sizes in f64, where nothing wraps around.
static Value multiplyAsFloats(OpBuilder &b, Location loc,
                              ArrayRef<OpFoldResult> sizes, double start) {
  Type f64 = b.getF64Type();
  SmallVector<Value> factors;
  for (Size size : sizes) {
    if (std::optional<int64_t> known = getStaticSize(size)) {
      start *= static_cast<double>(std::max<int64_t>(*known, 1));
      continue;
    }
    Value integer =
        arith::IndexCastOp::create(b, loc, b.getI64Type(), cast<Value>(size));
    // Zeros count as ones: whatever is made from such a tensor later, say by
    // reducing the empty dimension, must be possible too.
    integer = arith::MaxSIOp::create(
        b, loc, integer, createIntConstant(b, loc, b.getI64Type(), 1));
    factors.push_back(arith::SIToFPOp::create(b, loc, f64, integer));
  }
  Value product = createConstant(b, loc, f64, start);
  for (Value factor : factors)
    product = arith::MulFOp::create(b, loc, product, factor);
  return product;
}

/// "[2, {0}, 3]": sizes as a check's message names them.
static std::string shapeText(ArrayRef<OpFoldResult> sizes, Sizes &values) {
  std::string text = "[";
  for (auto [index, size] : llvm::enumerate(sizes)) {
    text += index ? ", " : "";
    if (std::optional<int64_t> known = getStaticSize(size)) {
      text += std::to_string(*known);
    } else if (values.size() < sdx::CheckOp::kMaxValues) {
      text += "{" + std::to_string(values.size()) + "}";
      values.push_back(size);
    } else {
      text += "?";
    }
  }
  return text + "]";
}

Value fitsMemory(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                 Type elementType) {
  double bytes = llvm::divideCeil(
      elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 64, 8);
  Value product = multiplyAsFloats(b, loc, sizes, bytes);
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, product,
                               createConstant(b, loc, b.getF64Type(), 0x1p62));
}

void checkSizes(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
                Type elementType) {
  Value good, zero;
  llvm::SmallDenseSet<Value, 4> origins;
  for (Size size : sizes) {
    if (getStaticSize(size))
      continue;
    Value value = simplifySize(cast<Value>(size));
    if (getConstantIntValue(value))
      continue;
    if (auto dim = value.getDefiningOp<tensor::DimOp>()) {
      origins.insert(dim.getSource());
      continue;
    }
    origins.insert(value);
    if (!zero)
      zero = createIndex(b, loc, 0);
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, value, zero);
    good = good ? arith::AndIOp::create(b, loc, good, fits).getResult() : fits;
  }
  // Sizes of one tensor are possible together.
  if (!good && origins.size() < 2)
    return;
  Value fits = fitsMemory(b, loc, sizes, elementType);
  good = good ? arith::AndIOp::create(b, loc, good, fits).getResult() : fits;
  Sizes values;
  std::string text = shapeText(sizes, values);
  createCheck(b, loc, good, "a tensor of shape " + text + " is impossible",
              values);
}

} // namespace sardonyx
