//===- Heads.h - What the forms of attention share --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONTRIB_HEADS_H
#define SARDONYX_LIB_CONTRIB_HEADS_H

#include "lib/Contrib/Body.h"

namespace sardonyx::contrib {

/// [B, S, hidden] to [B, heads, S, hidden / heads]; `hidden` is -1 if not
/// known.
Name splitHeads(Body &b, const Name &value, int64_t heads, int64_t hidden);
/// [B, heads, S, size] to [B, S, heads * size].
Name mergeHeads(Body &b, const Name &value);

/// What softmax(queries * keys^T + bias) * values needs; all of rank 4.
struct Heads {
  Name query, key, value;
  /// Added to the scores; broadcasts to [B, heads, S, T]; may be missing.
  Name bias;
  /// How many of the keys are of the past, as a list of one; missing for none.
  Name past;
  int elementType;
  /// Size of a head; -1 if not known.
  int64_t headSize = -1;
  /// 0 for the inverse root of headSize.
  float scale = 0;
};

/// The products of queries and keys, scaled.
Name scores(Body &b, const Heads &heads);
/// The same plus the bias: [B, heads, S, T].
Name biasedScores(Body &b, const Heads &heads);
/// The values under the softmax of such scores: [B, heads, S, size of the
/// values].
Name weighValues(Body &b, const Heads &heads, const Name &scores);
/// The whole of it.
Name attend(Body &b, const Heads &heads);

/// Condition [S, T] under which a query sees a key: those of the past and as
/// many of the others as there are queries up to it; the last one sees all, as
/// in onnxruntime.
Name causal(Body &b, const Heads &heads);
/// The lowest number of an element type.
Name lowest(Body &b, int elementType);

/// A cache [B, heads, M, size] in which the places from `past` on, a list of
/// one or of one for each batch, are those of `fresh` [B, heads, S, size].
Name writeCache(Body &b, const Name &cache, const Name &fresh,
                const Name &past);

/// [B, S] positions of tokens that begin at `offset` ([B, 1] or [1]).
Name positions(Body &b, const Name &offset, const Name &length);
/// Queries [B, S, heads * size], keys and values [B, S, groups * size] of
/// inputs "query", "key" and "value", or of "query" alone, where they lie
/// behind one another.
struct GroupedHeads {
  int64_t heads, groups, size = 0;
  Name query, key, value;
};
void takeGroupedHeads(Body &b, GroupedHeads &all);
/// Rotates queries and keys at `positions` [B, S] by "cos_cache" and
/// "sin_cache", if `do_rotary` asks for it.
void rotateGroupedHeads(Body &b, GroupedHeads &all, const Name &positions);

/// Rotates the heads of [B, S, hidden] or [B, heads, S, size].
Name rotate(Body &b, const Name &value, const Name &cosines, const Name &sines,
            const Name &positions, int64_t heads, int64_t interleaved,
            int64_t rotaryDim);

} // namespace sardonyx::contrib

#endif // SARDONYX_LIB_CONTRIB_HEADS_H
