//===- Embeddings.cpp - Look-ups of tables, rotations by position ---------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"
#include "lib/Contrib/Quantized.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// The places of the tokens where nothing else is said: [S].
static Name ownPositions(Body &b) {
  return b.iota(b.sizeOf(b.in("input_ids"), 1));
}

/// The normalized sum [B, S, width] of rows of the tables of words, positions
/// and, unless these are left out, segments; behind it the sum.
static Names normalizeSum(Body &b, const Name &words, const Name &places,
                          const Name &segments, const Name &gamma,
                          const Name &beta) {
  Name sum = b.addIfThere(b.add(words, places), segments);
  return {b.op("LayerNormalization", {sum, gamma, beta},
               {{"axis", -1}, {"epsilon", b.getFloat("epsilon")}}),
          sum};
}

/// The number of tokens that count, [B]; 0 where there is no mask.
static Name countTokens(Body &b) {
  if (!b.has("mask"))
    return b.op("Expand", {b.scalar(0, TensorProto::INT32),
                           b.sizeOf(b.in("input_ids"), 0)});
  Name counts =
      b.cast(b.op("Equal", {b.in("mask"), b.scalar(1, TensorProto::INT32)}),
             TensorProto::INT32);
  return b.op("ReduceSum", {counts, b.ints({1})}, {{"keepdims", 0}});
}

void buildEmbedLayerNormalization(Body &b) {
  auto rows = [&](llvm::StringRef table, const Name &ids) {
    return b.op("Gather", {b.in(table), ids});
  };
  Name segments;
  if (b.has("segment_embedding")) {
    if (!b.has("segment_ids"))
      b.refuse("segment_embedding comes without segment_ids");
    segments = rows("segment_embedding", b.in("segment_ids"));
  }
  Name positions =
      b.has("position_ids") ? b.in("position_ids") : ownPositions(b);
  Names results = normalizeSum(b, rows("word_embedding", b.in("input_ids")),
                               rows("position_embedding", positions), segments,
                               b.in("gamma"), b.in("beta"));
  b.give("output", results[0]);
  if (b.wants("embedding_sum"))
    b.give("embedding_sum", results[1]);
  if (b.wants("mask_index"))
    b.give("mask_index", countTokens(b));
}

void buildQEmbedLayerNormalization(Body &b) {
  auto floats = [&](const Name &value, const std::string &name) {
    return dequantize(b, value, b.in(name + "_scale"),
                      b.in(name + "_zero_point"));
  };
  auto rows = [&](llvm::StringRef table, const Name &ids,
                  const std::string &name) {
    return floats(b.op("Gather", {b.in(table), ids}), name);
  };
  bool hasSegments = b.has("segment_embedding");
  for (const char *input : {"segment_ids", "segment_embedding_scale",
                            "segment_embedding_zero_point"})
    if (b.has(input) != hasSegments)
      b.refuse("inputs 'segment_embedding' and '" + llvm::Twine(input) +
               "' do not come together");
  Name segments;
  if (hasSegments)
    segments =
        rows("segment_embedding", b.in("segment_ids"), "segment_embedding");
  Names results = normalizeSum(
      b, rows("word_embedding_quant", b.in("input_ids"), "word_embedding"),
      rows("position_embedding_quant", ownPositions(b), "position_embedding"),
      segments, floats(b.in("gamma_quant"), "gamma"),
      floats(b.in("beta_quant"), "beta"));
  b.give("layernorm_out", results[0]);
  if (b.wants("mask_index_out"))
    b.give("mask_index_out", countTokens(b));
}

/// How many heads the input has where their axis is not one of its own, 0 where
/// it is.
static int64_t rotatedHeads(Body &b) {
  b.refuseUnless("is_packed_batching", 0);
  if (b.getFloat("scale", 1) != 1)
    b.refuse("a scale other than 1 is not supported");
  int64_t rank = b.requireRank("input");
  if (rank != 3 && rank != 4)
    b.refuse("the input has rank " + llvm::Twine(rank));
  int64_t heads = b.getInt("num_heads");
  if (heads < 0)
    b.refuse("num_heads is " + llvm::Twine(heads));
  if (rank == 3 && heads == 0) {
    int64_t hidden = b.size("input", 2), half = b.size("cos_cache", 1);
    if (b.getInt("rotary_embedding_dim") || hidden < 1 || half < 1 ||
        hidden % (2 * half))
      b.refuseUnknown("the number of heads is not known");
    heads = hidden / (2 * half);
  }
  return rank == 3 ? heads : 0;
}

void buildRotaryEmbedding(Body &b) {
  int64_t heads = rotatedHeads(b), rank = b.requireRank("input");
  Name ids = b.in("position_ids");
  if (b.requireRank("position_ids") < 2) {
    Name length = b.sizeOf(b.in("input"), rank - 2);
    Name shape = b.concat({b.sizeOf(b.in("input"), 0), length}, 0);
    ids = b.op("Expand", {positions(b, ids, length), shape});
  }
  b.give("output",
         rotate(b, b.in("input"), b.in("cos_cache"), b.in("sin_cache"), ids,
                heads, b.getInt("interleaved"),
                b.getInt("rotary_embedding_dim")));
}

void buildMRotaryEmbedding(Body &b) {
  int64_t heads = rotatedHeads(b);
  Ints sections = b.getInts("mrope_section");
  int64_t layout = b.getInt("mrope_layout");
  if (sections.size() != 3 || (layout != 0 && layout != 1))
    b.refuse("mrope_section has " + llvm::Twine(sections.size()) +
             " parts, and mrope_layout is " + llvm::Twine(layout));
  int64_t angles = 0;
  for (int64_t section : sections) {
    constexpr int64_t most = 1 << 20;
    if (section < 0 || section > most)
      b.refuse("a part of mrope_section is " + llvm::Twine(section));
    angles += section;
  }
  if (int64_t half = b.size("cos_cache", 1); half >= 0 && half != angles)
    b.refuse("the parts of mrope_section add up to " + llvm::Twine(angles) +
             ", and there are " + llvm::Twine(half) + " angles");
  // The stream of positions that each angle is of.
  Ints streams(angles);
  for (int64_t i = 0; i < angles; ++i)
    if (layout == 0)
      streams[i] = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
    else
      streams[i] = i % 3 && i < 3 * sections[i % 3] ? i % 3 : 0;
  Name stream = b.ints(streams);
  auto table = [&](llvm::StringRef cache) {
    Name all = b.op("Gather", {b.in(cache), b.in("position_ids")});
    Names parts = b.op(3, "Split", {all}, {{"axis", 0}, {"num_outputs", 3}});
    Name result = parts[0];
    for (int64_t i : {1, 2})
      result = b.op("Where",
                    {b.op("Equal", {stream, b.integer(i)}), parts[i], result});
    return b.reshape(result, {-1, angles});
  };
  // Each token has a row of its own in these.
  Name shape = b.op("Shape", {b.in("position_ids")}, {{"start", 1}});
  Name count = b.op("ReduceProd", {shape, b.ints({0})});
  Name ids = b.op("Reshape", {b.iota(count), shape});
  b.give("output",
         rotate(b, b.in("input"), table("cos_cache"), table("sin_cache"), ids,
                heads, b.getInt("interleaved"),
                b.getInt("rotary_embedding_dim")));
}

void buildGatherBlockQuantized(Body &b) {
  int64_t rank = b.requireRank("data"), bits = b.getInt("bits");
  int64_t indexRank = b.requireRank("indices");
  int type = b.elementType("data");
  if ((bits != 2 && bits != 4 && bits != 8) || b.getInt("block_size") < 1)
    b.refuse("bits or block_size cannot be");
  auto axisOf = [&](llvm::StringRef attribute) {
    int64_t axis = b.getInt(attribute);
    if (axis < -rank || axis >= rank)
      b.refuse("attribute '" + attribute + "' is out of range");
    return axis < 0 ? axis + rank : axis;
  };
  int64_t gather = axisOf("gather_axis"), quantized = axisOf("quantize_axis");
  if (gather == quantized)
    b.refuse("gather_axis is quantize_axis");
  bool isPacked = type == TensorProto::UINT8 && bits < 8;
  if (isPacked && quantized != rank - 1)
    b.refuse("bytes hold several numbers of another axis than quantize_axis");
  auto rows = [&](llvm::StringRef input) {
    Name table = b.in(input);
    // ONNX gathers no numbers of 4 bits.
    if (b.elementType(input) == TensorProto::INT4)
      table = b.cast(table, TensorProto::INT8);
    if (b.elementType(input) == TensorProto::UINT4)
      table = b.cast(table, TensorProto::UINT8);
    return b.op("Gather", {table, b.in("indices")}, {{"axis", gather}});
  };
  Name data = rows("data"), scales = rows("scales");
  int64_t axis = quantized > gather ? quantized + indexRank - 1 : quantized;
  Name zeros;
  if (b.has("zero_points"))
    zeros = rows("zero_points");
  int floats = b.elementType("scales");
  Name numbers = isPacked ? unpack(b, data, bits, rank - 1 + indexRank) : data;
  Name zeroNumbers = isPacked && !zeros.empty()
                         ? b.slice(unpack(b, zeros, bits, rank - 1 + indexRank),
                                   b.ints({0}), b.sizeOf(scales, axis), axis)
                         : zeros;
  // Each number's block.
  Name block = b.op("Div", {b.iota(b.sizeOf(numbers, axis)),
                            b.integer(b.getInt("block_size"))});
  auto spread = [&](const Name &value) {
    return b.op("Gather", {value, block}, {{"axis", axis}});
  };
  numbers = b.cast(numbers, floats);
  if (!zeroNumbers.empty())
    numbers = b.sub(numbers, spread(b.cast(zeroNumbers, floats)));
  else if (type == TensorProto::UINT8)
    numbers = b.sub(numbers, b.scalar(1 << (bits - 1), floats));
  b.give("output", b.mul(numbers, spread(scales)));
}

} // namespace sardonyx::contrib
