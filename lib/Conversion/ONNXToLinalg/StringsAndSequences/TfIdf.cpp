//===- TfIdf.cpp - TfIdfVectorizer ----------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The n-grams of one length are a sorted table, in which each place of a row
// looks up what begins there. Rows are counted in parallel.
//
//===----------------------------------------------------------------------===//

#include "Support/Attributes.h"
#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/Lowering.h"
#include "Support/Patterns.h"
#include "Support/RowLoop.h"

#include "dialects/ONNX/ONNX.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace sardonyx {
namespace {

/// Each n-gram of one length and the column in which it is counted.
using Grams = std::map<std::vector<int64_t>, int64_t>;

/// What the attributes say, by the length of n-grams.
struct Pool {
  std::map<int64_t, Grams> byLength;
  int64_t columns = 0;

  static FailureOr<Pool> of(onnx::TfIdfVectorizerOp op,
                            ArrayRef<int64_t> items);
};

FailureOr<Pool> Pool::of(onnx::TfIdfVectorizerOp op, ArrayRef<int64_t> items) {
  ArrayRef<int64_t> starts = op.getNgramCounts(),
                    columns = op.getNgramIndexes();
  Pool pool;
  for (int64_t column : columns) {
    if (column < 0 || column >= (int64_t(1) << 30))
      return failure();
    pool.columns = std::max(pool.columns, column + 1);
  }
  size_t next = 0; // among all n-grams
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t length = i + 1, all = items.size();
    int64_t end = i + 1 < starts.size() ? starts[i + 1] : all;
    if (starts[i] < 0 || end > all)
      return failure();
    bool isWanted =
        length >= op.getMinGramLength() && length <= op.getMaxGramLength();
    for (int64_t at = starts[i]; at + length <= end; at += length, ++next) {
      if (next >= columns.size())
        return failure();
      ArrayRef<int64_t> gram = items.slice(at, length);
      // Of equal ones the last counts.
      if (isWanted)
        pool.byLength[length][{gram.begin(), gram.end()}] = columns[next];
    }
  }
  return pool;
}

Value constantOf(TensorBuilder &b, ArrayRef<int64_t> shape,
                 ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get(shape, b.getI64Type());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, values));
}

/// The n-grams of one length, in order: [count, length], and their columns.
struct Table {
  int64_t count, length;
  Value grams, columns;

  static Table of(TensorBuilder &b, const Grams &grams, int64_t length);
  /// Counts the n-gram whose items `item(k)` gives, if there is such a one.
  Value countOne(TensorBuilder &b, Value counts,
                 function_ref<Value(TensorBuilder &, Value)> item) const;
};

Table Table::of(TensorBuilder &b, const Grams &grams, int64_t length) {
  SmallVector<int64_t> items, columns;
  for (const auto &[gram, column] : grams) {
    items.append(gram.begin(), gram.end());
    columns.push_back(column);
  }
  int64_t count = columns.size();
  return {count, length, constantOf(b, {count, length}, items),
          constantOf(b, count, columns)};
}

Value Table::countOne(TensorBuilder &b, Value counts,
                      function_ref<Value(TensorBuilder &, Value)> item) const {
  using Predicate = arith::CmpIPredicate;
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  // Whether the entry is less than the n-gram, and whether it is equal.
  auto compareTo = [&](TensorBuilder &s, Value entry) {
    return loop(s, zero, s.index(length), {no, yes},
                [&](TensorBuilder &t, Value k, ValueRange state) {
                  Value have = t.extract(grams, {entry, k});
                  Value want = item(t, k);
                  Value less = t.compare(Predicate::slt, have, want);
                  Value same = t.compare(Predicate::eq, have, want);
                  // Only the first difference decides.
                  return Values{t.select(state[1], less, state[0]),
                                t.select(state[1], same, no)};
                });
  };
  // The first entry that is not less: halves [low, high) as often as needed.
  int64_t steps = llvm::Log2_64_Ceil(count + 1);
  Values range =
      loop(b, zero, b.index(steps), {zero, b.index(count)},
           [&](TensorBuilder &s, Value, ValueRange state) {
             Value open = s.compare(Predicate::slt, state[0], state[1]);
             return when(s, open, state, [&](TensorBuilder &t) {
               Value middle = arith::ShRUIOp::create(
                   t, t.add(state[0], state[1]), t.index(1));
               Value less = compareTo(t, middle)[0];
               return Values{t.select(less, t.add(middle, one), state[0]),
                             t.select(less, state[1], middle)};
             });
           });
  Value entry = b.minimum(range[0], b.index(count - 1));
  Value found = compareTo(b, entry)[1];
  return when(b, found, counts,
              [&](TensorBuilder &s) {
                Value column =
                    s.convert(s.extract(columns, entry), s.getIndexType());
                Value more = s.add(s.extract(counts, column),
                                   s.integer(s.getI64Type(), 1));
                return Values{put(s, more, counts, column)};
              })
      .front();
}

/// Counts the n-grams of one length in a row of a matrix.
Value countInRow(TensorBuilder &b, const Table &table, Value matrix, Value row,
                 int64_t skips, Value counts) {
  Value zero = b.index(int64_t(0)), one = b.index(1);
  Value extent = b.index(b.dim(matrix, 1));
  // Items that are as far apart as the row is long don't lie in it; the only
  // item of a 1-gram has no distance.
  Value most = one;
  if (table.length > 1)
    most = b.minimum(b.index(skips), b.sub(extent, one));
  auto countAll = [&](TensorBuilder &s, Value skip, ValueRange state) {
    Value distance = s.add(skip, one);
    Value reach = s.mul(distance, s.index(table.length - 1));
    return loop(s, zero, s.sub(extent, reach), state,
                [&](TensorBuilder &t, Value start, ValueRange state) {
                  auto item = [&](TensorBuilder &u, Value k) {
                    Value at = u.add(start, u.mul(k, distance));
                    return u.convert(u.extract(matrix, {row, at}),
                                     u.getI64Type());
                  };
                  return Values{table.countOne(t, state[0], item)};
                });
  };
  return loop(b, zero, most, counts, countAll).front();
}

/// Counts times weights, as the mode has it.
Value weigh(TensorBuilder &b, Value counts, StringRef mode, Value weights) {
  Type f32 = b.getF32Type();
  Values inputs = {counts};
  SmallVector<AffineMap> maps = {b.identityMap(2)};
  if (weights && mode != "TF") {
    inputs.push_back(weights);
    maps.push_back(b.dimsMap(2, {1}));
  }
  auto body = [&](TensorBuilder &s, ValueRange in) {
    Value count = s.convert(in[0], f32);
    if (mode == "IDF")
      count = s.minimum(count, s.scalar(f32, 1));
    return Values{in.size() > 1 ? s.mul(count, in[1]) : count};
  };
  return b.elementwise(b.dims(counts), inputs, maps, {f32}, body).front();
}

LogicalResult lowerTfIdf(Lowering<onnx::TfIdfVectorizerOp> &b) {
  Value input = b.in.getX();
  Sizes sizes = b.dims(input);
  StringRef mode = b.op.getMode();
  SmallVector<int64_t> items(getInts(b.op, "pool_int64s"));
  // Strings are compared by their handles.
  bool hasStrings = isStringType(getOnnxElementType(b.op.getX()));
  if (hasStrings != b.op.getPoolStrings().has_value())
    return b.refuseAlways("its pool is not of the input's type");
  if (hasStrings)
    for (auto text : b.op.getPoolStrings()->getAsRange<StringAttr>())
      items.push_back(b.handleOf(text.getValue()));
  if (sizes.size() > 2 || !llvm::is_contained({"TF", "IDF", "TFIDF"}, mode))
    return b.refuse("needs a list or a matrix, and a mode that is known");
  FailureOr<Pool> pool = Pool::of(b.op, items);
  if (failed(pool) || pool->columns == 0 || b.op.getMaxSkipCount() < 0)
    return b.refuse("its n-grams do not fit");
  Value weights;
  if (auto given = b.op.getWeights(); given && !given->empty()) {
    // As others have it, weights belong to columns.
    if (int64_t(given->size()) < pool->columns)
      return b.refuse("there are fewer weights than columns");
    auto type = RankedTensorType::get(pool->columns, b.getF32Type());
    weights = arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, given->take_front(pool->columns)));
  }
  bool isMatrix = sizes.size() == 2;
  OpFoldResult rows = isMatrix ? sizes[0] : b.size(1);
  OpFoldResult length = sizes.empty() ? b.size(1) : sizes.back();
  Value matrix = b.reshape(input, {rows, length});
  SmallVector<Table> tables;
  for (const auto &[length, grams] : pool->byLength)
    tables.push_back(Table::of(b, grams, length));
  int64_t skips = std::min<int64_t>(b.op.getMaxSkipCount(), kMaxSize) + 1;
  Value counts = b.zeros({rows, b.size(pool->columns)}, b.getI64Type());
  counts =
      forEachRow(b, counts, [&](TensorBuilder &s, Value row, ValueRange state) {
        Value sum = state.front();
        for (const Table &table : tables)
          sum = countInRow(s, table, matrix, row, skips, sum);
        return Values{sum};
      }).front();
  Value result = weigh(b, counts, mode, weights);
  if (!isMatrix)
    result = b.reshape(result, {b.size(pool->columns)});
  return b.replace(result);
}

} // namespace

void populateTfIdfPatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns) {
  addLowering<onnx::TfIdfVectorizerOp, lowerTfIdf>(patterns, converter);
}

} // namespace sardonyx
