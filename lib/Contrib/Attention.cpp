//===- Attention.cpp - Attention, MultiHeadAttention and QAttention -------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"

#include <limits>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

/// Condition under which keys are seen, of a mask that has an element for each
/// of them: [B, T] or [B, S, T].
static Name fullMask(Body &b, llvm::StringRef mask, int64_t rank) {
  Name seen = b.op("Greater", {b.in(mask), b.scalar(0, TensorProto::INT32)});
  return rank == 2 ? b.unsqueeze(seen, {1, 2}) : b.unsqueeze(seen, {1});
}

/// The same of a list of lengths, one for each batch.
static Name lengthMask(Body &b, const Name &lengths, const Name &key) {
  Name at = b.cast(b.iota(b.sizeOf(key, 2)), TensorProto::INT32);
  // Fails where there are more lengths than batches.
  Name shape = b.concat({b.sizeOf(key, 0), b.ints({1, 1, 1})}, 0);
  return b.op("Less", {at, b.op("Reshape", {lengths, shape})});
}

/// `list`, which the run checks to be no longer than three times `batch` and a
/// multiple of it.
static Name checkWhole(Body &b, const Name &list, const Name &batch) {
  Name most = b.add(b.add(batch, batch), batch);
  Name head = b.slice(list, b.ints({0}), most, 0);
  Name tail = b.slice(list, most, b.ints({INT64_MAX}), 0);
  Name rows = b.concat({b.ints({-1}), batch}, 0);
  Name flat = b.op("Reshape", {b.op("Reshape", {head, rows}), b.ints({-1})});
  Name none = b.op("Reshape", {tail, b.ints({0})}, {{"allowzero", 1}});
  return b.concat({flat, none}, 0);
}

/// The same of a list of ends and, behind these, maybe one of starts.
static Name rangeMask(Body &b, llvm::StringRef mask, const Name &key) {
  int64_t length = b.size(mask, 0), batches = b.size("input", 0);
  // One for each batch are ends.
  if (length > 0 && length == batches)
    return lengthMask(b, b.in(mask), key);
  bool isKnown = length >= 0 && batches >= 0;
  if (isKnown && length != 2 * batches)
    b.refuse("a mask of " + llvm::Twine(length) + " numbers for " +
             llvm::Twine(batches) + " batches");
  Name batch = b.sizeOf(key, 0);
  Name none = b.op("Expand", {b.scalar(0, TensorProto::INT32), batch});
  Name both = b.concat({b.in(mask), none}, 0);
  if (!isKnown)
    both = checkWhole(b, both, batch);
  Name ends = b.slice(both, b.ints({0}), batch, 0);
  Name starts = b.slice(both, batch, b.add(batch, batch), 0);
  Name started = b.op("Not", {lengthMask(b, starts, key)});
  // starts <= position is the opposite of position < starts.
  return b.op("And", {started, lengthMask(b, ends, key)});
}

/// What the masks add to the scores, `seen` is a condition or missing.
static Name maskBias(Body &b, Heads &heads, const Name &seen,
                     const Name &attentionBias, bool isCausal) {
  Name bias;
  if (!seen.empty()) {
    float filter = b.getFloat("mask_filter_value", -10000.0f);
    bias = b.op("Where", {seen, b.scalar(0, heads.elementType),
                          b.scalar(filter, heads.elementType)});
  }
  if (!attentionBias.empty())
    bias = b.addIfThere(attentionBias, bias);
  if (isCausal) {
    Name otherwise = bias.empty() ? b.scalar(0, heads.elementType) : bias;
    bias = b.op("Where",
                {causal(b, heads), otherwise, lowest(b, heads.elementType)});
  }
  return bias;
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention and DecoderMaskedMultiHeadAttention
//===----------------------------------------------------------------------===//

namespace {

class MultiHead {
public:
  explicit MultiHead(Body &b)
      : b(b), heads(b.getInt("num_heads")),
        isDecoder(b.is("DecoderMaskedMultiHeadAttention")),
        mask(isDecoder ? "mask_index" : "key_padding_mask") {
    if (heads < 1 || heads > (1 << 20))
      b.refuse("num_heads is " + llvm::Twine(heads));
    h.elementType = b.elementType("query");
    h.scale = b.getFloat("scale");
  }

  void build() {
    takeOperands();
    if (b.has("past_key") != b.has("past_value"))
      b.refuse("past_key comes without past_value, or the other way round");
    if (b.has("past_key"))
      takePast();
    else if (b.has("cache_indirection"))
      b.refuse("cache_indirection comes without past_key");
    if (presentKey.empty()) {
      presentKey = h.key;
      presentValue = h.value;
    }
    Name attentionBias = b.in("attention_bias");
    if (b.has("cache_indirection")) {
      takeBeams();
      if (isDecoder && !attentionBias.empty())
        attentionBias = beamBias(attentionBias);
    }
    bool isCausal = !isDecoder && b.getInt("unidirectional");
    h.bias = maskBias(b, h, seenKeys(), attentionBias, isCausal);
    Name scores = biasedScores(b, h);
    b.give("output", mergeHeads(b, weighValues(b, h, scores)));
    if (b.wants("qk"))
      b.give("qk", scores);
    if (b.wants("present_key"))
      b.give("present_key", presentKey);
    if (b.wants("present_value"))
      b.give("present_value", presentValue);
  }

private:
  /// One of the parts of a packed [B, S, heads, parts, size].
  Name part(llvm::StringRef input, int64_t index) {
    return b.op("Gather", {b.in(input), b.integer(index)}, {{"axis", 3}});
  }

  /// Adds a part of the bias to [B, S, heads, size] and puts the heads first.
  Name finish(const Name &value, const Name &from, const Name &to) {
    Name sum = value;
    if (b.has("bias")) {
      Name bias = b.slice(b.in("bias"), from, to, 0);
      sum = b.add(value, b.reshape(bias, {heads, -1}));
    }
    return b.transpose(sum, {0, 2, 1, 3});
  }

  Name split(llvm::StringRef input) {
    int64_t hidden = b.size(input, 2);
    int64_t size = hidden > 0 && hidden % heads == 0 ? hidden / heads : -1;
    return b.reshape(b.in(input), {0, 0, heads, size});
  }

  /// Queries, keys and values [B, 1, 3 * hidden] behind one another.
  void takePackedRow() {
    int64_t hidden = b.size("query", 2);
    if (hidden < 1 || hidden % (3 * heads))
      b.refuseUnknown(
          "the width of the packed query is not known or no multiple of "
          "three times num_heads");
    h.headSize = hidden / (3 * heads);
    int64_t width = hidden / 3;
    Name *into[] = {&h.query, &h.key, &h.value};
    for (int i = 0; i < 3; ++i) {
      Name third = b.slice(b.in("query"), i * width, (i + 1) * width, 2);
      *into[i] = finish(b.reshape(third, {0, 0, heads, h.headSize}),
                        b.ints({i * width}), b.ints({(i + 1) * width}));
    }
  }

  void takeOperands() {
    int64_t rank = b.requireRank("query");
    if (rank != 3 && (rank != 5 || isDecoder))
      b.refuse("the query has rank " + llvm::Twine(rank));
    if (isDecoder && b.size("query", 1) > 1)
      b.refuse("the query has " + llvm::Twine(b.size("query", 1)) +
               " tokens, not one");
    if (isDecoder && !b.has("key") && !b.has("value"))
      return takePackedRow();
    Name query = rank == 5 ? part("query", 0) : split("query");
    int64_t hidden = b.size("query", 2);
    if (rank == 5)
      h.headSize = b.size("query", 4);
    else if (hidden > 0 && hidden % heads == 0)
      h.headSize = hidden / heads;
    Name width = h.headSize > 0 ? b.ints({h.headSize * heads})
                                : b.mul(b.sizeOf(query, 3), b.integer(heads));
    Name twice = b.add(width, width), end = b.ints({kEnd});
    h.query = finish(query, b.ints({0}), width);
    if (rank == 5) {
      h.key = finish(part("query", 1), width, twice);
      h.value = finish(part("query", 2), twice, end);
      return;
    }
    if (!b.has("key"))
      b.refuse("there is no key");
    int64_t keyRank = b.requireRank("key");
    if (keyRank == 5 && !isDecoder) {
      h.key = finish(part("key", 0), width, twice);
      h.value = finish(part("key", 1), twice, end);
    } else if (keyRank == 4 && b.has("value")) {
      // Of an encoder: projected, with their bias and heads, before.
      h.key = b.in("key");
      h.value = b.in("value");
    } else if (keyRank == 3 && b.has("value")) {
      h.key = finish(split("key"), width, twice);
      h.value = finish(split("value"), twice, end);
    } else {
      b.refuse("key and value are in no form that is known");
    }
  }

  /// A past is as long as its tensor or, where past_sequence_length is there,
  /// the beginning of a buffer that has room for what comes.
  void takePast() {
    bool isShared = isDecoder ? b.getInt("past_present_share_buffer") != 0
                              : b.has("past_sequence_length");
    if (!isShared) {
      h.past = b.sizeOf(b.in("past_key"), 2);
      h.key = b.concat({b.in("past_key"), h.key}, 2);
      h.value = b.concat({b.in("past_value"), h.value}, 2);
      return;
    }
    if (!b.has("past_sequence_length"))
      b.refuse("past_present_share_buffer is set, and there is no "
               "past_sequence_length");
    h.past = b.reshape(b.cast(b.in("past_sequence_length"), TensorProto::INT64),
                       {1});
    Name total = b.add(h.past, b.sizeOf(h.query, 2));
    presentKey = writeCache(b, b.in("past_key"), h.key, h.past);
    presentValue = writeCache(b, b.in("past_value"), h.value, h.past);
    h.key = b.slice(presentKey, b.ints({0}), total, 2);
    h.value = b.slice(presentValue, b.ints({0}), total, 2);
  }

  /// Number of beams of a batch, as a list of one: batches that follow each
  /// other belong together.
  Name beams() {
    Name count = b.ints({1});
    if (!isDecoder)
      count = b.sizeOf(b.in("cache_indirection"), 1);
    else if (b.has("beam_width"))
      count = b.reshape(b.cast(b.in("beam_width"), TensorProto::INT64), {1});
    return b.op("Max", {count, b.integer(1)});
  }

  /// Takes keys and values of the past from the beams that they come from.
  void takeBeams() {
    if (presentKey == h.key)
      b.refuse("cache_indirection comes without a shared buffer");
    Name batches = b.sizeOf(h.query, 0), total = b.sizeOf(h.key, 2);
    Name own = b.unsqueeze(b.iota(batches), {1}), place = b.iota(total);
    Name first = b.mul(b.op("Div", {own, beams()}), beams());
    Name rows =
        b.op("Reshape", {b.cast(b.in("cache_indirection"), TensorProto::INT64),
                         b.concat({batches, b.ints({-1})}, 0)});
    Name from = b.add(first, b.slice(rows, b.ints({0}), total, 1));
    // Several queries, a prompt, look at their own past only.
    Name isOther =
        b.op("And", {b.op("Less", {place, h.past}),
                     b.op("Equal", {b.sizeOf(h.query, 2), b.integer(1)})});
    from = b.op("Where", {isOther, from, own});
    Name shape = b.concat({batches, b.ints({heads}), total, b.ints({1})}, 0);
    Name head = b.iota(b.ints({heads}));
    Name indices =
        b.concat({b.op("Expand", {b.unsqueeze(from, {1, 3}), shape}),
                  b.op("Expand", {b.unsqueeze(head, {0, 2, 3}), shape}),
                  b.op("Expand", {b.unsqueeze(place, {0, 1, 3}), shape})},
                 3);
    h.key = b.op("GatherND", {h.key, indices});
    h.value = b.op("GatherND", {h.value, indices});
  }

  /// Of the bias, the row of the batch that a beam belongs to.
  Name beamBias(const Name &bias) {
    Name row = b.op("Div", {b.iota(b.sizeOf(h.query, 0)), beams()});
    Name last = b.sub(b.sizeOf(bias, 0), b.integer(1));
    return b.op("Gather", {bias, b.op("Min", {row, last})});
  }

  Name seenKeys() {
    if (!b.has(mask))
      return "";
    int64_t rank = b.requireRank(mask);
    if (rank == 1 && !isDecoder)
      return lengthMask(b, b.in(mask), h.key);
    if (rank == 2 || (rank == 3 && !isDecoder))
      return fullMask(b, mask, rank);
    b.refuse("the mask has rank " + llvm::Twine(rank));
  }

  Body &b;
  int64_t heads;
  bool isDecoder;
  llvm::StringRef mask;
  Heads h;
  /// What goes on as the past of the next run.
  Name presentKey, presentValue;
};

} // namespace

void buildMultiHeadAttention(Body &b) { MultiHead(b).build(); }

void buildDecoderMaskedMultiHeadAttention(Body &b) { MultiHead(b).build(); }

//===----------------------------------------------------------------------===//
// Attention and QAttention
//===----------------------------------------------------------------------===//

namespace {
/// Widths of the projections to queries, keys and values.
struct Widths {
  int64_t query, key, value;
};
} // namespace

static Widths widthsOf(Body &b, llvm::StringRef weights, const Ints &given) {
  if (given.size() == 3)
    return {given[0], given[1], given[2]};
  int64_t all = b.size(weights, 1);
  if (all < 0 || all % 3 != 0)
    b.refuseUnknown("the width of the projections is not known");
  return {all / 3, all / 3, all / 3};
}

/// Everything behind the projections.
static void
attendProjected(Body &b, const Widths &widths, int elementType,
                const Name &attentionBias,
                llvm::function_ref<Name(int64_t, int64_t)> project) {
  b.refuseUnless("do_rotary", 0);
  b.refuseUnless("past_present_share_buffer", 0);
  int64_t heads = b.getInt("num_heads");
  constexpr int64_t limit = int64_t(1) << 31;
  for (int64_t width : {widths.query, widths.key, widths.value})
    if (width < 1 || width > limit)
      b.refuse("a projection has the width " + llvm::Twine(width));
  if (heads < 1 || widths.query % heads || widths.value % heads ||
      widths.query != widths.key)
    b.refuse("the widths of the projections do not fit num_heads");
  Heads h;
  h.elementType = elementType;
  h.headSize = widths.query / heads;
  h.scale = b.getFloat("scale");
  int64_t twice = widths.query + widths.key;
  h.query = splitHeads(b, project(0, widths.query), heads, widths.query);
  h.key = splitHeads(b, project(widths.query, twice), heads, widths.key);
  h.value =
      splitHeads(b, project(twice, twice + widths.value), heads, widths.value);
  if (b.has("past")) {
    h.past = b.sizeOf(b.in("past"), 3);
    auto half = [&](int64_t index) {
      return b.op("Gather", {b.in("past"), b.integer(index)}, {{"axis", 0}});
    };
    h.key = b.concat({half(0), h.key}, 2);
    h.value = b.concat({half(1), h.value}, 2);
  }
  Name seen;
  if (b.has("mask_index")) {
    int64_t rank = b.requireRank("mask_index");
    if (rank < 1 || rank > 3)
      b.refuse("the mask has rank " + llvm::Twine(rank));
    seen = rank == 1 ? rangeMask(b, "mask_index", h.key)
                     : fullMask(b, "mask_index", rank);
  }
  h.bias = maskBias(b, h, seen, attentionBias, b.getInt("unidirectional") != 0);
  b.give("output", mergeHeads(b, attend(b, h)));
  if (b.wants("present"))
    b.give("present",
           b.concat({b.unsqueeze(h.key, {0}), b.unsqueeze(h.value, {0})}, 0));
}

void buildAttention(Body &b) {
  b.refuseInput("past_sequence_length");
  Widths widths = widthsOf(b, "weights", b.getInts("qkv_hidden_sizes"));
  // Slices of constant weights are cut when the model is loaded.
  auto project = [&](int64_t from, int64_t to) {
    Name product =
        b.op("MatMul", {b.in("input"), b.slice(b.in("weights"), from, to, 1)});
    return b.has("bias") ? b.add(product, b.slice(b.in("bias"), from, to, 0))
                         : product;
  };
  attendProjected(b, widths, b.elementType("input"), b.in("attention_bias"),
                  project);
}

void buildQAttention(Body &b) {
  Widths widths = widthsOf(b, "weight", {});
  int type = b.elementType("bias");
  // What may be one for all columns or one for each.
  auto column = [&](llvm::StringRef input, int64_t from, int64_t to) {
    if (!b.has(input) || b.requireRank(input) == 0 || b.size(input, 0) == 1)
      return b.in(input);
    return b.slice(b.in(input), from, to, 0);
  };
  auto project = [&](int64_t from, int64_t to) {
    Name product =
        b.op("MatMulInteger",
             {b.in("input"), b.slice(b.in("weight"), from, to, 1),
              b.in("input_zero_point"), column("weight_zero_point", from, to)});
    Name scale = b.mul(b.in("input_scale"), column("weight_scale", from, to));
    return b.add(b.mul(b.cast(product, type), scale),
                 b.slice(b.in("bias"), from, to, 0));
  };
  attendProjected(b, widths, type, "", project);
}

} // namespace sardonyx::contrib
