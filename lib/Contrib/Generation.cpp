//===- Generation.cpp - What searches for texts have in common ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Generation.h"
#include "lib/Contrib/Tokens.h"

#include <limits>

using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace sardonyx::contrib {

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

size_t LoopState::add(const Name &value, int elementType, const Ints &shape) {
  values.push_back(value);
  elementTypes.push_back(elementType);
  sizes.push_back(shape);
  return values.size() - 1;
}

Names runSteps(Body &b, const Name &trips, LoopState state, size_t collected,
               SearchStep step, int64_t firstStep) {
  Name count = trips, goOn = b.scalar(1, TensorProto::BOOL);
  // The first call may have a graph of its own.
  const GraphProto *first = b.getGraph("init_decoder");
  Names firstCollected;
  if (first) {
    Names made = step(*first, b.integer(0), state.values);
    goOn = made.front();
    state.values.assign(made.begin() + 1, made.begin() + 1 + state.size());
    for (size_t i = 0; i < collected; ++i)
      firstCollected.push_back(b.unsqueeze(made[1 + state.size() + i], {0}));
    count = b.sub(count, b.integer(1));
    ++firstStep;
  }
  std::vector<GraphInput> types = {{TensorProto::INT64, {}},
                                   {TensorProto::BOOL, {}}};
  for (size_t i = 0; i < state.size(); ++i)
    types.push_back({state.elementTypes[i], state.sizes[i]});
  GraphProto graph = b.graph(types, [&](llvm::ArrayRef<Name> inside) {
    Name number = inside[0];
    if (firstStep)
      number = b.add(number, b.integer(firstStep));
    return step(*b.getGraph("decoder"), number, inside.drop_front(2).vec());
  });
  Names inputs = {b.reshape(count, {}), goOn};
  inputs.insert(inputs.end(), state.values.begin(), state.values.end());
  Names results = b.op(state.size() + collected, "Loop", inputs,
                       {{"body", std::move(graph)}});
  for (size_t i = 0; i < firstCollected.size(); ++i) {
    Name &all = results[state.size() + i];
    all = b.concat({firstCollected[i], all}, 0);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Generation
//===----------------------------------------------------------------------===//

Generation::Generation(Body &b)
    : b(b), decoder(b.getGraph("decoder")), pad(b.getInt("pad_token_id")),
      eos(b.getInt("eos_token_id")) {
  maxLength = b.cast(number("max_length"), TensorProto::INT64);
  if (b.has("prefix_vocab_mask"))
    prefixMask = b.in("prefix_vocab_mask");
}

Name Generation::number(llvm::StringRef input) {
  return b.reshape(b.in(input), {1});
}

Name Generation::anyFalse(const Name &values) {
  Name ones = b.cast(b.op("Not", {values}), TensorProto::INT32);
  Name most = b.op("ReduceMax", {ones}, {{"keepdims", 0}});
  return b.cast(most, TensorProto::BOOL);
}

Name Generation::lastLogits(const Name &logits) {
  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  Name last = b.op("Squeeze", {b.slice(logits, -1, end, 1), b.ints({1})});
  if (int64_t words = b.getInt("vocab_size", -1); words > 0)
    last = b.slice(last, 0, words, 1);
  return b.cast(last, TensorProto::FLOAT);
}

Name Generation::adjust(Name scores, const Name &sequences, const Name &step) {
  Name ids = b.cast(sequences, TensorProto::INT64);
  Name lowest =
      b.scalar(std::numeric_limits<float>::lowest(), TensorProto::FLOAT);
  auto forbid = [&](const Name &words) {
    scores = b.op("Where", {words, lowest, scores});
  };
  Name zero = b.scalar(0, TensorProto::INT32);
  if (b.has("repetition_penalty")) {
    Name penalty = number("repetition_penalty");
    Name none = b.op("Expand", {zero, b.op("Shape", {scores})});
    Name seen = b.op("ScatterElements",
                     {none, ids, allOnes(b.op("Shape", {ids}))}, {{"axis", 1}});
    Name isNegative = b.op("Less", {scores, b.scalar(0, TensorProto::FLOAT)});
    Name less = b.op("Where", {isNegative, b.mul(scores, penalty),
                               b.op("Div", {scores, penalty})});
    scores = b.op("Where", {b.cast(seen, TensorProto::BOOL), less, scores});
  }
  if (int64_t length = b.getInt("no_repeat_ngram_size"); length > 0)
    forbid(findRepeats(b, ids, scores, length));
  if (b.has("vocab_mask"))
    forbid(b.op("Equal", {b.in("vocab_mask"), zero}));
  if (!prefixMask.empty())
    forbid(b.op("And", {b.op("Equal", {prefixMask, zero}),
                        b.op("Equal", {step, b.integer(0)})}));
  if (b.has("min_length")) {
    Name least = b.cast(number("min_length"), TensorProto::INT64);
    Name isShort = b.op("Less", {b.sizeOf(sequences, 1), least});
    Name isEnd = b.op("Equal", {b.iota(b.sizeOf(scores, 1)), b.integer(eos)});
    forbid(b.op("And", {isShort, isEnd}));
  }
  if (!temperature.empty())
    scores = b.op("Div", {scores, temperature});
  if (b.is("WhisperBeamSearch") && b.has("logits_processor")) {
    Name isAsked = b.op(
        "Equal", {number("logits_processor"), b.scalar(1, TensorProto::INT32)});
    scores =
        b.op("Where", {isAsked, followTimestamps(*this, scores, ids), scores});
  }
  return scores;
}

//===----------------------------------------------------------------------===//
// Decoders of GPT's form
//===----------------------------------------------------------------------===//

static const ::onnx::TypeProto::Tensor &
tensorType(const ::onnx::ValueInfoProto &value) {
  return value.type().tensor_type();
}

static void requireGpt(Body &b, const GraphProto &graph,
                       llvm::StringRef attribute) {
  std::string head = "its graph '" + attribute.str() + "' ";
  int layers = graph.output_size() - 1;
  if (layers < 1 || graph.input_size() < 4)
    b.refuse(llvm::Twine(head) + "has " + llvm::Twine(graph.input_size()) +
             " inputs and " + llvm::Twine(graph.output_size()) +
             " outputs, and must have input_ids, position_ids, attention_mask, "
             "and a past and a present for each layer");
  if (graph.input_size() != layers + 3)
    b.refuse(llvm::Twine(head) + "has " + llvm::Twine(graph.input_size()) +
             " inputs for " + llvm::Twine(layers) +
             " layers; pasts that share memory with presents are not "
             "supported");
  for (int i = 0; i < graph.input_size(); ++i) {
    const auto &type = tensorType(graph.input(i));
    bool isPast = i >= 3;
    int rank = isPast ? 5 : 2;
    if (type.shape().dim_size() != rank ||
        (isPast ? type.shape().dim(2).dim_value() < 1 ||
                      type.shape().dim(4).dim_value() < 1
                : type.elem_type() != TensorProto::INT32))
      b.refuse(llvm::Twine(head) + "must take " +
               (isPast ? "[2, rows, heads, length, size] with a known number "
                         "and size of heads"
                       : "a matrix of int32") +
               " as input " + llvm::Twine(i));
  }
}

void requireGpt(Body &b) {
  if (b.rank("input_ids").value_or(2) != 2)
    b.refuse("input 'input_ids' has rank " +
             llvm::Twine(b.requireRank("input_ids")) +
             ", and must be a matrix");
  const GraphProto *decoder = b.getGraph("decoder");
  requireGpt(b, *decoder, "decoder");
  const GraphProto *first = b.getGraph("init_decoder");
  if (!first)
    return;
  requireGpt(b, *first, "init_decoder");
  if (first->output_size() != decoder->output_size())
    b.refuse("its graphs 'decoder' and 'init_decoder' have " +
             llvm::Twine(decoder->output_size()) + " and " +
             llvm::Twine(first->output_size()) + " outputs");
}

GptCalls::GptCalls(Generation &g, const Name &prompts, const Name &given)
    : g(g), b(g.b), layers(g.decoder->output_size() - 1), ids(prompts),
      mask(given) {
  Name isWord =
      b.op("Not", {b.op("Equal", {ids, b.scalar(g.pad, TensorProto::INT32)})});
  Name ones = b.cast(isWord, TensorProto::INT32);
  if (mask.empty())
    mask = ones;
  Name before = b.op("CumSum", {ones, b.integer(1)}, {{"exclusive", 1}});
  positions = b.mul(before, ones);
  nextPosition = b.op("ReduceSum", {ones, b.ints({1})});
  for (size_t i = 0; i < layers; ++i) {
    const auto &type = tensorType(g.decoder->input(3 + i));
    Name shape = b.concat({b.ints({2}), b.sizeOf(ids, 0),
                           b.ints({type.shape().dim(2).dim_value(), 0,
                                   type.shape().dim(4).dim_value()})},
                          0);
    past.push_back(b.op("Expand", {b.scalar(0, type.elem_type()), shape}));
  }
}

void GptCalls::carry(LoopState &state) {
  for (const Name &value : {ids, positions, mask})
    state.add(value, TensorProto::INT32, {-1, -1});
  state.add(nextPosition, TensorProto::INT32, {-1, 1});
  for (size_t i = 0; i < layers; ++i) {
    const auto &type = tensorType(g.decoder->input(3 + i));
    state.add(past[i], type.elem_type(),
              {2, -1, type.shape().dim(2).dim_value(), -1,
               type.shape().dim(4).dim_value()});
  }
}

Name GptCalls::call(const GraphProto &graph, const Names &values,
                    size_t first) {
  auto at = values.begin() + first;
  ids = at[0];
  positions = at[1];
  mask = at[2];
  nextPosition = at[3];
  Names inputs = {ids, positions, mask};
  inputs.insert(inputs.end(), at + kBeforePast, at + kBeforePast + layers);
  Names outputs = b.call(graph, inputs);
  past.assign(outputs.begin() + 1, outputs.end());
  return outputs.front();
}

Names GptCalls::next(const Name &tokens, const Name &origin) {
  Name one = g.allOnes(b.op("Shape", {tokens}));
  Names values = {tokens, nextPosition, b.concat({mask, one}, 1),
                  b.add(nextPosition, one)};
  for (const Name &present : past)
    values.push_back(origin.empty()
                         ? present
                         : b.op("Gather", {present, origin}, {{"axis", 1}}));
  return values;
}

} // namespace sardonyx::contrib
