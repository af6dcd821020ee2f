//===- GroupQueryAttention.cpp - Attention with a cache of keys -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A quantized cache holds whole numbers. Its scales, one for all or one for
// each element of a head, multiply queries before the products with keys, and
// sums of values after: so keys and values are never scaled.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"

#include <cmath>

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
    takeCacheType();
    takeLengths();
    normalizeHeads();
    rotateGroupedHeads(b, *this, b.has("position_ids") ? givenPositions() : at);
    query = b.transpose(b.reshape(query, {0, 0, groups, heads / groups, size}),
                        {0, 2, 3, 1, 4});
    key = splitHeads(b, key, groups, groups * size);
    value = splitHeads(b, value, groups, groups * size);
    if (bits) {
      key = quantize(key, keyScale);
      value = quantize(value, valueScale);
    }
    if (b.has("past_key")) {
      key = cached("past_key", key);
      value = cached("past_value", value);
    }
    if (b.wants("present_key"))
      b.give("present_key", key);
    if (b.wants("present_value"))
      b.give("present_value", value);
    if (bits) {
      query = b.cast(query, type);
      key = asNumbers(key);
      value = asNumbers(value);
    }
    Name result =
        b.reshape(b.transpose(attend(), {0, 3, 1, 2, 4}), {0, 0, heads * size});
    b.give("output", bits ? b.cast(result, b.elementType("query")) : result);
  }

private:
  void refuseRest() {
    for (const char *attribute : {"qk_output", "sliding_window_cache"})
      b.refuseUnless(attribute, 0);
    b.refuseUnless("causal", 1);
    b.refuseOutput("output_qk");
    if (heads < 1 || heads > (1 << 20) || groups < 1 || heads % groups)
      b.refuse("num_heads is no multiple of kv_num_heads");
    if (b.has("past_key") != b.has("past_value"))
      b.refuse("past_key comes without past_value, or the other way round");
    if (b.has("q_norm_weight") != b.has("k_norm_weight"))
      b.refuse("q_norm_weight comes without k_norm_weight, or the other way "
               "round");
  }

  /// What the cache holds: floats, signed bytes, or two numbers of 4 bits in a
  /// byte, the first in the lower half and each 8 larger than what it stands
  /// for.
  void takeCacheType() {
    std::string kinds[] = {b.getString("k_quant_type"),
                           b.getString("v_quant_type")};
    if ((kinds[0] == "NONE") != (kinds[1] == "NONE"))
      b.refuse("of keys and values only one is quantized");
    int cacheType = type;
    if (kinds[0] != "NONE") {
      bits = b.getInt("kv_cache_bit_width", 8);
      if (bits != 4 && bits != 8)
        b.refuse("a cache of " + llvm::Twine(bits) + " bits is not supported");
      if (bits == 4 && size % 2)
        b.refuse("numbers of 4 bits do not fill the bytes of a head");
      cacheType = bits == 8 ? TensorProto::INT8 : TensorProto::UINT8;
      keyScale = takeScale("k_scale", kinds[0]);
      valueScale = takeScale("v_scale", kinds[1]);
      type = TensorProto::FLOAT;
    } else {
      for (const char *input : {"k_scale", "v_scale"})
        b.refuseInput(input);
      b.refuseUnless("kv_cache_bit_width", 0);
    }
    for (const char *cache : {"past_key", "past_value"})
      if (b.has(cache) && b.elementType(cache) != cacheType)
        b.refuse("input '" + llvm::Twine(cache) +
                 "' has another type than the cache should");
  }

  /// [1, 1, 1, 1], or [1, groups, 1, size].
  Name takeScale(const char *input, const std::string &kind) {
    if (!b.has(input))
      b.refuse("input '" + llvm::Twine(input) + "' is missing");
    Name scale = b.cast(b.in(input), TensorProto::FLOAT);
    return kind == "PER_TENSOR" ? b.reshape(scale, {1, 1, 1, 1})
                                : b.reshape(scale, {1, groups, 1, size});
  }

  /// The numbers of the cache for new keys or values [B, groups, S, size].
  Name quantize(const Name &value, const Name &scale) {
    const double end = 1 << (bits - 1);
    auto number = [&](double of) { return b.scalar(of, type); };
    Name whole = b.op("Round", {b.op("Div", {b.cast(value, type), scale})});
    whole = b.op("Clip", {whole, number(-end), number(end - 1)});
    if (bits == 8)
      return b.cast(whole, TensorProto::INT8);
    Name pairs = b.reshape(b.add(whole, number(end)), {0, 0, 0, size / 2, 2});
    Name places = b.op("Mul", {pairs, b.numbers({1, 16})});
    Name bytes = b.op("ReduceSum", {places, b.ints({-1})}, {{"keepdims", 0}});
    return b.cast(bytes, TensorProto::UINT8);
  }

  /// Floats of the numbers in a cache.
  Name asNumbers(const Name &cache) {
    if (bits == 8)
      return b.cast(cache, type);
    Name shifts = b.cast(b.ints({0, 4}), TensorProto::UINT8);
    Name each = b.op("BitShift", {b.unsqueeze(cache, {-1}), shifts},
                     {{"direction", "RIGHT"}});
    each = b.op("BitwiseAnd", {each, b.scalar(15, TensorProto::UINT8)});
    Name whole =
        b.sub(b.cast(each, TensorProto::INT8), b.scalar(8, TensorProto::INT8));
    return b.cast(b.reshape(whole, {0, 0, 0, size}), type);
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

  /// The cache with the new tokens behind the others of their batch, longer
  /// where it has no room for them.
  Name cached(llvm::StringRef input, const Name &fresh) {
    Name cache = b.in(input), room = b.sizeOf(cache, 2);
    Name more = b.sub(b.op("Max", {room, total}), room);
    Name shape = b.concat(
        {b.sizeOf(cache, 0), b.ints({groups}), more, b.sizeOf(cache, 3)}, 0);
    Name filler = b.op("Expand", {b.scalarLike(0, input), shape});
    return writeCache(b, b.concat({cache, filler}, 2), fresh,
                      b.op("Squeeze", {past, b.ints({1})}));
  }

  /// What is added to the scores, of [B, groups or 1, heads of each or 1, S,
  /// T].
  Name maskBias() {
    Name place = b.iota(b.sizeOf(key, 2));
    Name own = b.unsqueeze(at, {1, 2, 4});
    Name seen = b.op("LessOrEqual", {place, own});
    if (int64_t window = b.getInt("local_window_size"); window > 0)
      seen =
          b.op("And",
               {seen, b.op("Greater", {place, b.sub(own, b.integer(window))})});
    Name bias = b.has("attention_bias") ? givenBias() : b.scalar(0, type);
    return b.op("Where", {seen, bias, lowest(b, type)});
  }

  Name givenBias() {
    Name bias = b.cast(b.in("attention_bias"), type);
    int64_t count = b.size("attention_bias", 1);
    if (count == 1)
      return b.unsqueeze(bias, {1});
    if (count < 0)
      bias = b.op("Expand", {bias, b.ints({1, heads, 1, 1})});
    Name shape = b.concat({b.sizeOf(bias, 0), b.ints({groups, heads / groups}),
                           b.sizeOf(bias, 2), b.sizeOf(bias, 3)},
                          0);
    return b.op("Reshape", {bias, shape});
  }

  /// Softmax with a place more in its sum, of score 0 or of the head's sink.
  Name softmax(const Name &scores) {
    bool isSmooth = b.getInt("smooth_softmax") == 1;
    if (!isSmooth && !b.has("head_sink"))
      return b.op("Softmax", {scores}, {{"axis", -1}});
    Name sink = b.has("head_sink")
                    ? b.reshape(b.cast(b.in("head_sink"), type),
                                {1, groups, heads / groups, 1, 1})
                    : b.scalar(0, type);
    Name shape =
        b.concat({b.sizeOf(scores, 0), b.ints({groups, heads / groups}), length,
                  b.ints({1})},
                 0);
    Name longer = b.concat({scores, b.op("Expand", {sink, shape})}, 4);
    return b.slice(b.op("Softmax", {longer}, {{"axis", -1}}), b.ints({0}),
                   b.sizeOf(scores, 4), 4);
  }

  /// [B, groups, heads of each, S, size], where the heads of a group share
  /// keys.
  Name attend() {
    if (bits)
      query = b.mul(query, b.unsqueeze(keyScale, {2}));
    Name keys = b.transpose(b.unsqueeze(key, {2}), {0, 1, 2, 4, 3});
    float given = b.getFloat("scale");
    Name scale =
        b.scalar(given != 0 ? given : 1 / std::sqrt(double(size)), type);
    // Short floats might overflow before they are scaled.
    Name all = type == TensorProto::FLOAT
                   ? b.mul(b.op("MatMul", {query, keys}), scale)
                   : b.op("MatMul", {b.mul(query, scale), keys});
    if (float cap = b.getFloat("softcap"); cap > 0) {
      Name capScalar = b.scalar(cap, type);
      all = b.mul(b.op("Tanh", {b.op("Div", {all, capScalar})}), capScalar);
    }
    Name weights = softmax(b.add(all, maskBias()));
    Name mixed = b.op("MatMul", {weights, b.unsqueeze(value, {2})});
    return bits ? b.mul(mixed, b.unsqueeze(valueScale, {2})) : mixed;
  }

  Body &b;
  /// Of what is computed.
  int type;
  /// Of a number of a quantized cache, whose scales follow; 0: it has floats.
  int64_t bits = 0;
  Name keyScale, valueScale;
  /// Lists of one element: tokens of a batch now, and with those before.
  Name length, total;
  /// [B, 1] tokens before these, [B, S] the place of each of these.
  Name past, at;
};

} // namespace

void buildGroupQueryAttention(Body &b) { GroupQuery(b).build(); }

} // namespace sardonyx::contrib
