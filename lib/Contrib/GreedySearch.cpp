//===- GreedySearch.cpp - Texts of the likeliest words --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Generation.h"
#include "lib/Contrib/Inference.h"

#include <limits>

using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace sardonyx::contrib {

void inferGreedySearch(::onnx::InferenceContext &context) {
  inferGraphs(context);
  auto sizes = sizesOf(context, 0);
  int64_t batch = sizes && sizes->size() == 2 ? sizes->front() : -1;
  setTensor(context, 0, TensorProto::INT32, {batch, -1});
}

/// Continues the prompts, each time by the tokens [rows, 1] of int64 that
/// `choose` finds for scores [rows, words]. It gets what is carried from the
/// position that `more` begins at, and replaces it.
static void
search(Generation &g, const LoopState &more,
       llvm::function_ref<Name(const Name &scores, Names &carried)> choose) {
  Body &b = g.b;
  b.refuseUnless("model_type", 0);
  requireGpt(b);
  Name prompts = b.in("input_ids");
  Name mask = b.in("attention_mask");
  GptCalls calls(g, prompts, mask);
  LoopState state;
  calls.carry(state);
  size_t sequencesAt = state.add(prompts, TensorProto::INT32, {-1, -1});
  Name batch = b.sizeOf(prompts, 0);
  Name no = b.op("Expand", {b.scalar(0, TensorProto::BOOL),
                            b.concat({batch, b.ints({1})}, 0)});
  size_t doneAt = state.add(no, TensorProto::BOOL, {-1, 1});
  for (size_t i = 0; i < more.size(); ++i)
    state.add(more.values[i], more.elementTypes[i], more.sizes[i]);
  Name trips = b.sub(g.maxLength, b.sizeOf(prompts, 1));
  Names results = runSteps(
      b, trips, state, 0,
      [&](const GraphProto &decoder, const Name &step, const Names &values) {
        Name logits = calls.call(decoder, values, 0);
        Name sequences = values[sequencesAt];
        Name scores = g.adjust(g.lastLogits(logits), sequences, step);
        Names carried(values.begin() + doneAt + 1, values.end());
        Name tokens = b.cast(choose(scores, carried), TensorProto::INT32);
        Name isEnd =
            b.op("Equal", {tokens, b.scalar(g.eos, TensorProto::INT32)});
        Name done = b.op("Or", {values[doneAt], isEnd});
        tokens =
            b.op("Where", {done, b.scalar(g.pad, TensorProto::INT32), tokens});
        Names next = {g.anyFalse(done)};
        for (const Name &value : calls.next(tokens, ""))
          next.push_back(value);
        next.push_back(b.concat({sequences, tokens}, 1));
        next.push_back(done);
        next.insert(next.end(), carried.begin(), carried.end());
        return next;
      });
  Name sequences = results[sequencesAt];
  Name left = b.sub(g.maxLength, b.sizeOf(sequences, 1));
  b.give("sequences",
         b.concat({sequences, g.padding(b.concat({batch, left}, 0))}, 1));
}

void buildGreedySearch(Body &b) {
  Generation g(b);
  search(g, {}, [&](const Name &scores, Names &) {
    return b.op("ArgMax", {scores}, {{"axis", 1}});
  });
}

//===----------------------------------------------------------------------===//
// Sampling
//===----------------------------------------------------------------------===//

namespace {
/// Numbers as C++'s std::minstd_rand0 makes them: the next state is the last
/// one times kFactor, modulo kModulus.
class RandomStates {
public:
  /// Two states are drawn for each row and step.
  RandomStates(Body &b, const Name &rows) : b(b) {
    Name count = b.mul(rows, b.integer(2));
    Name exponent = b.add(b.iota(count), b.integer(1));
    powers = b.op("Expand", {b.integer(1), count});
    // No batch has more rows than half of the exponents that these make.
    constexpr int bits = 24;
    int64_t factor = kFactor;
    for (int bit = 0; bit < bits; ++bit) {
      Name digit = b.op("Mod", {exponent, b.integer(2)});
      Name isSet = b.op("Equal", {digit, b.integer(1)});
      powers = b.op("Where",
                    {isSet, modulo(b.mul(powers, b.integer(factor))), powers});
      exponent = b.op("Div", {exponent, b.integer(2)});
      factor = factor * factor % kModulus;
    }
  }

  /// The state for a seed, a list of one.
  Name start(const Name &seed) {
    Name state = modulo(seed);
    Name isZero = b.op("Equal", {state, b.integer(0)});
    return b.op("Where", {isZero, b.integer(1), state});
  }

  /// A number of [0, 1) for each row [rows, 1] in f64, as
  /// std::generate_canonical makes it of two states. Moves `state` on.
  Name draw(Name &state) {
    Name states = modulo(b.mul(state, powers));
    state = b.slice(states, b.ints({-1}), b.sizeOf(states, 0), 0);
    Name digits = b.cast(b.sub(b.reshape(states, {-1, 2}), b.integer(1)),
                         TensorProto::DOUBLE);
    const double range = kModulus - 1;
    auto number = [&](double value) {
      return b.scalar(value, TensorProto::DOUBLE);
    };
    Name sum = b.add(b.slice(digits, 0, 1, 1),
                     b.mul(b.slice(digits, 1, 2, 1), number(range)));
    return b.op("Div", {sum, number(range * range)});
  }

private:
  static constexpr int64_t kFactor = 16807, kModulus = 2147483647;

  Name modulo(const Name &value) {
    return b.op("Mod", {value, b.integer(kModulus)});
  }

  Body &b;
  /// kFactor to the power of 1, 2, ...
  Name powers;
};
} // namespace

/// Scores [rows, words] without the words that are unlikely: those that the
/// likeliest ones add up to top_p without, or, if the sampling is custom,
/// behind those that exceed it.
static Name filter(Body &b, const Name &scores) {
  bool isCustom = b.getInt("custom") != 0;
  Name words = b.sizeOf(scores, 1);
  Names sorted = b.op(2, "TopK", {scores, words},
                      {{"axis", 1}, {"largest", int64_t(isCustom)}});
  Name sums = b.op("CumSum",
                   {b.op("Softmax", {sorted[0]}, {{"axis", 1}}), b.integer(1)});
  float topP = b.getFloat("top_p");
  Name place = b.iota(words), isUnlikely;
  if (isCustom) {
    Name exceeds = b.op("Greater", {sums, b.scalar(topP, TensorProto::FLOAT)});
    Name before = b.op("Max", {b.sub(place, b.integer(1)), b.integer(0)});
    isUnlikely = b.op("And", {b.op("Gather", {exceeds, before}, {{"axis", 1}}),
                              b.op("Greater", {place, b.integer(0)})});
  } else {
    Name isLow =
        b.op("LessOrEqual", {sums, b.scalar(1 - topP, TensorProto::FLOAT)});
    Name end = b.sub(words, b.integer(b.getInt("min_tokens_to_keep")));
    Name mayGo = b.op("Or", {b.op("Equal", {place, b.integer(0)}),
                             b.op("Less", {place, end})});
    isUnlikely = b.op("And", {isLow, mayGo});
  }
  Name value = b.scalar(b.getFloat("filter_value"), TensorProto::FLOAT);
  return b.op(
      "ScatterElements",
      {scores, sorted[1], b.op("Where", {isUnlikely, value, sorted[0]})},
      {{"axis", 1}});
}

/// Words [rows, 1] that are as likely as the softmax of finite scores [rows,
/// words] says, by numbers of [0, 1) [rows, 1].
static Name draw(Body &b, const Name &scores, const Name &numbers) {
  Name isFinite = b.op(
      "Not", {b.op("Or", {b.op("IsNaN", {scores}), b.op("IsInf", {scores})})});
  Name lowest =
      b.scalar(std::numeric_limits<float>::lowest(), TensorProto::FLOAT);
  Name most = b.op("ReduceMax",
                   {b.op("Where", {isFinite, scores, lowest}), b.ints({1})});
  Name wide = b.sub(b.cast(scores, TensorProto::DOUBLE),
                    b.cast(most, TensorProto::DOUBLE));
  Name shares = b.op("Where", {isFinite, b.op("Exp", {wide}),
                               b.scalar(0, TensorProto::DOUBLE)});
  Name sums = b.op("CumSum", {shares, b.integer(1)});
  Name all = b.slice(sums, b.ints({-1}), b.sizeOf(sums, 1), 1);
  Name isBelow = b.op("LessOrEqual", {sums, b.mul(numbers, all)});
  return b.op("ReduceSum", {b.cast(isBelow, TensorProto::INT64), b.ints({1})});
}

void buildSampling(Body &b) {
  b.refuseOutput("filtered_logits");
  Generation g(b);
  if (float temperature = b.getFloat("temperature");
      temperature > 0 && temperature != 1)
    g.temperature = b.scalar(temperature, TensorProto::FLOAT);
  if (b.getFloat("presence_penalty") != 0 && b.has("presence_mask"))
    b.refuse("attribute 'presence_penalty' is not supported with a "
             "presence_mask: onnxruntime takes the penalties of all words from "
             "the first score");
  RandomStates random(b, b.sizeOf(b.in("input_ids"), 0));
  Name seed = b.has("seed") ? b.cast(g.number("seed"), TensorProto::INT64)
                            : b.ints({0});
  LoopState state;
  state.add(random.start(seed), TensorProto::INT64, {1});
  search(g, state, [&](const Name &scores, Names &carried) {
    Name numbers = random.draw(carried.front());
    return draw(b, filter(b, scores), numbers);
  });
}

} // namespace sardonyx::contrib
