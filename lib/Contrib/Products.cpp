//===- Products.cpp - Matrix products and convolutions --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Activations.h"
#include "lib/Contrib/Body.h"
#include "lib/Contrib/ChannelsLast.h"

#include <numeric>

using ::onnx::TensorProto;

namespace sardonyx::contrib {

/// An operand as MatMul wants it. transBatch takes the first axis behind the
/// batch axes, trans swaps the last two; both leave vectors alone.
static Name transposed(Body &b, llvm::StringRef input, bool trans,
                       bool transBatch) {
  if (!trans && !transBatch)
    return b.in(input);
  int64_t rank = b.requireRank(input);
  if (rank < 2)
    return b.in(input);
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  if (transBatch)
    std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (trans)
    std::swap(perm[rank - 2], perm[rank - 1]);
  return b.transpose(b.in(input), perm);
}

void buildFusedMatMul(Body &b) {
  bool hasBatch = !b.is("TransposeMatMul");
  Name left = transposed(b, "A", b.getInt("transA"),
                         hasBatch && b.getInt("transBatchA"));
  Name right = transposed(b, "B", b.getInt("transB"),
                          hasBatch && b.getInt("transBatchB"));
  Name product = b.op("MatMul", {left, right});
  float alpha = b.getFloat("alpha");
  if (alpha != 1.0f)
    product = b.mul(product, b.scalarLike(alpha, "A"));
  b.give("Y", product);
}

void buildFusedGemm(Body &b) {
  Attrs attrs;
  b.pass(attrs, {"alpha", "beta", "transA", "transB"});
  Name product = b.op("Gemm", {b.in("A"), b.in("B"), b.in("C")}, attrs);
  std::vector<float> params;
  for (const char *name :
       {"activation_alpha", "activation_beta", "activation_gamma"})
    if (b.given(name))
      params.push_back(b.getFloat(name));
  b.give("Y", activate(b, product, params, b.elementType("A")));
}

/// FusedConv and NhwcFusedConv. Weights are [outputs, inputs per group, ...] in
/// either layout.
void buildFusedConv(Body &b) {
  Attrs attrs;
  b.pass(attrs,
         {"auto_pad", "kernel_shape", "dilations", "strides", "pads", "group"});
  bool isLast = b.is("NhwcFusedConv");
  int64_t rank = isLast ? spatialRank(b, "X") : 0;
  Name x = isLast ? toChannelsFirst(b, b.in("X"), rank) : b.in("X");
  Name y = b.op("Conv", {x, b.in("W"), b.in("B")}, attrs);
  if (isLast)
    y = toChannelsLast(b, y, rank);
  Name sum = b.addIfThere(y, b.in("Z"));
  b.give("Y", activate(b, sum, b.getFloats("activation_params"),
                       b.elementType("X")));
}

} // namespace sardonyx::contrib
