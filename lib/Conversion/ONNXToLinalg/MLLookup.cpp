//===- MLLookup.cpp - Operators that look up a key ------------------------===//
//
// Strings are handles, and those of a model are small numbers: a table by
// handle. Numbers are searched for in a sorted table.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "DataMovement.h"
#include "MLOperators.h"
#include "MLTables.h"
#include "dialects/ONNX/ONNX.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace sardonyx {
namespace {

/// A table of keys: strings' handles, integers or floats, whichever is given.
struct Keys {
  std::vector<int64_t> handles, integers;
  std::vector<double> floats;

  size_t size() const {
    return handles.size() + integers.size() + floats.size();
  }
};

/// Finds the place of a scalar among the keys, of equal ones the last.
class Lookup {
public:
  Lookup(TensorBuilder &b, const Keys &keys) : count(keys.size()) {
    if (!keys.handles.empty())
      byHandle(b, keys.handles);
    else if (!keys.integers.empty())
      bySize<int64_t>(b, keys.integers);
    else
      bySize<double>(b, keys.floats);
  }

  /// The place of `x`, a loaded scalar, as an index; the number of keys where
  /// there is no such key.
  Value find(TensorBuilder &b, Value x, Type onnxType) const;

private:
  void byHandle(TensorBuilder &b, ArrayRef<int64_t> handles) {
    SmallVector<int64_t> table(*llvm::max_element(handles) + 1, count);
    for (auto [i, handle] : llvm::enumerate(handles))
      table[handle] = i;
    size = table.size();
    placeTable = constantIntegers(b, table);
  }
  template <typename T> void bySize(TensorBuilder &b, ArrayRef<T> keys) {
    std::map<T, int64_t> placeOf;
    for (auto [i, key] : llvm::enumerate(keys))
      if (key != key)
        placeOfNaN = i;
      else
        placeOf[key] = i;
    SmallVector<T> numbers;
    SmallVector<int64_t> places;
    for (auto [key, place] : placeOf) {
      numbers.push_back(key);
      places.push_back(place);
    }
    if (numbers.empty()) { // nothing but NaN, which nothing is equal to
      numbers.push_back(keys.front());
      places.push_back(count);
    }
    Type type =
        std::is_same_v<T, double> ? Type(b.getF64Type()) : b.getI64Type();
    size = numbers.size();
    sorted = arith::ConstantOp::create(
        b, DenseElementsAttr::get(RankedTensorType::get(size, type),
                                  ArrayRef<T>(numbers)));
    placeTable = constantIntegers(b, places);
  }

  Value load(TensorBuilder &b, Value i) const {
    return b.convert(b.extract(placeTable, i), b.getIndexType());
  }

  /// By handle without `sorted`; else the place of each of its elements.
  Value sorted, placeTable;
  int64_t size = 0, count;
  std::optional<int64_t> placeOfNaN;
};

Value Lookup::find(TensorBuilder &b, Value x, Type onnxType) const {
  using Predicate = arith::CmpIPredicate;
  Value last = b.index(size - 1), none = b.index(count);
  if (!sorted) {
    Value handle = b.convert(x, b.getIndexType());
    Value isIn = b.compare(Predicate::ule, handle, last);
    Value at = arith::MinUIOp::create(b, handle, last);
    return b.select(isIn, load(b, at), none);
  }
  Type type = elementTypeOf(sorted);
  bool isFloat = isa<FloatType>(type);
  x = castScalar(b, b.getLoc(), x, onnxType, type);
  auto is = [&](Value key, bool equal) -> Value {
    if (isFloat)
      return arith::CmpFOp::create(
          b, equal ? arith::CmpFPredicate::OEQ : arith::CmpFPredicate::OLT, key,
          x);
    return b.compare(equal ? Predicate::eq : Predicate::slt, key, x);
  };
  // How many keys are less: one bit of the answer a step.
  Value less = b.index(int64_t(0));
  for (int64_t step = llvm::PowerOf2Ceil(size + 1) / 2; step > 0; step /= 2) {
    Value next = b.add(less, b.index(step));
    Value fits = b.compare(Predicate::ule, next, b.index(size));
    Value at = b.minimum(b.sub(next, b.index(1)), last);
    Value goes =
        arith::AndIOp::create(b, fits, is(b.extract(sorted, at), false));
    less = b.select(goes, next, less);
  }
  Value at = b.minimum(less, last);
  Value place = b.select(is(b.extract(sorted, at), true), load(b, at), none);
  if (!placeOfNaN)
    return place;
  Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x);
  return b.select(isNaN, b.index(*placeOfNaN), place);
}

template <typename OpT>
std::vector<int64_t> handlesOf(Lowering<OpT> &b, ArrayAttr strings) {
  std::vector<int64_t> handles;
  for (auto text : strings.getAsRange<StringAttr>())
    handles.push_back(b.handleOf(text.getValue()));
  return handles;
}

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
    return b.refuse("its keys are not of the input's type");
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
    return b.refuse("it has another number of values than of keys");
  if (stored.isInteger() && !llvm::all_of(integers, [&](int64_t value) {
        return llvm::isIntN(stored.getIntOrFloatBitWidth(), value);
      }))
    return b.refuse("a value is too large for its type");
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
    return b.refuse("it has another number of strings than of integers");
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
    return b.refuse("it has no categories of the input's type");
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
