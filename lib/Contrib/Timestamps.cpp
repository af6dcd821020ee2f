//===- Timestamps.cpp - Whisper's rules of timestamps ---------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts of Whisper have timestamps, the tokens from
// beginning_timestamp_token_id on: one where the speech begins, then pairs that
// do not decrease.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Generation.h"

#include <limits>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

namespace {
class Timestamps {
public:
  Timestamps(Generation &g, const Name &scores, const Name &ids)
      : b(g.b), ids(ids), scores(scores), length(b.sizeOf(ids, 1)),
        word(b.iota(b.sizeOf(scores, 1))),
        begin(b.integer(b.getInt("beginning_timestamp_token_id", -1))),
        eos(b.integer(g.eos)) {}

  Name apply();

private:
  Name is(const char *comparison, const Name &x, const Name &y) {
    return b.op(comparison, {x, y});
  }
  Name both(const Name &x, const Name &y) { return b.op("And", {x, y}); }
  Name either(const Name &x, const Name &y) { return b.op("Or", {x, y}); }
  Name no(const Name &x) { return b.op("Not", {x}); }
  Name token(const char *attribute) {
    return is("Equal", word, b.integer(b.getInt(attribute, -1)));
  }
  Name lowest() {
    return b.scalar(std::numeric_limits<float>::lowest(), TensorProto::FLOAT);
  }
  void forbid(const Name &words) {
    scores = b.op("Where", {words, lowest(), scores});
  }
  /// The largest score of the words that hold, [rows, 1].
  Name largest(const Name &words) {
    return b.op("ReduceMax",
                {b.op("Where", {words, scores, lowest()}), b.ints({1})});
  }
  void preferTimestamps(const Name &isTime);

  Body &b;
  Name ids, scores, length;
  /// The numbers of all words [words], of the first timestamp, of the end.
  Name word, begin, eos;
};

Name Timestamps::apply() {
  Name isTime = is("GreaterOrEqual", word, begin);
  Name wasTime = is("GreaterOrEqual", ids, begin);
  Name place = b.iota(length), none = b.integer(-1);
  Name one = b.integer(1);
  // How many tokens there are up to the first timestamp, [rows, 1].
  Name first =
      b.op("ReduceMin", {b.op("Where", {wasTime, place, length}), b.ints({1})});
  Name start = b.op("Min", {b.add(first, one), length});
  Name isBehind = is("Greater", length, start);
  forbid(
      either(token("no_timestamps_token_id"), token("start_of_lm_token_id")));
  Name begins =
      either(token("decoder_start_token_id"),
             either(token("translate_token_id"), token("transcribe_token_id")));
  forbid(both(isBehind, begins));

  constexpr int64_t end = std::numeric_limits<int64_t>::max();
  Name last = b.slice(wasTime, -1, end, 1);
  // Of a text of one token that is the token itself, which does not count.
  Name beforeLast = b.op("Max", {b.sub(length, b.integer(2)), b.ints({0})});
  Name isPair = either(no(isBehind),
                       b.op("Gather", {wasTime, beforeLast}, {{"axis", 1}}));
  forbid(both(both(last, isPair), isTime));
  forbid(both(both(last, no(isPair)), is("Less", word, eos)));

  // The next one is not before the last, and behind it where that ends a pair.
  Name lastPlace =
      b.op("ReduceMax", {b.op("Where", {wasTime, place, none}), b.ints({1})});
  Name lastTime =
      b.op("GatherElements", {ids, b.op("Max", {lastPlace, b.integer(0)})},
           {{"axis", 1}});
  Name isOpen = both(last, no(isPair));
  Name least = b.op("Where", {isOpen, lastTime, b.add(lastTime, one)});
  Name isThere = is("GreaterOrEqual", lastPlace, b.integer(0));
  forbid(both(isThere, both(isTime, is("Less", word, least))));

  constexpr int64_t latestFirst = 50;
  Name isLate = is("Greater", word, b.add(begin, b.integer(latestFirst)));
  forbid(both(no(isBehind), isLate));
  preferTimestamps(isTime);
  return scores;
}

/// Where all timestamps together are likelier than any word, one of them comes.
void Timestamps::preferTimestamps(const Name &isTime) {
  Name most = largest(isTime);
  Name isPossible = both(isTime, is("Greater", scores, lowest()));
  Name zero = b.scalar(0, TensorProto::FLOAT);
  Name shares =
      b.op("Where", {isPossible, b.op("Exp", {b.sub(scores, most)}), zero});
  Name sum = b.op("ReduceSum", {shares, b.ints({1})});
  Name chance = b.op("Where", {is("Greater", sum, zero),
                               b.add(b.op("Log", {sum}), most), lowest()});
  Name isLikelier = is("Greater", chance, largest(no(isTime)));
  forbid(both(isLikelier, no(isTime)));
}
} // namespace

Name followTimestamps(Generation &g, const Name &scores, const Name &ids) {
  return Timestamps(g, scores, ids).apply();
}

} // namespace sardonyx::contrib
