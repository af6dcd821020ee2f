//===- Tokens.cpp - Strings and the numbers of words ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Tokens.h"
#include "lib/Contrib/Inference.h"

#include <limits>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

void inferMurmurHash3(::onnx::InferenceContext &context) {
  const auto *positive = context.getAttribute("positive");
  auto &type = *context.getOutputType(0)->mutable_tensor_type();
  type = context.getInputType(0)->tensor_type();
  type.set_elem_type(positive && !positive->i() ? TensorProto::INT32
                                                : TensorProto::UINT32);
}

void inferTokenizer(::onnx::InferenceContext &context) {
  auto sizes = sizesOf(context, 0);
  if (!sizes)
    return;
  // There is no axis of tokens where there are no strings.
  if (sizes->empty() || sizes->back() != 0)
    sizes->push_back(-1);
  setTensor(context, 0, TensorProto::STRING, *sizes);
}

void inferBifurcationDetector(::onnx::InferenceContext &context) {
  setTensor(context, 0, TensorProto::INT64, {-1});
  if (auto sizes = sizesOf(context, 2))
    setTensor(context, 1, TensorProto::INT64, *sizes);
}

Name findRepeats(Body &b, const Name &ids, const Name &scores, int64_t length) {
  // Each token of an n-gram is compared by nodes of its own.
  constexpr int64_t most = 64;
  if (length > most)
    b.refuse("n-grams of " + llvm::Twine(length) + " tokens are longer than " +
             llvm::Twine(most));
  // Slices clamp their bounds, so that none is left of a row that is too short.
  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  Name last = b.slice(ids, length - 1, end, 1);
  Name repeats;
  for (int64_t i = 0; i + 1 < length; ++i) {
    int64_t behind = i + 1 - length;
    Name tail = b.slice(ids, behind, behind == -1 ? end : behind + 1, 1);
    Name same = b.op("Equal", {b.slice(ids, i, behind, 1), tail});
    repeats = repeats.empty() ? same : b.op("And", {repeats, same});
  }
  Name marks = repeats.empty()
                   ? b.op("Expand", {b.scalar(1, TensorProto::INT32),
                                     b.op("Shape", {last})})
                   : b.cast(repeats, TensorProto::INT32);
  // Scores may have no place for tokens that repeat nothing.
  if (!repeats.empty())
    last = b.mul(last, b.op("CastLike", {repeats, last}));
  Name none = b.op("Expand",
                   {b.scalar(0, TensorProto::INT32), b.op("Shape", {scores})});
  Name found = b.op("ScatterElements", {none, last, marks},
                    {{"axis", 1}, {"reduction", "max"}});
  return b.cast(found, TensorProto::BOOL);
}

void buildNGramRepeatBlock(Body &b) {
  int64_t length = b.getInt("ngram_size");
  if (length < 1)
    b.refuse("attribute 'ngram_size' is " + llvm::Twine(length) +
             ", and must be positive");
  if (b.requireRank("input_ids") != 2 || b.requireRank("scores") != 2)
    b.refuse("inputs 'input_ids' and 'scores' must be matrices");
  Name scores = b.in("scores");
  Name lowest = b.scalar(-std::numeric_limits<double>::infinity(),
                         b.elementType("scores"));
  Name isRepeat = findRepeats(b, b.in("input_ids"), scores, length);
  b.give("scores_out", b.op("Where", {isRepeat, lowest, scores}));
}

} // namespace sardonyx::contrib
