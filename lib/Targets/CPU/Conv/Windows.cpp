//===- Windows.cpp - Where windows of channels-last images lie ------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conv/Windows.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;

void Windows::prepare(ImplicitLocOpBuilder &b, Value input,
                      ArrayRef<Value> outputSizes) {
  IndexMath math(b);
  for (int64_t dim = 0; dim < rank(); ++dim)
    sizes.push_back(math.dim(input, 1 + dim));
  outputs.assign(outputSizes.begin(), outputSizes.end());
}

SmallVector<Value> Windows::split(ImplicitLocOpBuilder &b,
                                  Value position) const {
  IndexMath math(b);
  SmallVector<Value> indices(outputs.size());
  for (size_t dim = outputs.size() - 1; dim > 0; --dim) {
    indices[dim] = math.rem(position, outputs[dim]);
    position = math.div(position, outputs[dim]);
  }
  indices[0] = position;
  return indices;
}

Value Windows::getStart(ImplicitLocOpBuilder &b, int64_t dim, Value o) const {
  IndexMath math(b);
  return math.sub(math.mul(o, strides[dim]), math.constant(padsBegin[dim]));
}

Value Windows::isInside(ImplicitLocOpBuilder &b, int64_t dim, Value at) const {
  // Negative positions are huge when compared unsigned.
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, at,
                                       sizes[dim]);
}

Value Windows::append(ImplicitLocOpBuilder &b, Value row, int64_t dim,
                      Value at) const {
  IndexMath math(b);
  return math.add(math.mul(row, sizes[dim]), at);
}
