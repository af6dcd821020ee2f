//===- Matrices.cpp - What takes matrices as a whole ----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"
#include "lib/Contrib/Inference.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

void inferDynamicTimeWarping(::onnx::InferenceContext &context) {
  setTensor(context, 0, TensorProto::INT32, {2, -1});
}

void buildCDist(Body &b) {
  std::string metric = b.getString("metric");
  if (metric != "euclidean" && metric != "sqeuclidean")
    b.refuse("metric '" + llvm::Twine(metric) +
             "' is neither euclidean nor sqeuclidean");
  for (const char *input : {"A", "B"})
    if (int64_t rank = b.requireRank(input); rank != 2)
      b.refuse("input '" + llvm::Twine(input) + "' has rank " +
               llvm::Twine(rank) + ", and must be a matrix");
  auto squares = [&](llvm::StringRef input) {
    return b.op("ReduceSumSquare", {b.in(input), b.ints({1})});
  };
  // As sums of squares, in the order that loses least where rows are near.
  Name product = b.op("MatMul", {b.in("A"), b.transpose(b.in("B"), {1, 0})});
  Name sum = b.add(b.mul(b.scalarLike(-2, "A"), product), squares("A"));
  sum = b.op("Abs", {b.add(sum, b.transpose(squares("B"), {1, 0}))});
  b.give("C", metric == "euclidean" ? b.op("Sqrt", {sum}) : sum);
}

} // namespace sardonyx::contrib
