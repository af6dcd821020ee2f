//===- LinearAttention.cpp - Attention by a state of fixed size -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// Repeats each of the `count` heads in the last axis of [B, T, count * size],
/// so that there are `wanted`.
static Name repeatHeads(Body &b, const Name &value, int64_t count,
                        int64_t wanted, int64_t size) {
  if (count == wanted)
    return value;
  Name heads = b.reshape(value, {0, 0, count, 1, size});
  Name repeated = b.op("Expand", {heads, b.ints({1, 1, 1, wanted / count, 1})});
  return b.reshape(repeated, {0, 0, wanted * size});
}

void buildLinearAttention(Body &b) {
  b.refuseUnless("state_window", 0);
  int64_t heads = b.getInt("q_num_heads"), states = b.getInt("kv_num_heads");
  if (heads < 1 || heads > (1 << 20) || states < 1 || states > (1 << 20) ||
      (heads % states && states % heads))
    b.refuse("q_num_heads and kv_num_heads do not divide each other");
  std::string rule = b.getString("update_rule");
  bool isGated = rule == "gated" || rule == "gated_delta";
  bool isDelta = rule == "delta" || rule == "gated_delta";
  if (!isGated && !isDelta && rule != "linear")
    b.refuse("update_rule '" + llvm::Twine(rule) + "' is not known");
  for (auto [input, isNeeded] :
       {std::pair("decay", isGated), std::pair("beta", isDelta)})
    if (isNeeded && !b.has(input))
      b.refuse("update_rule '" + llvm::Twine(rule) + "' has no input '" +
               input + "'");
  for (const char *input : {"query", "key", "value"})
    if (b.requireRank(input) != 3)
      b.refuse("input '" + llvm::Twine(input) + "' has rank " +
               llvm::Twine(b.requireRank(input)) + ", not 3");
  int64_t width = b.size("query", 2), keyWidth = b.size("key", 2);
  if (width < 1 || keyWidth < 1 || width % heads || keyWidth % (width / heads))
    b.refuseUnknown("the size of a head is not known");
  int64_t size = width / heads, keys = keyWidth / size;
  if (states % keys)
    b.refuse("kv_num_heads is no multiple of the " + llvm::Twine(keys) +
             " heads of the keys");
  Name query = b.in("query");
  if (heads < states) {
    query = repeatHeads(b, query, heads, states, size);
    heads = states;
  }
  Names results =
      b.op(2, "LinearAttention",
           {query, repeatHeads(b, b.in("key"), keys, states, size),
            b.in("value"), b.in("past_state"), isGated ? b.in("decay") : "",
            isDelta ? b.in("beta") : ""},
           {{"q_num_heads", heads},
            {"kv_num_heads", states},
            {"update_rule", rule.c_str()},
            {"scale", b.getFloat("scale")}});
  b.give("output", results[0]);
  if (b.wants("present_state"))
    b.give("present_state", results[1]);
}

void buildLinearAttentionGate(Body &b) {
  int type = b.elementType("a");
  Name sum = b.add(b.cast(b.in("a"), TensorProto::FLOAT), b.in("dt_bias"));
  Name decay = b.mul(b.op("Softplus", {sum}), b.in("decay_scale"));
  b.give("decay", b.cast(decay, type));
  if (!b.wants("beta"))
    return;
  if (!b.has("b"))
    b.refuse("output 'beta' needs input 'b'");
  Name rate = b.op("Sigmoid", {b.cast(b.in("b"), TensorProto::FLOAT)});
  b.give("beta", b.cast(rate, type));
}

void buildCausalConvWithState(Body &b) {
  b.refuseUnless("state_window", 0);
  b.refuseUnless("ndim", 1);
  std::string activation = b.getString("activation");
  bool hasActivation = activation == "silu" || activation == "swish";
  if (!hasActivation && activation != "none")
    b.refuse("activation '" + llvm::Twine(activation) + "' is not known");
  int64_t channels = b.size("weight", 0), taps = b.size("weight", 2);
  int64_t dilation = b.getInt("dilation"), rank = b.requireRank("input");
  constexpr int64_t limit = int64_t(1) << 31;
  if (b.requireRank("weight") != 3 || channels < 1 || taps < 1 ||
      channels > limit || taps > limit)
    b.refuseUnknown("the sizes of input 'weight' are not known");
  if (dilation < 1 || dilation > (1 << 20))
    b.refuse("dilation is " + llvm::Twine(dilation));
  bool isLast = b.getInt("channels_last") != 0;
  if (isLast ? rank < 3 : rank != 3)
    b.refuse("the input has rank " + llvm::Twine(rank));
  int64_t before = (taps - 1) * dilation;
  // All behind the second axis are channels where these are last.
  auto channelsFirst = [&](const Name &value) {
    if (!isLast)
      return value;
    return b.transpose(b.reshape(value, {0, 0, channels}), {0, 2, 1});
  };
  Ints trailing;
  for (int64_t axis = 2; isLast && axis < rank; ++axis) {
    trailing.push_back(b.size("input", axis));
    if (rank > 3 && trailing.back() < 1)
      b.refuseUnknown("the sizes of the channels are not known");
  }
  auto asGiven = [&](const Name &value) {
    if (!isLast)
      return value;
    Name turned = b.transpose(value, {0, 2, 1});
    if (rank == 3)
      return turned;
    Ints shape = {0, 0};
    shape.insert(shape.end(), trailing.begin(), trailing.end());
    return b.reshape(turned, shape);
  };
  Name input = channelsFirst(b.in("input"));
  Name state;
  if (b.has("past_state")) {
    state = channelsFirst(b.in("past_state"));
  } else {
    Name shape = b.concat({b.sizeOf(input, 0), b.ints({channels, before})}, 0);
    state = b.op("Expand", {b.scalarLike(0, "input"), shape});
  }
  Name all = b.concat({state, input}, 2);
  Name sum = b.op("Conv", {all, b.in("weight"), b.in("bias")},
                  {{"group", channels}, {"dilations", Ints{dilation}}});
  if (hasActivation)
    sum = b.mul(sum, b.op("Sigmoid", {sum}));
  b.give("output", asGiven(sum));
  if (b.wants("present_state"))
    b.give("present_state",
           asGiven(b.slice(all, b.sizeOf(input, 2), b.ints({INT64_MAX}), 2)));
}

void buildGatedRMSNorm(Body &b) {
  std::string activation = b.getString("activation");
  bool isSigmoid = activation == "sigmoid";
  if (!isSigmoid && activation != "silu" && activation != "swish")
    b.refuse("activation '" + llvm::Twine(activation) + "' is not known");
  int64_t size = b.size("scale", 0), width = b.size("X", -1);
  if (size < 1 || width < 1 || width % size)
    b.refuseUnknown(
        "the width of X is not known or no multiple of the length of "
        "scale");
  Name x = b.cast(b.in("X"), TensorProto::FLOAT);
  Ints parts(b.requireRank("X") - 1, 0);
  Ints whole = parts;
  parts.insert(parts.end(), {width / size, size});
  whole.push_back(width);
  bool isSplit = size != width;
  Name normal = b.op("RMSNormalization",
                     {isSplit ? b.reshape(x, parts) : x,
                      b.cast(b.in("scale"), TensorProto::FLOAT)},
                     {{"axis", -1}, {"epsilon", b.getFloat("epsilon")}});
  if (isSplit)
    normal = b.reshape(normal, whole);
  Name gate = b.cast(b.in("gate"), TensorProto::FLOAT);
  Name open = b.op("Sigmoid", {gate});
  if (!isSigmoid)
    open = b.mul(gate, open);
  b.give("Y", b.cast(b.mul(normal, open), b.elementType("X")));
}

} // namespace sardonyx::contrib
