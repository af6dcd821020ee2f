//===- Positions.cpp - Places that data decide ----------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Movement/Positions.h"

#include "Support/Checks.h"
#include "Support/DataMovement.h"

using namespace mlir;

namespace sardonyx {

Value checkedIndex(OpBuilder &b, Location loc, Value raw, Value size) {
  Value given = toIndex(b, loc, raw), index = given;
  Value zero = createIndex(b, loc, 0);
  Value negative = compare(b, loc, arith::CmpIPredicate::slt, index, zero);
  Value wrapped = arith::AddIOp::create(b, loc, index, size);
  index = arith::SelectOp::create(b, loc, negative, wrapped, index);
  Value inside = compare(b, loc, arith::CmpIPredicate::ult, index, size);
  createCheck(b, loc, inside,
              "index {0} is out of range for a dimension of size {1}",
              {Size(given), Size(size)});
  return arith::SelectOp::create(b, loc, inside, index, zero);
}

void checkReaches(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> want,
                  ArrayRef<OpFoldResult> have, int64_t except) {
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip(want, have)))
    if (int64_t(dim) != except)
      checkSizeAtMost(b, loc, std::get<0>(sizes), std::get<1>(sizes),
                      "sizes of the operands do not fit in dimension " +
                          Twine(dim));
}

Value forEach(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
              Value carried,
              function_ref<Value(OpBuilder &, Location, ValueRange indices,
                                 Value carried)>
                  body) {
  SmallVector<Value> lower(sizes.size(), createIndex(b, loc, 0)),
      step(sizes.size(), createIndex(b, loc, 1)), upper;
  for (Size size : sizes)
    upper.push_back(asIndex(b, loc, size));
  if (sizes.empty())
    return body(b, loc, {}, carried);
  scf::LoopNest nest =
      scf::buildLoopNest(b, loc, lower, upper, step, carried,
                         [&](OpBuilder &inner, Location at, ValueRange indices,
                             ValueRange state) -> scf::ValueVector {
                           return {body(inner, at, indices, state.front())};
                         });
  return nest.results.front();
}

SmallVector<Value> getTuple(OpBuilder &b, Location loc, Value indices,
                            ValueRange prefix, int64_t tuple,
                            ArrayRef<Value> extents, int64_t batch) {
  SmallVector<Value> position(prefix.take_front(batch));
  for (int64_t k = 0; k < tuple; ++k) {
    SmallVector<Value> at(prefix);
    at.push_back(createIndex(b, loc, k));
    Value raw = tensor::ExtractOp::create(b, loc, indices, at);
    position.push_back(checkedIndex(b, loc, raw, extents[batch + k]));
  }
  return position;
}

} // namespace sardonyx
