//===- ChannelsLast.cpp - Convolutions and pools of [N, ..., C] -----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Contrib/ChannelsLast.h"

namespace sardonyx::contrib {

int64_t spatialRank(Body &b, llvm::StringRef input) {
  int64_t rank = b.requireRank(input);
  if (rank < 3)
    b.refuse("input '" + llvm::Twine(input) + "' has rank " +
             llvm::Twine(rank));
  return rank;
}

Name toChannelsFirst(Body &b, const Name &value, int64_t rank) {
  Ints perm = {0, rank - 1};
  for (int64_t axis = 1; axis < rank - 1; ++axis)
    perm.push_back(axis);
  return b.transpose(value, perm);
}

Name toChannelsLast(Body &b, const Name &value, int64_t rank) {
  Ints perm = {0};
  for (int64_t axis = 2; axis < rank; ++axis)
    perm.push_back(axis);
  perm.push_back(1);
  return b.transpose(value, perm);
}

/// Weights are [outputs, inputs per group, ...] in either layout.
void buildQLinearConv(Body &b) {
  Attrs attrs;
  b.pass(attrs,
         {"auto_pad", "kernel_shape", "dilations", "strides", "pads", "group"});
  bool isLast = b.getInt("channels_last") != 0;
  int64_t rank = isLast ? spatialRank(b, "x") : 0;
  Name x = isLast ? toChannelsFirst(b, b.in("x"), rank) : b.in("x");
  Name y = b.op("QLinearConv",
                {x, b.in("x_scale"), b.in("x_zero_point"), b.in("w"),
                 b.in("w_scale"), b.in("w_zero_point"), b.in("y_scale"),
                 b.in("y_zero_point"), b.in("B")},
                attrs);
  b.give("y", isLast ? toChannelsLast(b, y, rank) : y);
}

void buildNhwcMaxPool(Body &b) {
  Attrs attrs;
  b.pass(attrs, {"auto_pad", "kernel_shape", "dilations", "strides", "pads",
                 "ceil_mode"});
  int64_t rank = spatialRank(b, "x");
  Name pooled = b.op("MaxPool", {toChannelsFirst(b, b.in("x"), rank)}, attrs);
  b.give("y", toChannelsLast(b, pooled, rank));
}

} // namespace sardonyx::contrib
