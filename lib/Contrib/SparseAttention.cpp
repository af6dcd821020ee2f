//===- SparseAttention.cpp - Causal attention to some blocks of keys ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {
namespace {

class SparseAttention : GroupedHeads {
public:
  explicit SparseAttention(Body &b)
      : GroupedHeads{b.getInt("num_heads"), b.getInt("kv_num_heads")}, b(b),
        block(b.getInt("sparse_block_size")), type(b.elementType("query")) {
    if (heads < 1 || heads > (1 << 20) || groups < 1 || heads % groups)
      b.refuse("num_heads is no multiple of kv_num_heads");
    if (block < 1 || block > (1 << 20))
      b.refuse("sparse_block_size is " + llvm::Twine(block));
    layouts = b.size("block_row_indices", 0);
    if (b.requireRank("block_row_indices") != 2 || layouts < 1 ||
        heads % layouts)
      b.refuse("num_heads is no multiple of the number of layouts");
    if (b.requireRank("block_col_indices") != 2)
      b.refuse("block_col_indices is no matrix");
  }

  void build() {
    takeGroupedHeads(b, *this);
    takeLengths();
    Name shape = b.concat({b.sizeOf(query, 0), length}, 0);
    rotateGroupedHeads(b, *this, b.op("Expand", {at, shape}));
    query = splitHeads(b, query, heads, heads * size);
    Name freshKey = splitHeads(b, key, groups, groups * size);
    Name freshValue = splitHeads(b, value, groups, groups * size);
    Name caches[] = {
        writeCache(b, b.in("past_key"), freshKey, past),
        writeCache(b, b.in("past_value"), freshValue, past),
    };
    b.give("output",
           mergeHeads(b, attend(b.slice(caches[0], b.ints({0}), total, 2),
                                b.slice(caches[1], b.ints({0}), total, 2))));
    if (b.wants("present_key"))
      b.give("present_key", caches[0]);
    if (b.wants("present_value"))
      b.give("present_value", caches[1]);
  }

private:
  /// A first prompt begins the cache in all batches, whatever its padding.
  void takeLengths() {
    length = b.sizeOf(query, 1);
    total = b.reshape(b.cast(b.in("total_sequence_length"), TensorProto::INT64),
                      {1});
    Name each = b.cast(b.in("key_total_sequence_lengths"), TensorProto::INT64);
    past = b.op("Where", {b.op("Equal", {length, total}), b.integer(0),
                          b.sub(b.reshape(each, {-1}), length)});
    at = positions(b, b.unsqueeze(past, {1}), length);
  }

  /// Which blocks of keys (columns) a block of queries (a row) sees, as
  /// [layouts, rows, rows] floats that are 0 or greater. Row r's columns lie at
  /// the places from block_row_indices[r] on, up to those of r + 1.
  Name blockMask() {
    Name bounds = b.in("block_row_indices"),
         columns = b.in("block_col_indices");
    Name place = b.cast(b.iota(b.sizeOf(columns, 1)), TensorProto::INT32);
    Name starts = b.unsqueeze(b.slice(bounds, 0, -1, 1), {2});
    Name ends = b.unsqueeze(b.slice(bounds, 1, INT64_MAX, 1), {2});
    Name isOfRow = b.op("And", {b.op("GreaterOrEqual", {place, starts}),
                                b.op("Less", {place, ends})});
    rows = b.sub(b.sizeOf(bounds, 1), b.ints({1}));
    Name column = b.cast(b.iota(rows), TensorProto::INT32);
    Name isColumn = b.op("Equal", {b.unsqueeze(columns, {2}), column});
    return b.op("MatMul", {b.cast(isOfRow, TensorProto::FLOAT),
                           b.cast(isColumn, TensorProto::FLOAT)});
  }

  /// Condition [B, 1, layouts, S, T] under which a query sees a key.
  Name seenKeys() {
    Name mask = blockMask(), place = b.iota(total);
    Name last = b.sub(rows, b.integer(1));
    auto blockOf = [&](const Name &position) {
      Name number = b.op("Div", {position, b.integer(block)});
      return b.op("Min", {number, last});
    };
    Name byKey = b.op("Gather", {mask, blockOf(place)}, {{"axis", 2}});
    Name byQuery = b.op("Gather", {byKey, blockOf(at)}, {{"axis", 1}});
    Name seen = b.op("Greater", {b.transpose(byQuery, {1, 0, 2, 3}),
                                 b.scalar(0, TensorProto::FLOAT)});
    Name isBefore = b.op("LessOrEqual", {place, b.unsqueeze(at, {1, 3})});
    return b.unsqueeze(b.op("And", {seen, isBefore}), {1});
  }

  /// Heads that share their keys are rows of one product.
  Name attend(const Name &keys, const Name &values) {
    Heads h;
    // No size is left to be -1, which of an empty tensor may be anything.
    Name rowCount = b.mul(length, b.ints({heads / groups}));
    Name grouped = b.concat({b.ints({0, groups}), rowCount, b.ints({size})}, 0);
    h.query = b.op("Reshape", {query, grouped});
    h.key = keys;
    h.elementType = type;
    h.headSize = size;
    h.scale = b.getFloat("scale");
    Name products = scores(b, h);
    Name batch = b.sizeOf(query, 0);
    // Head n has the layout n % layouts.
    Name byLayout =
        b.concat({batch, b.ints({heads / layouts, layouts}), length, total}, 0);
    Name split = b.op("Reshape", {products, byLayout});
    Name masked = b.op("Where", {seenKeys(), split, lowest(b, type)});
    Name weights = b.op("Softmax", {masked}, {{"axis", -1}});
    Name together = b.concat({batch, b.ints({groups}), rowCount, total}, 0);
    Name sums = b.op("MatMul", {b.op("Reshape", {weights, together}), values});
    return b.op(
        "Reshape",
        {sums, b.concat({batch, b.ints({heads}), length, b.ints({size})}, 0)});
  }

  Body &b;
  int64_t block, layouts;
  int type;
  /// Lists of one: tokens of a batch in this run, and with those before.
  Name length, total;
  /// [B] tokens before these, [B, S] the place of each of these.
  Name past, at;
  /// Number of blocks that a layout has a row for, as a list of one.
  Name rows;
};

} // namespace

void buildSparseAttention(Body &b) { SparseAttention(b).build(); }

} // namespace sardonyx::contrib
