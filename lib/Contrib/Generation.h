//===- Generation.h - What searches for texts have in common ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GreedySearch, Sampling and BeamSearch call a decoder, a graph of theirs, once
// for each token: it is the body of a Loop, with the choice of the tokens
// behind it. A decoder of GPT's form takes
//
//   input_ids [rows, length], position_ids [rows, length],
//   attention_mask [rows, all before and length],
//   a past [2, rows, heads, before, size] for each layer
//
// and gives logits [rows, length, words] and a present for each past. The first
// call has the whole prompt and no past, all further ones a single token.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_GENERATION_H
#define SARDONYX_LIB_CONTRIB_GENERATION_H

#include "lib/Contrib/Body.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace sardonyx::contrib {

/// What a Loop carries.
struct LoopState {
  /// Carries a tensor on, whose open sizes may change; returns its position.
  size_t add(const Name &value, int elementType, const Ints &sizes);
  size_t size() const { return values.size(); }

  Names values;
  std::vector<int> elementTypes;
  std::vector<Ints> sizes;
};

/// A step of a search: from its number and what is carried to whether to go on,
/// what is carried on, and what is collected.
using SearchStep = llvm::function_ref<Names(
    const ::onnx::GraphProto &decoder, const Name &step, const Names &values)>;

/// What is carried after at most `trips` (a list of one) steps and, of each
/// step in a new first dimension, what is collected. The first step has the
/// number `firstStep`.
Names runSteps(Body &b, const Name &trips, LoopState state, size_t collected,
               SearchStep step, int64_t firstStep = 0);

class Generation {
public:
  explicit Generation(Body &b);

  /// An integer or float input of one element as a list of one.
  Name number(llvm::StringRef input);
  Name allOnes(const Name &shape) {
    return b.op("Expand", {b.scalar(1, ::onnx::TensorProto::INT32), shape});
  }
  /// The logits [rows, words] of the last position of [rows, length, words].
  Name lastLogits(const Name &logits);
  /// Scores [rows, words] with what the inputs and attributes ask for done to
  /// them, when the sequences [rows, length] are there.
  Name adjust(Name scores, const Name &sequences, const Name &step);

  /// Whether one of the booleans does not hold.
  Name anyFalse(const Name &values);
  /// The token that stands for none, in a shape.
  Name padding(const Name &shape) {
    return b.op("Expand", {b.scalar(pad, ::onnx::TensorProto::INT32), shape});
  }

  Body &b;
  const ::onnx::GraphProto *decoder;
  int64_t pad, eos;
  /// A list of one.
  Name maxLength;
  /// The mask of the first words [rows, words], and what scores are divided by,
  /// if any.
  Name prefixMask, temperature;
};

/// What a decoder of GPT's form is called with, and how that goes on.
class GptCalls {
public:
  /// Of prompts [rows, length] and their mask, if there is one.
  GptCalls(Generation &g, const Name &ids, const Name &mask);

  /// Carries all on that the next call depends on.
  void carry(LoopState &state);
  /// Calls the decoder with what is carried from `first` on; returns the
  /// logits.
  Name call(const ::onnx::GraphProto &graph, const Names &values, size_t first);
  /// What is carried on, after the call. Takes rows of the past from `origin`,
  /// if that is not empty.
  Names next(const Name &tokens, const Name &origin);

private:
  /// How much is carried before the pasts.
  static constexpr size_t kBeforePast = 4;

  Generation &g;
  Body &b;
  size_t layers;
  Name ids, positions, nextPosition, mask;
  Names past;
};

/// Scores [rows, words] without what Whisper's rules of timestamps forbid
/// behind texts of int64 [rows, length].
Name followTimestamps(Generation &g, const Name &scores, const Name &ids);

/// Refuses decoders, which the attributes `decoder` and `init_decoder` are,
/// that are not of GPT's form, and prompts that are no matrix.
void requireGpt(Body &b);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_GENERATION_H
