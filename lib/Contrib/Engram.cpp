//===- Engram.cpp - Hashes of the last tokens, and gates ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

#include <limits>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

void buildEngramGate(Body &b) {
  int type = b.elementType("key");
  auto wide = [&](llvm::StringRef input) {
    return b.cast(b.in(input), TensorProto::FLOAT);
  };
  auto number = [&](double value) {
    return b.scalar(value, TensorProto::FLOAT);
  };
  auto normalize = [&](const Name &value, llvm::StringRef scale) {
    Name mean = b.op("ReduceMean", {b.mul(value, value), b.ints({-1})});
    Name root = b.op("Sqrt", {b.add(mean, number(b.getFloat("epsilon")))});
    return b.mul(b.op("Div", {value, root}), wide(scale));
  };
  Name product = b.mul(normalize(wide("key"), "key_norm_scale"),
                       normalize(wide("query"), "query_norm_scale"));
  Name width = b.cast(b.sizeOf(b.in("key"), 3), TensorProto::FLOAT);
  Name sum = b.op("Div", {b.op("ReduceSum", {product, b.ints({-1})}),
                          b.op("Sqrt", {width})});
  Name size = b.op("Max", {b.op("Abs", {sum}), number(1e-6)});
  Name gate =
      b.op("Sigmoid", {b.mul(b.op("Sign", {sum}), b.op("Sqrt", {size}))});
  Name output = b.mul(gate, b.unsqueeze(wide("value"), {2}));
  b.give("output", b.cast(output, type));
  if (!b.wants("gated_value_normed"))
    return;
  if (!b.has("conv_norm_scale"))
    b.refuse("output 'gated_value_normed' needs input 'conv_norm_scale'");
  b.give("gated_value_normed",
         b.cast(normalize(output, "conv_norm_scale"), type));
}

void buildNGramHashMapping(Body &b) {
  for (const char *input : {"eos_token_id", "segment_ids"})
    b.refuseInput(input);
  int64_t longest = b.getInt("max_ngram_size");
  int64_t hashes = b.getInt("n_head_per_ngram");
  // Each length has nodes of its own.
  constexpr int64_t most = 64;
  if (longest < 2 || longest > most || hashes < 1)
    b.refuse("attributes 'max_ngram_size' and 'n_head_per_ngram' are " +
             llvm::Twine(longest) + " and " + llvm::Twine(hashes) +
             ", and must be from 2 to " + llvm::Twine(most) +
             " and at least 1");
  Name ids = b.in("input_ids");
  int64_t before = longest - 1;
  Name past = b.in("past_ids");
  if (past.empty())
    past = b.op("Expand", {b.scalarLike(b.getInt("pad_id"), "input_ids"),
                           b.concat({b.sizeOf(ids, 0), b.ints({before})}, 0)});
  Name all = b.concat({past, ids}, 1);
  Name length = b.sizeOf(ids, 1);
  Name mix;
  Names parts;
  for (int64_t shift = 0; shift < longest; ++shift) {
    Name from = b.ints({before - shift});
    Name token = b.slice(all, from, b.add(from, length), 1);
    Name term = b.mul(token, b.slice(b.in("multipliers"), shift, shift + 1, 0));
    mix = shift ? b.op("BitwiseXor", {mix, term}) : term;
    if (!shift)
      continue;
    auto heads = [&](llvm::StringRef input) {
      return b.slice(b.in(input), (shift - 1) * hashes, shift * hashes, 0);
    };
    // Remainders are at least 0.
    Name part = b.op("Mod", {b.unsqueeze(mix, {2}), heads("vocab_sizes")});
    if (b.has("head_offsets"))
      part = b.add(part, heads("head_offsets"));
    parts.push_back(part);
  }
  b.give("hash_ids", b.concat(parts, 2));
  if (b.wants("present_ids"))
    b.give("present_ids",
           b.slice(all, -before, std::numeric_limits<int64_t>::max(), 1));
}

} // namespace sardonyx::contrib
