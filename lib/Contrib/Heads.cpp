//===- Heads.cpp - What the forms of attention share ----------------------===//

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

} // namespace sardonyx::contrib
