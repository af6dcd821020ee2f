//===- Normalizations.cpp - Layer normalisations --------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// What a row is multiplied by, as RMSNormalization does not tell it.
static Name inverseRootMeanSquare(Body &b, const Name &value, int64_t firstAxis,
                                  int64_t rank, float epsilon, int type) {
  Ints axes;
  for (int64_t axis = firstAxis; axis < rank; ++axis)
    axes.push_back(axis);
  Name x = b.cast(value, type);
  Name mean = b.op("ReduceMean", {b.mul(x, x), b.ints(axes)});
  Name root = b.op("Sqrt", {b.add(mean, b.scalar(epsilon, type))});
  return b.op("Reciprocal", {root});
}

void buildSimplifiedLayerNormalization(Body &b) {
  int64_t axis = b.getInt("axis");
  float epsilon = b.getFloat("epsilon");
  b.refuseUnless("stash_type", TensorProto::FLOAT);
  // Doubles are not narrowed.
  int stash = b.elementType("X") == TensorProto::DOUBLE ? TensorProto::DOUBLE
                                                        : TensorProto::FLOAT;
  // The result has the type of the scale, and ONNX's normalisation that of X.
  b.give("Y",
         b.op("RMSNormalization", {b.in("X"), b.in("scale")},
              {{"axis", axis}, {"epsilon", epsilon}, {"stash_type", stash}}));
  if (!b.wants("inv_std_var"))
    return;
  int64_t rank = b.requireRank("X");
  int64_t first = axis < 0 ? axis + rank : axis;
  if (first < 0 || first >= rank)
    b.refuse("axis is out of range");
  b.give("inv_std_var",
         inverseRootMeanSquare(b, b.in("X"), first, rank, epsilon, stash));
}

/// SkipLayerNormalization and SkipSimplifiedLayerNormalization.
void buildSkipLayerNormalization(Body &b) {
  float epsilon = b.getFloat("epsilon");
  Name sum = b.addIfThere(b.add(b.in("input"), b.in("skip")), b.in("bias"));
  if (b.is("SkipLayerNormalization")) {
    Names results =
        b.op(3, "LayerNormalization", {sum, b.in("gamma"), b.in("beta")},
             {{"axis", -1}, {"epsilon", epsilon}});
    b.give("output", results[0]);
    if (b.wants("mean"))
      b.give("mean", results[1]);
    if (b.wants("inv_std_var"))
      b.give("inv_std_var", results[2]);
  } else {
    b.refuseOutput("mean");
    b.give("output", b.op("RMSNormalization", {sum, b.in("gamma")},
                          {{"axis", -1}, {"epsilon", epsilon}}));
    if (b.wants("inv_std_var"))
      b.give("inv_std_var",
             inverseRootMeanSquare(b, sum, -1, 0, epsilon, TensorProto::FLOAT));
  }
  if (b.wants("input_skip_bias_sum"))
    b.give("input_skip_bias_sum", sum);
}

} // namespace sardonyx::contrib
