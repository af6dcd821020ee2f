//===- Branches.cpp - Residual streams of several branches ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All is computed in f32, and rounded to the type of the streams at the end.
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/Body.h"

using ::onnx::TensorProto;

namespace sardonyx::contrib {

namespace {
/// Streams with their branches as an axis of their own.
class Streams {
public:
  Streams(Body &b, llvm::StringRef input)
      : b(b), input(input), branches(b.getInt("num_branches")) {
    rank = b.requireRank(input) + (branches > 0);
    if (branches < 0 || rank < 2)
      b.refuse("input '" + input + "' has no axis of branches");
    all = wide(input);
    if (branches > 0)
      all = split(all, rank - 1, b.size(input, -1));
    else
      branches = b.size(input, -2);
  }

  Name wide(llvm::StringRef name) {
    return b.cast(b.in(name), TensorProto::FLOAT);
  }

  /// Gates with as many axes as the streams: they may lack the last one, or
  /// have both side by side.
  Name gates(llvm::StringRef name) {
    Name value = wide(name);
    int64_t given = b.requireRank(name), last = b.size(name, -1);
    if (given == rank)
      return value;
    if (given != rank - 1)
      b.refuse("input '" + name + "' has rank " + llvm::Twine(given) +
               ", and the streams " + llvm::Twine(rank));
    if (last < 0 || branches < 0)
      b.refuseUnknown("the last axis of '" + name + "' has no known size");
    return last == branches ? b.unsqueeze(value, {-1})
                            : split(value, given, last);
  }

  void give(llvm::StringRef output, const Name &value) {
    b.give(output, b.cast(value, b.elementType(input)));
  }

  Body &b;
  llvm::StringRef input;
  int64_t branches, rank;
  Name all;

private:
  /// The last axis, of `last` elements, of a value of `given` axes as branches
  /// and their elements. Sizes that are known are written: -1 tells nothing
  /// where there are no elements.
  Name split(const Name &value, int64_t given, int64_t last) {
    Names shape = {b.ints({branches, last < 0 ? -1 : last / branches})};
    if (given > 1)
      shape.insert(shape.begin(), b.op("Shape", {value}, {{"end", -1}}));
    return b.op("Reshape", {value, b.concat(shape, 0)});
  }
};
} // namespace

void buildBranchwiseRMSNorm(Body &b) {
  Streams x(b, "X");
  Name mean = b.op("ReduceMean", {b.mul(x.all, x.all), b.ints({-1})});
  Name sum = b.add(mean, b.scalar(b.getFloat("epsilon"), TensorProto::FLOAT));
  Name y = b.op("Div", {x.all, b.op("Sqrt", {sum})});
  if (b.has("scale")) {
    Name scale = x.wide("scale");
    if (b.requireRank("scale") == 1) {
      // Of one branch, or of all side by side.
      int64_t width = b.size("X", -1), size = b.size("scale", 0);
      if (width < 0 || size < 0 || x.branches < 1)
        b.refuseUnknown("the size of a branch is not known");
      bool isOfAll =
          size != (b.getInt("num_branches") ? width / x.branches : width);
      if (isOfAll)
        scale = b.reshape(scale, {x.branches, size / x.branches});
    }
    y = b.mul(y, scale);
  }
  x.give("Y", b.op("Reshape", {y, b.op("Shape", {b.in("X")})}));
}

void buildHyperConnectionPreMix(Body &b) {
  Streams streams(b, "streams");
  Name sum = b.op("ReduceSum",
                  {b.mul(streams.all, streams.gates("pre_mix")), b.ints({-2})},
                  {{"keepdims", 0}});
  Name scale = b.scalar(b.getFloat("reduction_scale"), TensorProto::FLOAT);
  streams.give("output", b.mul(scale, sum));
}

void buildHyperConnectionPostMix(Body &b) {
  Streams streams(b, "streams");
  Name mixed = streams.all;
  if (b.has("stream_mix")) {
    Ints perm;
    for (int64_t i = 0; i < streams.rank; ++i)
      perm.push_back(i);
    std::swap(perm[streams.rank - 1], perm[streams.rank - 2]);
    mixed =
        b.op("MatMul", {b.transpose(streams.wide("stream_mix"), perm), mixed});
  }
  Name block = b.unsqueeze(streams.wide("block_output"), {-2});
  Name sum = b.add(mixed, b.mul(streams.gates("post_mix"), block));
  streams.give("output",
               b.op("Reshape", {sum, b.op("Shape", {b.in("streams")})}));
}

void buildScaledSiLU(Body &b) {
  int type = b.elementType("X");
  // Each step is rounded.
  auto rounded = [&](const Name &value) {
    return b.cast(b.cast(value, type), TensorProto::FLOAT);
  };
  Name scale = b.has("scale")
                   ? b.cast(b.reshape(b.in("scale"), {}), TensorProto::FLOAT)
                   : b.scalar(b.getFloat("alpha"), TensorProto::FLOAT);
  Name scaled = rounded(b.mul(scale, b.cast(b.in("X"), TensorProto::FLOAT)));
  Name share = rounded(b.op("Sigmoid", {scaled}));
  b.give("Y", b.cast(b.mul(scaled, share), type));
}

} // namespace sardonyx::contrib
