//===- Heads.cpp - What the forms of attention share ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Heads.h"

#include <cmath>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

Name splitHeads(Body &b, const Name &value, int64_t heads, int64_t hidden) {
  int64_t size = hidden >= 0 && hidden % heads == 0 ? hidden / heads : -1;
  return b.transpose(b.reshape(value, {0, 0, heads, size}), {0, 2, 1, 3});
}

Name mergeHeads(Body &b, const Name &value) {
  // Not -1, which of an empty tensor may be anything.
  Name hidden = b.mul(b.sizeOf(value, 1), b.sizeOf(value, 3));
  return b.op("Reshape", {b.transpose(value, {0, 2, 1, 3}),
                          b.concat({b.ints({0, 0}), hidden}, 0)});
}

static Name scaleOf(Body &b, const Heads &heads) {
  if (heads.scale != 0)
    return b.scalar(heads.scale, heads.elementType);
  if (heads.headSize > 0)
    return b.scalar(1 / std::sqrt(double(heads.headSize)), heads.elementType);
  Name size = b.cast(b.sizeOf(heads.query, 3), TensorProto::FLOAT);
  return b.cast(b.op("Reciprocal", {b.op("Sqrt", {size})}), heads.elementType);
}

Name scores(Body &b, const Heads &heads) {
  Name scale = scaleOf(b, heads);
  Name keys = b.transpose(heads.key, {0, 1, 3, 2});
  // Short floats might overflow before they are scaled.
  if (heads.elementType != TensorProto::FLOAT)
    return b.op("MatMul", {b.mul(heads.query, scale), keys});
  return b.mul(b.op("MatMul", {heads.query, keys}), scale);
}

Name biasedScores(Body &b, const Heads &heads) {
  return b.addIfThere(scores(b, heads), heads.bias);
}

Name weighValues(Body &b, const Heads &heads, const Name &scores) {
  Name weights = b.op("Softmax", {scores}, {{"axis", -1}});
  return b.op("MatMul", {weights, heads.value});
}

Name attend(Body &b, const Heads &heads) {
  return weighValues(b, heads, biasedScores(b, heads));
}

Name writeCache(Body &b, const Name &cache, const Name &fresh,
                const Name &past) {
  Name each = b.op("Expand", {past, b.sizeOf(cache, 0)});
  return b.op("TensorScatter", {cache, fresh, each}, {{"axis", 2}});
}

Name causal(Body &b, const Heads &heads) {
  Name length = b.sizeOf(heads.query, 2), total = b.sizeOf(heads.key, 2);
  Name place = b.iota(length), keys = b.iota(total);
  Name isLast = b.op("Equal", {place, b.sub(length, b.ints({1}))});
  Name last = b.op("Where", {isLast, total, b.addIfThere(place, heads.past)});
  return b.op("LessOrEqual", {keys, b.unsqueeze(last, {1})});
}

Name lowest(Body &b, int elementType) {
  switch (elementType) {
  case TensorProto::FLOAT16:
    return b.scalar(-65504, elementType);
  case TensorProto::BFLOAT16:
    return b.scalar(-0x1.fep127, elementType);
  default:
    return b.scalar(-0x1.fffffep127, elementType);
  }
}

Name positions(Body &b, const Name &offset, const Name &length) {
  return b.add(offset, b.unsqueeze(b.iota(length), {0}));
}

Name rotate(Body &b, const Name &value, const Name &cosines, const Name &sines,
            const Name &positions, int64_t heads, int64_t interleaved,
            int64_t rotaryDim) {
  Attrs attrs = {{"interleaved", interleaved},
                 {"rotary_embedding_dim", rotaryDim}};
  if (heads > 0)
    attrs.emplace_back("num_heads", heads);
  return b.op("RotaryEmbedding", {value, cosines, sines, positions}, attrs);
}

void takeGroupedHeads(Body &b, GroupedHeads &all) {
  bool packed = !b.has("key");
  int64_t width = b.size("query", -1);
  int64_t count = packed ? all.heads + 2 * all.groups : all.heads;
  if (b.requireRank("query") != 3 || width < 1 || width % count)
    b.refuseUnknown("the size of a head is not known");
  all.size = width / count;
  all.query = b.in("query");
  if (packed) {
    int64_t one = all.heads * all.size, two = one + all.groups * all.size;
    all.query = b.slice(b.in("query"), 0, one, 2);
    all.key = b.slice(b.in("query"), one, two, 2);
    all.value = b.slice(b.in("query"), two, width, 2);
  } else if (b.has("value")) {
    all.key = b.in("key");
    all.value = b.in("value");
  } else {
    b.refuse("there is no value");
  }
}

void rotateGroupedHeads(Body &b, GroupedHeads &all, const Name &positions) {
  if (!b.getInt("do_rotary"))
    return;
  if (!b.has("cos_cache") || !b.has("sin_cache"))
    b.refuse("there are no caches of cosines and sines");
  int64_t half = b.size("cos_cache", 1);
  if (half < 1)
    b.refuseUnknown("the width of the cosines is not known");
  // 0 stands for the whole head.
  int64_t rotaryDim = 2 * half == all.size ? 0 : 2 * half;
  auto turn = [&](const Name &value, int64_t count) {
    return rotate(b, value, b.in("cos_cache"), b.in("sin_cache"), positions,
                  count, b.getInt("rotary_interleaved"), rotaryDim);
  };
  all.query = turn(all.query, all.heads);
  all.key = turn(all.key, all.groups);
}

} // namespace sardonyx::contrib
