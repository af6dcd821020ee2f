//===- KeySort.cpp - Sorts of keys by their digits ------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A key of a short list goes to the place that is the number of keys before it,
// which vectors count. A long list is sorted by the bytes of its keys'
// distances from the largest, the lowest first, as many as the farthest has. No
// step of either depends on a comparison that a processor would have to
// foresee.
//
//===----------------------------------------------------------------------===//

#include "Ordering/KeySort.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace sardonyx {

using Predicate = arith::CmpIPredicate;

static constexpr int64_t kDigitBits = 8, kKeyBits = 64;
static constexpr int64_t kDigitValues = int64_t(1) << kDigitBits;

KeyList KeyList::make(TensorBuilder &b, OpFoldResult capacity,
                      int64_t lowestBit, bool hasIndices) {
  KeyList list;
  // Empty tensors of one type are one, which may not be changed as two.
  for (int64_t part = 0; part < (hasIndices ? 2 : 1); ++part)
    list.rooms.push_back(
        b.empty({b.size(2), b.plus(capacity, part)}, b.getI64Type()));
  list.row = b.index(int64_t(0));
  list.lowestBit = lowestBit;
  return list;
}

KeyList KeyList::with(ValueRange tensors) const {
  KeyList list = *this;
  list.rooms.assign(tensors.begin(), tensors.end());
  return list;
}

void KeyList::put(TensorBuilder &b, Value place, ValueRange entry) {
  for (auto [value, room] : llvm::zip_equal(entry, rooms))
    room = sardonyx::put(b, value, room, {row, place});
}

Values KeyList::get(TensorBuilder &b, Value place) const {
  return llvm::map_to_vector(
      rooms, [&](Value room) { return b.extract(room, {row, place}); });
}

void KeyList::sort(TensorBuilder &b, Value count) {
  Values state = rooms;
  state.push_back(row);
  Value many = b.compare(Predicate::sgt, count, b.index(1));
  Value isLong = b.compare(Predicate::sgt, count, b.index(kFew));
  state = when(b, many, state, [&](TensorBuilder &s) {
    auto op = scf::IfOp::create(
        s, isLong,
        [&](OpBuilder &builder, Location loc) {
          TensorBuilder t(loc, builder);
          scf::YieldOp::create(t, sortByDigits(t, count));
        },
        [&](OpBuilder &builder, Location loc) {
          TensorBuilder t(loc, builder);
          scf::YieldOp::create(t, rankAll(t, count));
        });
    return Values(op.getResults());
  });
  row = state.pop_back_val();
  rooms = state;
}

/// Puts each key in the other row, where its rank tells.
Values KeyList::rankAll(TensorBuilder &b, Value count) const {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), other = b.sub(b.index(1), row);
  auto rank = [&](TensorBuilder &s, const KeyList &list, ValueRange entry) {
    return loop(s, zero, count, s.zero(i64),
                [&](TensorBuilder &t, Value i, ValueRange sum) -> Values {
                  Values x = list.get(t, i);
                  Value before = t.compare(Predicate::sgt, x[0], entry[0]);
                  if (x.size() > 1) {
                    Value equal = t.compare(Predicate::eq, x[0], entry[0]);
                    Value less = t.compare(Predicate::slt, x[1], entry[1]);
                    before = arith::OrIOp::create(
                        t, before, arith::AndIOp::create(t, equal, less));
                  }
                  return {t.add(sum.front(),
                                t.convert(before, i64, /*isUnsigned=*/true))};
                })
        .front();
  };
  Values state = loop(
      b, zero, count, rooms, [&](TensorBuilder &s, Value i, ValueRange at) {
        KeyList list = with(at);
        Values entry = list.get(s, i);
        Value place = s.convert(rank(s, list, entry), s.getIndexType());
        list.row = other;
        list.put(s, place, entry);
        return list.rooms;
      });
  state.push_back(other);
  return state;
}

/// What the digits of the first `count` keys are of: their distances from the
/// largest, and how many digits the farthest has.
KeyList::Digits KeyList::findDigits(TensorBuilder &b, Value count) const {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0));
  Value first = get(b, zero).front();
  Values ends =
      loop(b, zero, count, {first, first},
           [&](TensorBuilder &s, Value i, ValueRange ends) -> Values {
             Value key = get(s, i).front();
             return {s.minimum(ends[0], key), s.maximum(ends[1], key)};
           });
  const int64_t ignored = (int64_t(1) << lowestBit) - 1;
  Digits digits;
  digits.largest = arith::OrIOp::create(b, ends[1], b.integer(i64, ignored));
  Value farthest = arith::ShRUIOp::create(b, b.sub(digits.largest, ends[0]),
                                          b.integer(i64, lowestBit));
  Value zeros = math::CountLeadingZerosOp::create(b, farthest);
  Value bits =
      b.convert(b.sub(b.integer(i64, kKeyBits), zeros), b.getIndexType());
  digits.count = arith::CeilDivUIOp::create(b, bits, b.index(kDigitBits));
  return digits;
}

Values KeyList::sortByDigits(TensorBuilder &b, Value count) const {
  Type i64 = b.getI64Type();
  Digits digits = findDigits(b, count);
  Values state = rooms;
  state.append({row, b.empty({b.size(kDigitValues)}, i64)});
  state = loop(
      b, b.index(int64_t(0)), digits.count, state,
      [&](TensorBuilder &s, Value digit, ValueRange state) {
        Value shift =
            s.add(s.mul(s.convert(digit, i64), s.integer(i64, kDigitBits)),
                  s.integer(i64, lowestBit));
        return sortByDigit(s, count, state, [&](TensorBuilder &t, Value key) {
          Value distance = t.sub(digits.largest, key);
          Value low = arith::AndIOp::create(
              t, arith::ShRUIOp::create(t, distance, shift),
              t.integer(i64, kDigitValues - 1));
          return t.convert(low, t.getIndexType());
        });
      });
  state.pop_back();
  return state;
}

/// Puts all in the other row, in the order of a digit. `state` are the rooms,
/// the row, and room for a number for each value of the digit.
Values KeyList::sortByDigit(
    TensorBuilder &b, Value count, ValueRange state,
    function_ref<Value(TensorBuilder &, Value)> getDigit) const {
  Type i64 = b.getI64Type();
  Value zero = b.index(int64_t(0)), one = b.integer(i64, 1);
  Value values = b.index(kDigitValues);
  KeyList source = with(state.drop_back(2)), target = source;
  source.row = state.drop_back().back();
  target.row = b.sub(b.index(1), source.row);
  Values numbers = {state.back()};
  numbers = loop(b, zero, values, numbers,
                 [&](TensorBuilder &s, Value value, ValueRange all) -> Values {
                   return {sardonyx::put(s, s.zero(i64), all[0], value)};
                 });
  numbers = loop(b, zero, count, numbers,
                 [&](TensorBuilder &s, Value i, ValueRange all) -> Values {
                   Value value = getDigit(s, source.get(s, i).front());
                   Value more = s.add(s.extract(all[0], value), one);
                   return {sardonyx::put(s, more, all[0], value)};
                 });
  // Where each value of the digit begins.
  numbers.push_back(b.zero(i64));
  numbers = loop(b, zero, values, numbers,
                 [&](TensorBuilder &s, Value value, ValueRange all) -> Values {
                   Value here = s.extract(all[0], value);
                   return {sardonyx::put(s, all[1], all[0], value),
                           s.add(all[1], here)};
                 });
  Values next = source.rooms;
  next.push_back(numbers.front());
  next = loop(
      b, zero, count, next, [&](TensorBuilder &s, Value i, ValueRange parts) {
        Value begins = parts.back();
        KeyList from = source.with(parts.drop_back());
        KeyList to = target.with(parts.drop_back());
        Values entry = from.get(s, i);
        Value value = getDigit(s, entry.front());
        Value place = s.extract(begins, value);
        to.put(s, s.convert(place, s.getIndexType()), entry);
        Values made = to.rooms;
        made.push_back(sardonyx::put(s, s.add(place, one), begins, value));
        return made;
      });
  Value used = next.pop_back_val();
  next.append({target.row, used});
  return next;
}

} // namespace sardonyx
