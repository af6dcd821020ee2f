//===- Lookup.cpp - Operators that look up a key --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strings are handles, and those of a model are small numbers: a table by
// handle. Numbers are searched for in a sorted table.
//
//===----------------------------------------------------------------------===//

#include "ML/Keys.h"
#include "ML/Tables.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"
#include "dialects/ONNX/ONNX.h"

using namespace mlir;

namespace sardonyx {
namespace {

/// The handles of a tensor of strings.
template <typename OpT>
std::vector<int64_t> handlesOf(Lowering<OpT> &b,
                               DenseStringElementsAttr tensor) {
  std::vector<int64_t> handles;
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    handles.push_back(
        b.handleOf(tensor.getRawStringData()[tensor.isSplat() ? 0 : i]));
  return handles;
}

//===----------------------------------------------------------------------===//
// LabelEncoder
//===----------------------------------------------------------------------===//

/// A constant of the values and, behind them, of the one for other keys.
Value listOfValues(TensorBuilder &b, Type stored, ArrayRef<int64_t> integers,
                   ArrayRef<double> floats) {
  SmallVector<Attribute> elements;
  if (isa<FloatType>(stored))
    for (double value : floats)
      elements.push_back(b.getFloatAttr(stored, value));
  else
    for (int64_t value : integers)
      elements.push_back(b.getIntegerAttr(stored, value));
  auto type = RankedTensorType::get(elements.size(), stored);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, elements));
}

Keys keysOf(Lowering<onnx::MLLabelEncoderOp> &b) {
  Keys keys;
  if (auto strings = b.op.getKeysStrings())
    keys.handles = handlesOf(b, *strings);
  keys.integers = getInts(b.op, "keys_int64s");
  keys.floats = getNumbers(b.op, "keys_floats");
  if (auto tensor = b.op.getKeysTensor()) {
    if (auto strings = dyn_cast<DenseStringElementsAttr>(*tensor))
      keys.handles = handlesOf(b, strings);
    else if (isa<FloatType>(tensor->getElementType()))
      keys.floats = getNumbers(*tensor);
    else
      keys.integers = getIntegers(*tensor);
  }
  return keys;
}

LogicalResult lowerLabelEncoder(Lowering<onnx::MLLabelEncoderOp> &b) {
  Keys keys = keysOf(b);
  Type from = getOnnxElementType(b.op.getX());
  Type to = getOnnxElementType(b.op.getY()), stored = convertElementType(to);
  if (isStringType(from) != !keys.handles.empty() || keys.size() == 0)
    return b.refuseAlways("its keys are not of the input's type");
  std::vector<int64_t> integers;
  std::vector<double> floats;
  auto values = b.op.getValuesTensor();
  auto otherwise = b.op.getDefaultTensor();
  if (isStringType(to)) {
    if (auto strings = b.op.getValuesStrings())
      integers = handlesOf(b, *strings);
    else if (values && isa<DenseStringElementsAttr>(*values))
      integers = handlesOf(b, cast<DenseStringElementsAttr>(*values));
    auto text = otherwise ? dyn_cast<DenseStringElementsAttr>(*otherwise)
                          : DenseStringElementsAttr();
    integers.push_back(text && text.getNumElements() == 1
                           ? handlesOf(b, text).front()
                           : b.handleOf(b.op.getDefaultString()));
  } else if (isa<FloatType>(to)) {
    floats = values ? getNumbers(*values) : getNumbers(b.op, "values_floats");
    std::vector<double> given =
        otherwise ? getNumbers(*otherwise) : std::vector<double>();
    floats.push_back(given.size() == 1
                         ? given[0]
                         : b.op.getDefaultFloat().convertToDouble());
  } else {
    integers =
        values ? getIntegers(*values) : getInts(b.op, "values_int64s").vec();
    std::vector<int64_t> given =
        otherwise ? getIntegers(*otherwise) : std::vector<int64_t>();
    integers.push_back(given.size() == 1 ? given[0] : b.op.getDefaultInt64());
  }
  if (integers.size() + floats.size() != keys.size() + 1)
    return b.refuseAlways("it has another number of values than of keys");
  if (stored.isInteger() && !llvm::all_of(integers, [&](int64_t value) {
        return llvm::isIntN(stored.getIntOrFloatBitWidth(), value);
      }))
    return b.refuseAlways("a value is too large for its type");
  Lookup lookup(b, keys);
  Value table = listOfValues(b, stored, integers, floats);
  Value x = b.in.getX();
  return b.replace(createIndexed(
      b, b.getLoc(), b.dims(x), stored,
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value key = loadScalar(s, loc, s.extract(x, i), from);
        return s.extract(table, lookup.find(s, key, from));
      }));
}

//===----------------------------------------------------------------------===//
// CategoryMapper, OneHotEncoder
//===----------------------------------------------------------------------===//

LogicalResult lowerCategoryMapper(Lowering<onnx::MLCategoryMapperOp> &b) {
  ArrayRef<int64_t> numbers = getInts(b.op, "cats_int64s");
  if (!b.op.getCatsStrings() ||
      b.op.getCatsStrings()->size() != numbers.size() || numbers.empty())
    return b.refuseAlways("it has another number of strings than of integers");
  std::vector<int64_t> handles = handlesOf(b, *b.op.getCatsStrings());
  Type from = getOnnxElementType(b.op.getX());
  bool fromStrings = isStringType(from);
  Keys keys;
  (fromStrings ? keys.handles : keys.integers) =
      fromStrings ? handles : numbers.vec();
  std::vector<int64_t> values = fromStrings ? numbers.vec() : handles;
  values.push_back(fromStrings ? b.op.getDefaultInt64()
                               : b.handleOf(b.op.getDefaultString()));
  Lookup lookup(b, keys);
  Value table = constantIntegers(b, values), x = b.in.getX();
  return b.replace(createIndexed(
      b, b.getLoc(), b.dims(x), b.getI64Type(),
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        return s.extract(table, lookup.find(s, s.extract(x, i), from));
      }));
}

LogicalResult lowerOneHot(Lowering<onnx::MLOneHotEncoderOp> &b) {
  Type from = getOnnxElementType(b.op.getX());
  Keys keys;
  if (isStringType(from) && b.op.getCatsStrings())
    keys.handles = handlesOf(b, *b.op.getCatsStrings());
  else if (!isStringType(from))
    keys.integers = getInts(b.op, "cats_int64s");
  if (keys.size() == 0)
    return b.refuseAlways("it has no categories of the input's type");
  // A number with a fraction is none of the categories.
  if (isa<FloatType>(from)) {
    keys.floats.assign(keys.integers.begin(), keys.integers.end());
    keys.integers.clear();
  }
  Lookup lookup(b, keys);
  Value x = b.in.getX();
  Sizes sizes = b.dims(x);
  Value places = createIndexed(
      b, b.getLoc(), sizes, b.getI64Type(),
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value key = loadScalar(s, loc, s.extract(x, i), from);
        Value place = lookup.find(s, key, from);
        if (!b.op.getZeros())
          createCheck(s, loc,
                      s.compare(arith::CmpIPredicate::ult, place,
                                s.index(static_cast<int64_t>(keys.size()))),
                      "an input is none of the categories");
        return s.convert(place, s.getI64Type());
      });
  sizes.push_back(b.size(static_cast<int64_t>(keys.size())));
  return b.replace(createIndexed(
      b, b.getLoc(), sizes, b.getF32Type(),
      [&](OpBuilder &builder, Location loc, ValueRange i) -> Value {
        TensorBuilder s(loc, builder);
        Value place =
            s.convert(s.extract(places, i.drop_back()), s.getIndexType());
        Value isHere = s.compare(arith::CmpIPredicate::eq, place, i.back());
        return s.select(isHere, s.scalar(s.getF32Type(), 1),
                        s.scalar(s.getF32Type(), 0));
      }));
}

} // namespace

void populateMLLookupPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns) {
  addLowering<onnx::MLLabelEncoderOp, lowerLabelEncoder>(patterns, converter);
  addLowering<onnx::MLCategoryMapperOp, lowerCategoryMapper>(patterns,
                                                             converter);
  addLowering<onnx::MLOneHotEncoderOp, lowerOneHot>(patterns, converter);
}

} // namespace sardonyx
