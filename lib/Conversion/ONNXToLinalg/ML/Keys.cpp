//===- Keys.cpp - Finding the place of a key ------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ML/Keys.h"
#include "ML/Tables.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace sardonyx {

void Lookup::byHandle(TensorBuilder &b, ArrayRef<int64_t> handles) {
  SmallVector<int64_t> table(*llvm::max_element(handles) + 1, count);
  for (auto [i, handle] : llvm::enumerate(handles))
    table[handle] = i;
  size = table.size();
  placeTable = constantIntegers(b, table);
}

template <typename T> void Lookup::bySize(TensorBuilder &b, ArrayRef<T> keys) {
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
  Type type = std::is_same_v<T, double> ? Type(b.getF64Type()) : b.getI64Type();
  size = numbers.size();
  sorted = arith::ConstantOp::create(
      b, DenseElementsAttr::get(RankedTensorType::get(size, type),
                                ArrayRef<T>(numbers)));
  placeTable = constantIntegers(b, places);
}

Lookup::Lookup(TensorBuilder &b, const Keys &keys) : count(keys.size()) {
  if (!keys.handles.empty())
    byHandle(b, keys.handles);
  else if (!keys.integers.empty())
    bySize<int64_t>(b, keys.integers);
  else
    bySize<double>(b, keys.floats);
}

Value Lookup::load(TensorBuilder &b, Value i) const {
  return b.convert(b.extract(placeTable, i), b.getIndexType());
}

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

} // namespace sardonyx
