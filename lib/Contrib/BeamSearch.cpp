//===- BeamSearch.cpp - The likeliest texts -------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each prompt has `beams` texts that grow, and as many that have ended. At each
// step the 2 * beams likeliest continuations of the former are chosen: at most
// half of them end their text, so that as many go on as before.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Generation.h"
#include "lib/Contrib/Inference.h"

#include <algorithm>
#include <limits>

using ::onnx::GraphProto;
using ::onnx::TensorProto;

namespace sardonyx::contrib {

void inferBeamSearch(::onnx::InferenceContext &context) {
  inferGraphs(context);
  auto sizes = sizesOf(context, 0);
  int64_t batch = sizes && !sizes->empty() ? sizes->front() : -1;
  setTensor(context, 0, TensorProto::INT32, {batch, -1, -1});
  setTensor(context, 1, TensorProto::FLOAT, {batch, -1});
  setTensor(context, 2, TensorProto::FLOAT, {-1, batch, -1, -1});
}

namespace {

/// What the search itself carries.
struct Beams {
  /// Texts that grow [rows, length]; the sums of their scores [batch, beams].
  Name sequences, sums;
  /// Texts that have ended, the best first: scores [batch, beams], tokens
  /// [batch, beams, longest], how many there are [batch, 1].
  Name scores, texts, counts;
  /// Which prompts need no further search [batch, 1].
  Name done;

  Names all() const { return {sequences, sums, scores, texts, counts, done}; }
  static Beams of(const Names &values, size_t first) {
    auto at = values.begin() + first;
    return {at[0], at[1], at[2], at[3], at[4], at[5]};
  }
};

/// What a step chose.
struct Choice {
  Beams beams;
  /// The next token of each text [rows, 1], and the row that the text is
  /// continued from [rows].
  Name tokens, origin;
  /// The scores of all continuations [batch, beams, words].
  Name scores;
};

class BeamSearch {
public:
  BeamSearch(Body &b, const Name &batch);

  /// A matrix for prompts as one for texts, and whatever has prompts first.
  Name perBeam(const Name &value) { return b.op("Gather", {value, prompt}); }
  /// Begins with texts [rows, length].
  Beams start(const Name &sequences);
  void carry(const Beams &beams, LoopState &state);
  Choice choose(const Beams &beams, const Name &logits, const Name &step);
  void finish(Beams beams);
  /// Gives the scores of all steps, `steps` at most.
  void giveScores(const Name &scores, const Name &steps);
  /// The rows to take the past from.
  Name pastOrigin(const Name &origin);

  Generation g;
  Name rows;

private:
  Name scalarOf(int64_t value) { return b.integer(value); }
  Name shape(Names sizes) { return b.concat(sizes, 0); }
  /// A sum of scores by what texts of `length` are divided by.
  Name score(const Name &sum, const Name &length) {
    Name size = b.cast(length, TensorProto::FLOAT);
    return b.op("Div", {sum, b.op("Pow", {size, penalty})});
  }
  Name none() {
    return b.scalar(-std::numeric_limits<double>::infinity(),
                    TensorProto::FLOAT);
  }
  /// Elements [batch, k] of [batch, n, ...].
  Name pick(const Name &value, const Name &at) {
    return b.op("GatherND", {value, b.unsqueeze(at, {2})}, {{"batch_dims", 1}});
  }
  /// Texts [batch, beams, length] up to the longest.
  Name padded(const Name &texts, const Name &length);
  /// Adds ended texts: scores [batch, beams], -inf where there is none.
  void add(Beams &beams, const Name &scores, const Name &texts,
           const Name &areThere);
  Name isDone(const Beams &beams, const Name &values, const Name &length);

  Body &b;
  Name batch, beams, penalty;
  /// The prompt of each text [rows]; each text's number in 0 ... rows - 1.
  Name prompt, row;
};

BeamSearch::BeamSearch(Body &b, const Name &batch) : g(b), b(b), batch(batch) {
  beams = b.cast(g.number("num_beams"), TensorProto::INT64);
  rows = b.mul(batch, beams);
  row = b.iota(rows);
  prompt = b.op("Div", {row, beams});
  penalty = b.has("length_penalty")
                ? b.cast(g.number("length_penalty"), TensorProto::FLOAT)
                : b.scalar(1, TensorProto::FLOAT);
  if (!g.prefixMask.empty())
    g.prefixMask = perBeam(g.prefixMask);
  if (b.is("WhisperBeamSearch") && b.has("temperature"))
    g.temperature = b.cast(g.number("temperature"), TensorProto::FLOAT);
}

Beams BeamSearch::start(const Name &sequences) {
  Beams result;
  result.sequences = sequences;
  Name perPrompt = shape({batch, beams});
  Name isFirst = b.op("Equal", {b.iota(beams), b.integer(0)});
  // Lest all beams of a prompt go the same way.
  Name sums = b.op("Where", {isFirst, b.scalar(0, TensorProto::FLOAT),
                             b.scalar(-1e9, TensorProto::FLOAT)});
  result.sums = b.op("Expand", {sums, perPrompt});
  result.scores = b.op("Expand", {none(), perPrompt});
  result.texts = g.padding(shape({batch, beams, g.maxLength}));
  Name perBatch = shape({batch, b.ints({1})});
  result.counts = b.op("Expand", {b.integer(0), perBatch});
  result.done = b.op("Expand", {b.scalar(0, TensorProto::BOOL), perBatch});
  return result;
}

void BeamSearch::carry(const Beams &beams, LoopState &state) {
  state.add(beams.sequences, TensorProto::INT32, {-1, -1});
  state.add(beams.sums, TensorProto::FLOAT, {-1, -1});
  state.add(beams.scores, TensorProto::FLOAT, {-1, -1});
  state.add(beams.texts, TensorProto::INT32, {-1, -1, -1});
  state.add(beams.counts, TensorProto::INT64, {-1, 1});
  state.add(beams.done, TensorProto::BOOL, {-1, 1});
}

Name BeamSearch::padded(const Name &texts, const Name &length) {
  Name left = b.sub(g.maxLength, length);
  return b.concat({texts, g.padding(shape({batch, beams, left}))}, 2);
}

void BeamSearch::add(Beams &to, const Name &scores, const Name &texts,
                     const Name &areThere) {
  Names best =
      b.op(2, "TopK", {b.concat({to.scores, scores}, 1), beams}, {{"axis", 1}});
  to.scores = best[0];
  to.texts = pick(b.concat({to.texts, texts}, 1), best[1]);
  Name more =
      b.op("ReduceSum", {b.cast(areThere, TensorProto::INT64), b.ints({1})});
  to.counts = b.op("Min", {b.add(to.counts, more), beams});
}

/// Whether a prompt has as many ended texts as it may, and none that grows can
/// become better. onnxruntime takes the best score that can be had from the
/// scores of two prompts: those that are `beams` for each prompt from the first
/// on, where a prompt has twice as many.
Name BeamSearch::isDone(const Beams &to, const Name &values,
                        const Name &length) {
  Name isFull = b.op("Equal", {to.counts, beams});
  if (b.getInt("early_stopping") == 1)
    return isFull;
  Name two = b.integer(2);
  Name first = b.unsqueeze(b.mul(b.iota(batch), beams), {1});
  Name window = b.add(first, b.unsqueeze(b.iota(b.mul(beams, two)), {0}));
  Name seen = b.op("Gather", {b.reshape(values, {-1}), window});
  Name best = b.op("ReduceMax", {seen, b.ints({1})});
  Name last = b.sub(beams, b.integer(1));
  Name worst = b.slice(to.scores, last, beams, 1);
  Name canImprove = b.op("Less", {worst, score(best, length)});
  return b.op("And", {isFull, b.op("Not", {canImprove})});
}

Choice BeamSearch::choose(const Beams &from, const Name &logits,
                          const Name &step) {
  Name length = b.sizeOf(from.sequences, 1);
  Name all = b.op("LogSoftmax", {g.lastLogits(logits)}, {{"axis", -1}});
  all = g.adjust(all, from.sequences, step);
  all = b.add(all, b.reshape(from.sums, {-1, 1}));
  Name words = b.sizeOf(all, 1);
  Choice result;
  result.scores = b.op("Reshape", {all, shape({batch, beams, words})});
  Name twice = b.mul(beams, b.integer(2));
  Names best =
      b.op(2, "TopK",
           {b.op("Reshape", {all, shape({batch, b.mul(beams, words)})}), twice},
           {{"axis", 1}});
  Name beam = b.op("Div", {best[1], words});
  Name token = b.op("Mod", {best[1], words});
  Name isEnd = b.op("Equal", {token, b.integer(g.eos)});

  // What ends a text counts among the first half only.
  Beams &to = result.beams;
  to = from;
  auto firstHalf = [&](const Name &value) {
    return b.slice(value, b.ints({0}), beams, 1);
  };
  Name ends = b.op("And", {firstHalf(isEnd), b.op("Not", {from.done})});
  Name endScores =
      b.op("Where", {ends, score(firstHalf(best[0]), length), none()});
  Name texts = b.op("Reshape", {from.sequences, shape({batch, beams, length})});
  add(to, endScores, padded(pick(texts, firstHalf(beam)), length), ends);

  // The first ones of those that end no text, in their order.
  Name rank = b.sub(twice, b.iota(twice));
  Name goesOn = b.op("Where", {isEnd, b.integer(0), rank});
  Name chosen = b.op(2, "TopK", {goesOn, beams}, {{"axis", 1}})[1];
  auto unlessDone = [&](const Name &otherwise, const Name &value) {
    return b.op("Where", {from.done, otherwise, pick(value, chosen)});
  };
  to.sums = unlessDone(b.scalar(0, TensorProto::FLOAT), best[0]);
  result.tokens = b.reshape(
      b.cast(unlessDone(b.integer(g.pad), token), TensorProto::INT32), {-1, 1});
  Name firstRow = b.unsqueeze(b.mul(b.iota(batch), beams), {1});
  result.origin =
      b.reshape(unlessDone(b.integer(0), b.add(beam, firstRow)), {-1});
  to.sequences = b.concat(
      {b.op("Gather", {from.sequences, result.origin}), result.tokens}, 1);
  to.done = b.op("Or", {from.done, isDone(to, best[0], length)});
  return result;
}

Name BeamSearch::pastOrigin(const Name &origin) {
  // A single beam keeps its past, also when its prompt is done.
  return b.op("Where", {b.op("Equal", {beams, b.integer(1)}), row, origin});
}

void BeamSearch::finish(Beams from) {
  Name length = b.sizeOf(from.sequences, 1);
  Name isOpen = b.op("Not", {from.done});
  Name scores = b.op("Where", {isOpen, score(from.sums, length), none()});
  Name texts = b.op("Reshape", {from.sequences, shape({batch, beams, length})});
  Name areThere = b.op("Expand", {isOpen, shape({batch, beams})});
  add(from, scores, padded(texts, length), areThere);
  Name wanted = b.cast(g.number("num_return_sequences"), TensorProto::INT64);
  auto first = [&](const Name &value) {
    return b.slice(value, b.ints({0}), wanted, 1);
  };
  b.give("sequences", first(from.texts));
  if (b.wants("sequences_scores"))
    b.give("sequences_scores", first(from.scores));
}

void BeamSearch::giveScores(const Name &scores, const Name &steps) {
  Name left = b.sub(steps, b.sizeOf(scores, 0));
  Name rest =
      b.op("Expand", {b.scalar(0, TensorProto::FLOAT),
                      shape({left, b.op("Shape", {scores}, {{"start", 1}})})});
  b.give("scores", b.concat({scores, rest}, 0));
}

/// The search with a decoder of GPT's form.
void searchGpt(Body &b) {
  requireGpt(b);
  Name prompts = b.in("input_ids");
  BeamSearch search(b, b.sizeOf(prompts, 0));
  Name ids = search.perBeam(prompts);
  Name mask =
      b.has("attention_mask") ? search.perBeam(b.in("attention_mask")) : Name();
  GptCalls calls(search.g, ids, mask);
  LoopState state;
  calls.carry(state);
  size_t beamsAt = state.size();
  search.carry(search.start(ids), state);
  Name steps = b.sub(search.g.maxLength, b.sizeOf(prompts, 1));
  bool wantsScores = b.wants("scores");
  Names results = runSteps(
      b, steps, state, wantsScores,
      [&](const GraphProto &decoder, const Name &step, const Names &values) {
        Name logits = calls.call(decoder, values, 0);
        Choice choice = search.choose(Beams::of(values, beamsAt), logits, step);
        Names next = {search.g.anyFalse(choice.beams.done)};
        for (const Name &value :
             calls.next(choice.tokens, search.pastOrigin(choice.origin)))
          next.push_back(value);
        for (const Name &value : choice.beams.all())
          next.push_back(value);
        if (wantsScores)
          next.push_back(choice.scores);
        return next;
      });
  search.finish(Beams::of(results, beamsAt));
  if (wantsScores)
    search.giveScores(results.back(), steps);
}

//===----------------------------------------------------------------------===//
// Encoders and decoders
//===----------------------------------------------------------------------===//

/// What an encoder gives a decoder. Encoders of T5's form take input_ids and
/// their mask, those of Whisper's features; either may take the first tokens of
/// the texts, and gives logits, hidden states and the decoder's first presents
/// then. All give a key and a value for each layer.
///
/// A decoder takes tokens; in T5's form the encoder's ids, which may be left
/// out, and their mask; hidden states, which may be left out; and for each
/// layer a key and a value of the texts, and of what is encoded.
class EncoderDecoder {
public:
  EncoderDecoder(BeamSearch &search, Body &b, bool isWhisper);
  void run();

private:
  const ::onnx::TypeProto::Tensor &decoderInput(int i) const {
    return decoder.input(i).type().tensor_type();
  }
  bool isIds(int i) const {
    return decoderInput(i).elem_type() == TensorProto::INT32 &&
           decoderInput(i).shape().dim_size() == 2;
  }
  Name encoderMask();
  Name firstTokens();
  /// Whether the decoder takes all tokens again, not only the last.
  bool takesAllTokens() const {
    const auto &shape = decoderInput(0).shape();
    return !shape.dim(1).has_dim_value() || shape.dim(1).dim_value() != 1;
  }

  BeamSearch &search;
  Body &b;
  bool isWhisper;
  const GraphProto &encoder, &decoder;
  /// Numbers of the decoder's presents, and of its inputs before the pasts.
  int presents, before;
};

EncoderDecoder::EncoderDecoder(BeamSearch &search, Body &b, bool isWhisper)
    : search(search), b(b), isWhisper(isWhisper),
      encoder(*b.getGraph("encoder")), decoder(*b.getGraph("decoder")),
      presents(decoder.output_size() - 1) {
  int inputs = decoder.input_size();
  before = 1;
  while (!isWhisper && before < std::min(inputs, 3) && isIds(before))
    ++before;
  if (before < inputs && decoderInput(before).shape().dim_size() == 3)
    ++before;
  if (inputs == 0 || !isIds(0) || presents < 2 || presents % 2 ||
      inputs != before + 2 * presents || (!isWhisper && before == 1))
    b.refuse("its graph 'decoder' has " + llvm::Twine(inputs) + " inputs and " +
             llvm::Twine(presents + 1) + " outputs, which are not those of " +
             (isWhisper ? "Whisper" : "T5") +
             " without memory that pasts and presents share");
  for (int i = before; i < inputs; ++i)
    if (const auto &shape = decoderInput(i).shape();
        shape.dim_size() != 4 || shape.dim(1).dim_value() < 1 ||
        shape.dim(3).dim_value() < 1)
      b.refuse("its graph 'decoder' must take [rows, heads, length, size] with "
               "a known number and size of heads as input " +
               llvm::Twine(i));
}

Name EncoderDecoder::encoderMask() {
  if (b.has("attention_mask"))
    return b.in("attention_mask");
  // What pads the text before it; another such token may be its end.
  Name isWord = b.op(
      "Not", {b.op("Equal", {b.in("input_ids"),
                             b.scalar(search.g.pad, TensorProto::INT32)})});
  Name words =
      b.op("CumSum", {b.cast(isWord, TensorProto::INT32), b.integer(1)});
  return b.op("Min", {words, b.scalar(1, TensorProto::INT32)});
}

Name EncoderDecoder::firstTokens() {
  if (b.has("decoder_input_ids")) {
    if (isWhisper)
      return b.in("decoder_input_ids");
    b.refuseInput("decoder_input_ids");
  }
  int64_t token = b.getInt("decoder_start_token_id", -1);
  if (token < 0)
    b.refuse("attribute 'decoder_start_token_id' is " + llvm::Twine(token));
  return b.op("Expand",
              {b.scalar(token, TensorProto::INT32),
               b.concat({b.sizeOf(b.in("input_ids"), 0), b.ints({1})}, 0)});
}

void EncoderDecoder::run() {
  Name mask = isWhisper ? Name() : encoderMask();
  Name first = firstTokens();
  Names given = {b.in("input_ids")};
  if (!isWhisper)
    given.push_back(mask);
  bool startsTexts = encoder.input_size() == int(given.size()) + 1;
  if (startsTexts)
    given.push_back(first);
  int outputs = startsTexts ? 2 + 2 * presents : presents;
  if (encoder.input_size() != int(given.size()) ||
      encoder.output_size() != outputs || (isWhisper && !startsTexts))
    b.refuse("its graph 'encoder' has " + llvm::Twine(encoder.input_size()) +
             " inputs and " + llvm::Twine(encoder.output_size()) +
             " outputs, which do not fit the " + llvm::Twine(presents + 1) +
             " outputs of 'decoder'");
  bool takesStates =
      decoderInput(before - 1).shape().dim_size() == 3 && before > 1;
  if (takesStates && !startsTexts)
    b.refuse(
        "its graph 'decoder' takes hidden states, which 'encoder' does not "
        "give");
  Names encoded = b.call(encoder, given);

  // What stays as it is through all steps.
  Names fixed;
  for (int i = 1; i < before - takesStates; ++i)
    fixed.push_back(search.perBeam(
        i + 1 < before - takesStates ? b.in("input_ids") : mask));
  if (takesStates)
    fixed.push_back(search.perBeam(encoded[1]));
  Names cross;
  for (auto it = encoded.end() - presents; it != encoded.end(); ++it)
    cross.push_back(search.perBeam(*it));

  Name sequences = search.perBeam(first);
  Beams beams = search.start(sequences);
  Name tokens = sequences, scores;
  Name steps = b.sub(search.g.maxLength, b.sizeOf(first, 1)), trips = steps;
  bool wantsScores = b.wants("scores");
  Names past;
  if (startsTexts) {
    Choice choice =
        search.choose(beams, search.perBeam(encoded[0]), b.integer(0));
    beams = choice.beams;
    tokens = choice.tokens;
    scores = choice.scores;
    trips = b.sub(steps, b.integer(1));
    for (int i = 0; i < presents; ++i)
      past.push_back(search.perBeam(encoded[2 + i]));
  }
  LoopState state;
  state.add(takesAllTokens() ? beams.sequences : tokens, TensorProto::INT32,
            {-1, -1});
  for (int i = 0; i < presents; ++i) {
    const auto &type = decoderInput(before + i);
    int64_t heads = type.shape().dim(1).dim_value();
    int64_t size = type.shape().dim(3).dim_value();
    if (!startsTexts)
      past.push_back(b.op(
          "Expand", {b.scalar(0, type.elem_type()),
                     b.concat({search.rows, b.ints({heads, 0, size})}, 0)}));
    state.add(past[i], type.elem_type(), {-1, heads, -1, size});
  }
  size_t beamsAt = state.size();
  search.carry(beams, state);
  Names results = runSteps(
      b, trips, state, wantsScores,
      [&](const GraphProto &graph, const Name &step, const Names &values) {
        Names inputs = {values[0]};
        inputs.insert(inputs.end(), fixed.begin(), fixed.end());
        inputs.insert(inputs.end(), values.begin() + 1,
                      values.begin() + 1 + presents);
        inputs.insert(inputs.end(), cross.begin(), cross.end());
        Names made = b.call(graph, inputs);
        Choice choice =
            search.choose(Beams::of(values, beamsAt), made[0], step);
        Names next = {search.g.anyFalse(choice.beams.done),
                      takesAllTokens() ? choice.beams.sequences
                                       : choice.tokens};
        Name origin = search.pastOrigin(choice.origin);
        for (int i = 0; i < presents; ++i)
          next.push_back(b.op("Gather", {made[1 + i], origin}));
        for (const Name &value : choice.beams.all())
          next.push_back(value);
        if (wantsScores)
          next.push_back(choice.scores);
        return next;
      },
      startsTexts);
  search.finish(Beams::of(results, beamsAt));
  if (!wantsScores)
    return;
  Name all = results.back();
  if (startsTexts)
    all = b.concat({b.unsqueeze(scores, {0}), all}, 0);
  search.giveScores(all, steps);
}

/// The search with an encoder and a decoder.
void searchEncoded(Body &b, bool isWhisper) {
  if (!b.getGraph("encoder"))
    b.refuse("attribute 'encoder' is left out");
  if (b.getGraph("init_decoder"))
    b.refuse("attribute 'init_decoder' is not supported with an encoder");
  if (int64_t rank = isWhisper ? 3 : 2;
      b.rank("input_ids").value_or(rank) != rank)
    b.refuse("input 'input_ids' has rank " +
             llvm::Twine(b.requireRank("input_ids")) + ", and must have " +
             llvm::Twine(rank));
  BeamSearch search(b, b.sizeOf(b.in("input_ids"), 0));
  EncoderDecoder(search, b, isWhisper).run();
}

} // namespace

void buildBeamSearch(Body &b) {
  if (b.elementType("input_ids") != TensorProto::INT32)
    b.refuse("input 'input_ids' must be int32");
  // Whatever logits_processor says concerns Whisper only.
  switch (b.getInt("model_type")) {
  case 0:
    return searchGpt(b);
  case 1:
    return searchEncoded(b, /*isWhisper=*/false);
  }
  b.refuse("attribute 'model_type' is " + llvm::Twine(b.getInt("model_type")) +
           ", which is neither that of GPT nor of T5");
}

void buildWhisperBeamSearch(Body &b) {
  b.refuseUnless("model_type", 2);
  b.refuseUnless("decoder_output_cross_qk", 0);
  for (const char *input : {"cross_qk_layer_head", "extra_decoding_ids"})
    b.refuseInput(input);
  for (const char *output : {"cross_qk", "non_speech_probs"})
    b.refuseOutput(output);
  searchEncoded(b, /*isWhisper=*/true);
}

} // namespace sardonyx::contrib
