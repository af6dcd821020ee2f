//===- GroupQueryAttention.cpp - Attention with a cache of keys -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {
namespace {

class GroupQuery : GroupedHeads {
public:
  explicit GroupQuery(Body &b)
      : GroupedHeads{b.getInt("num_heads"), b.getInt("kv_num_heads")}, b(b),
        type(b.elementType("query")) {}

  void build() {
    refuseRest();
    takeGroupedHeads(b, *this);
    takeLengths();
    normalizeHeads();
    rotateGroupedHeads(b, *this, b.has("position_ids") ? givenPositions() : at);
    query = splitHeads(b, query, heads, heads * size);
    key = splitHeads(b, key, groups, groups * size);
    value = splitHeads(b, value, groups, groups * size);
    if (b.has("past_key")) {
      takeCacheIndices();
      key = cached("past_key", key);
      value = cached("past_value", value);
    }
    b.give("output", mergeHeads(b, attend()));
    if (b.wants("present_key"))
      b.give("present_key", key);
    if (b.wants("present_value"))
      b.give("present_value", value);
  }

private:
  void refuseRest() {
    for (const char *input : {"k_scale", "v_scale"})
      b.refuseInput(input);
    for (const char *attribute :
         {"qk_output", "kv_cache_bit_width", "sliding_window_cache"})
      b.refuseUnless(attribute, 0);
    b.refuseUnless("causal", 1);
    b.refuseOutput("output_qk");
    if (b.getString("k_quant_type") != "NONE" ||
        b.getString("v_quant_type") != "NONE")
      b.refuse("quantized caches are not supported");
    if (heads < 1 || heads > (1 << 20) || groups < 1 || heads % groups)
      b.refuse("num_heads is no multiple of kv_num_heads");
    if (b.has("past_key") != b.has("past_value"))
      b.refuse("past_key comes without past_value, or the other way round");
    if (b.has("past_key") && b.elementType("past_key") != type)
      b.refuse("the cache has a type of its own");
    if (b.has("q_norm_weight") != b.has("k_norm_weight"))
      b.refuse("q_norm_weight comes without k_norm_weight, or the other way "
               "round");
  }

  /// The cache holds as many tokens of a batch as were there before these; of a
  /// first prompt none, whatever its padding.
  void takeLengths() {
    length = b.sizeOf(query, 1);
    total = b.reshape(b.cast(b.in("total_sequence_length"), TensorProto::INT64),
                      {1});
    Name last =
        b.reshape(b.cast(b.in("seqlens_k"), TensorProto::INT64), {-1, 1});
    Name before = b.sub(b.add(last, b.integer(1)), length);
    before = b.op("Max", {before, b.integer(0)});
    past =
        b.op("Where", {b.op("Equal", {length, total}), b.integer(0), before});
    at = positions(b, past, length);
  }

  /// A first prompt goes on from the first position that is given, in all
  /// batches.
  Name givenPositions() {
    Name all = b.in("position_ids");
    Name first = b.slice(b.reshape(all, {-1}), 0, 1, 0);
    return b.op("Where", {b.op("Equal", {length, total}),
                          positions(b, first, length), all});
  }

  void normalizeHeads() {
    auto normalize = [&](const Name &value, int64_t count, const char *weight) {
      if (!b.has(weight))
        return value;
      Name parts = b.reshape(value, {0, 0, count, size});
      Attrs attrs = {{"axis", -1}, {"epsilon", b.getFloat("qk_norm_epsilon")}};
      Name scaled = b.op("RMSNormalization", {parts, b.in(weight)}, attrs);
      return b.reshape(scaled, {0, 0, count * size});
    };
    query = normalize(query, heads, "q_norm_weight");
    key = normalize(key, groups, "k_norm_weight");
  }

  /// For each place of the new cache, the one in the old cache with the new
  /// tokens behind it.
  void takeCacheIndices() {
    Name room = b.sizeOf(b.in("past_key"), 2);
    places = b.op("Max", {room, total});
    Name place = b.unsqueeze(b.iota(places), {0});
    Name end = b.add(past, length);
    Name isNew = b.op("And", {b.op("GreaterOrEqual", {place, past}),
                              b.op("Less", {place, end})});
    Name fresh = b.sub(b.add(place, room), past);
    Name last = b.sub(b.add(room, length), b.integer(1));
    Name old = b.op("Min", {place, last});
    Name index = b.op("Where", {isNew, fresh, old});
    Name shape = b.concat(
        {b.sizeOf(b.in("past_key"), 0), b.ints({groups}), places, b.ints({1})},
        0);
    indices = b.op("Expand", {b.unsqueeze(index, {1, 3}), shape});
  }

  Name cached(llvm::StringRef cache, const Name &fresh) {
    Name both = b.concat({b.in(cache), fresh}, 2);
    return b.op("GatherND", {both, indices}, {{"batch_dims", 2}});
  }

  /// What is added to the scores, of [B, 1, S, T].
  Name maskBias() {
    Name place = b.iota(b.sizeOf(key, 2));
    Name own = b.unsqueeze(at, {1, 3});
    Name seen = b.op("LessOrEqual", {place, own});
    if (int64_t window = b.getInt("local_window_size"); window > 0)
      seen =
          b.op("And",
               {seen, b.op("Greater", {place, b.sub(own, b.integer(window))})});
    Name bias = b.in("attention_bias").empty() ? b.scalar(0, type)
                                               : b.in("attention_bias");
    return b.op("Where", {seen, bias, lowest(b, type)});
  }

  /// Softmax with a place more in its sum, of score 0 or of the head's sink.
  Name softmax(const Name &scores) {
    bool isSmooth = b.getInt("smooth_softmax") == 1;
    if (!isSmooth && !b.has("head_sink"))
      return b.op("Softmax", {scores}, {{"axis", -1}});
    Name sink = b.has("head_sink")
                    ? b.reshape(b.in("head_sink"), {1, heads, 1, 1})
                    : b.scalar(0, type);
    Name shape = b.concat(
        {b.sizeOf(scores, 0), b.ints({heads}), length, b.ints({1})}, 0);
    Name longer = b.concat({scores, b.op("Expand", {sink, shape})}, 3);
    return b.slice(b.op("Softmax", {longer}, {{"axis", -1}}), b.ints({0}),
                   b.sizeOf(scores, 3), 3);
  }

  /// Heads that share their keys are rows of one product.
  Name attend() {
    Heads h;
    // No size is left to be -1, which of an empty tensor may be anything.
    Name rowCount = b.mul(length, b.ints({heads / groups}));
    Name grouped = b.concat({b.ints({0, groups}), rowCount, b.ints({size})}, 0);
    h.query = b.op("Reshape", {query, grouped});
    h.key = key;
    h.elementType = type;
    h.headSize = size;
    h.scale = b.getFloat("scale");
    Name total = b.sizeOf(key, 2);
    Name shape = b.concat({b.ints({0, heads}), length, total}, 0);
    Name all = b.op("Reshape", {scores(b, h), shape});
    if (float cap = b.getFloat("softcap"); cap > 0) {
      Name capScalar = b.scalar(cap, type);
      all = b.mul(b.op("Tanh", {b.op("Div", {all, capScalar})}), capScalar);
    }
    Name weights = softmax(b.add(all, maskBias()));
    Name rows = b.concat({b.ints({0, groups}), rowCount, total}, 0);
    weights = b.op("Reshape", {weights, rows});
    Name mixed = b.op("MatMul", {weights, value});
    Name back = b.concat({b.ints({0, heads}), length, b.ints({size})}, 0);
    return b.op("Reshape", {mixed, back});
  }

  Body &b;
  const int type;
  /// Lists of one element: tokens of a batch now, and with those before.
  Name length, total;
  /// [B, 1] tokens before these, [B, S] the place of each of these.
  Name past, at;
  /// Number of places in the new cache, [B, groups, places, 1] what is there.
  Name places, indices;
};

} // namespace

void buildGroupQueryAttention(Body &b) { GroupQuery(b).build(); }

} // namespace sardonyx::contrib
