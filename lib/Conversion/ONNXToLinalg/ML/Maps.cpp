//===- Maps.cpp - Operators of ai.onnx.ml on maps -------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A map is a list of its keys, in ascending order, and its values
// (runtime/ListTable.h).
//
//===----------------------------------------------------------------------===//

#include "ML/Keys.h"
#include "ML/Tables.h"
#include "StringsAndSequences/Sequences.h"
#include "StringsAndSequences/Strings.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"
#include "Support/RuntimeCalls.h"
#include "dialects/ONNX/ONNX.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace sardonyx {
namespace {

//===----------------------------------------------------------------------===//
// Maps as tensors
//===----------------------------------------------------------------------===//

onnx::MapType mapTypeOf(Value original) {
  return cast<onnx::MapType>(original.getType());
}

/// The original element type of the values of a map.
Type valueTypeOf(Value original) {
  return cast<TensorType>(mapTypeOf(original).getValueType()).getElementType();
}

Value keysOf(TensorBuilder &b, Value map) {
  auto type = RankedTensorType::get(ShapedType::kDynamic, b.getI64Type());
  return getListItem(b, map, b.zeros({}, b.getI64Type()), type);
}

Value valuesOf(TensorBuilder &b, Value map, Type onnxType) {
  auto type =
      RankedTensorType::get(ShapedType::kDynamic, convertElementType(onnxType));
  return getListItem(b, map, b.filled({}, asNumber(b, 1)), type);
}

/// `row`, a matrix with one row, with the values of a map put where `placeOf`
/// says, given a key; a place of `width` or more leaves one out.
Value scatter(TensorBuilder &b, Value keys, Value values, Value row,
              int64_t width,
              function_ref<Value(TensorBuilder &, Value key)> placeOf) {
  Value zero = b.index(int64_t(0)), last = b.index(width - 1);
  Value count = b.index(b.dim(keys, 0));
  auto write = [&](TensorBuilder &s, Value i, ValueRange state) -> Values {
    Value place = placeOf(s, s.extract(keys, i));
    Value at = arith::MinUIOp::create(s, place, last);
    Value isIn = s.compare(arith::CmpIPredicate::ule, place, last);
    Value old = s.extract(state[0], at);
    Value next = s.select(isIn, s.extract(values, i), old);
    return {put(s, next, state[0], at)};
  };
  return forEachRow(b, row,
                    [&](TensorBuilder &s, Value, ValueRange rows) {
                      return loop(s, zero, count, rows, write);
                    })
      .front();
}

/// Whether a list of keys has one twice.
bool repeats(ArrayRef<int64_t> keys) {
  llvm::DenseSet<int64_t> seen(keys.begin(), keys.end());
  return seen.size() != keys.size();
}

//===----------------------------------------------------------------------===//
// ZipMap
//===----------------------------------------------------------------------===//

struct Label {
  StringRef text;
  int64_t number; ///< Itself, or the handle of the text.
  int64_t column;
};

SmallVector<Label> labelsOf(Lowering<onnx::MLZipMapOp> &b) {
  SmallVector<Label> labels;
  auto add = [&](StringRef text, int64_t number) {
    labels.push_back({text, number, static_cast<int64_t>(labels.size())});
  };
  if (auto strings = b.op.getClasslabelsStrings())
    for (auto text : strings->getAsRange<StringAttr>())
      add(text.getValue(), b.handleOf(text.getValue()));
  else
    for (int64_t number : getInts(b.op, "classlabels_int64s"))
      add("", number);
  llvm::sort(labels, [](const Label &x, const Label &y) {
    return x.text != y.text ? x.text < y.text : x.number < y.number;
  });
  return labels;
}

LogicalResult lowerZipMap(Lowering<onnx::MLZipMapOp> &b) {
  bool hasStrings = b.op.getClasslabelsStrings().has_value();
  if (hasStrings && !getInts(b.op, "classlabels_int64s").empty())
    return b.refuseAlways(
        "it has labels that are strings and such that are numbers");
  SmallVector<int64_t> keys, columns;
  for (const Label &label : labelsOf(b)) {
    keys.push_back(label.number);
    columns.push_back(label.column);
  }
  if (keys.empty() || repeats(keys))
    return b.refuseAlways("it has no class labels, or one twice");
  Value x = b.in.getX();
  if (b.rank(x) == 1)
    x = b.reshape(x, {b.size(1), b.dim(x, 0)});
  if (b.rank(x) != 2)
    return b.refuse("the input must be a row or a matrix");
  auto width = b.size(static_cast<int64_t>(keys.size()));
  StringRef other = "there are not as many class labels as columns";
  if (!b.sameSize(b.dim(x, 1), width, other))
    return b.refuse(other);
  return b.replace(
      callRuntime(b, "sdx_rt_map_zip",
                  {x, constantIntegers(b, keys), constantIntegers(b, columns)},
                  ArrayRef<OpFoldResult>(), b.getI64Type()));
}

//===----------------------------------------------------------------------===//
// DictVectorizer
//===----------------------------------------------------------------------===//

/// Keys that the vocabulary lacks are left out, as scikit-learn does.
LogicalResult lowerVectorizer(Lowering<onnx::MLDictVectorizerOp> &b) {
  Type keyType = mapTypeOf(b.op.getX()).getKeyType();
  Keys keys;
  if (!isStringType(keyType))
    keys.integers = getInts(b.op, "int64_vocabulary");
  else if (auto strings = b.op.getStringVocabulary())
    keys.handles = handlesOf(b, *strings);
  if (keys.size() == 0)
    return b.refuseAlways("it has no vocabulary of the type of the map's keys");
  if (repeats(keys.handles) || repeats(keys.integers))
    return b.refuseAlways("its vocabulary has a key twice");
  Type type = valueTypeOf(b.op.getX());
  Lookup lookup(b, keys);
  int64_t width = keys.size();
  Value row = b.zeros({b.size(1), b.size(width)}, convertElementType(type));
  return b.replace(scatter(b, keysOf(b, b.in.getX()),
                           valuesOf(b, b.in.getX(), type), row, width,
                           [&](TensorBuilder &s, Value key) {
                             return lookup.find(s, key, keyType);
                           }));
}

//===----------------------------------------------------------------------===//
// CastMap
//===----------------------------------------------------------------------===//

/// The values of a map of floats or strings as `to`. Numbers as strings have
/// six digits behind the point, as onnxruntime writes them.
Value castValues(TensorBuilder &b, Value values, Type from, Type to) {
  if (from == to)
    return values;
  if (isStringType(from))
    return castStrings(b, values, from, to);
  if (isStringType(to))
    return callRuntime(b, "sdx_rt_string_of_fixed", values, b.dims(values),
                       b.getI64Type());
  return b.map(values, to, [&](TensorBuilder &s, ValueRange args) {
    return SmallVector<Value>{castScalar(s, s.getLoc(), args[0], from, to)};
  });
}

LogicalResult lowerCast(Lowering<onnx::MLCastMapOp> &b) {
  StringRef target = b.op.getCastTo(), form = b.op.getMapForm();
  Type to = getOnnxElementType(b.op.getY()), from = valueTypeOf(b.op.getX());
  bool fits = target == "TO_FLOAT"    ? to.isF32()
              : target == "TO_STRING" ? isStringType(to)
              : target == "TO_INT64"  ? to.isSignlessInteger(64)
                                      : false;
  if (!fits)
    return b.refuseAlways("'cast_to' is '" + target +
                          "', which is no type or another than the result's");
  Value map = b.in.getX();
  Value values = castValues(b, valuesOf(b, map, from), from, to);
  if (form == "DENSE")
    return b.replace(b.reshape(values, {b.size(1), b.dim(values, 0)}));
  int64_t width = b.op.getMaxMap();
  Type stored = convertElementType(to);
  constexpr int64_t kMaxColumns = int64_t(1) << 31;
  if (width < 1 || width > kMaxColumns)
    return b.refuseAlways("'max_map' is no length of a row");
  // What onnxruntime puts where there is no string.
  Value none = isStringType(to) ? b.literal("0.f") : b.zero(stored);
  Value row = b.filled({b.size(1), b.size(width)}, none);
  return b.replace(scatter(
      b, keysOf(b, map), values, row, width, [&](TensorBuilder &s, Value key) {
        createCheck(s, s.getLoc(),
                    s.compare(arith::CmpIPredicate::ult, key,
                              s.integer(s.getI64Type(), width)),
                    "key {0} is none from 0 to {1}",
                    {OpFoldResult(s.convert(key, s.getIndexType())),
                     s.size(width - 1)});
        return s.convert(key, s.getIndexType());
      }));
}

} // namespace

void populateMLMapPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns) {
  addLowering<onnx::MLZipMapOp, lowerZipMap>(patterns, converter);
  addLowering<onnx::MLDictVectorizerOp, lowerVectorizer>(patterns, converter);
  addLowering<onnx::MLCastMapOp, lowerCast>(patterns, converter);
}

} // namespace sardonyx
