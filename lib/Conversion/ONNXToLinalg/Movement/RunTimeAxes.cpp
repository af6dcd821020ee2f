//===- RunTimeAxes.cpp - Squeeze and Unsqueeze by axes from data ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/Checks.h"
#include "Support/DataMovement.h"
#include "Support/TensorBuilder.h"

using namespace mlir;

namespace sardonyx {

/// For each of `rank` dimensions whether it is one of the `count` axes in
/// `list`. Fails when they are known not to fit.
static FailureOr<SmallVector<Value>> findAxes(TensorBuilder &b, Value list,
                                              int64_t count, int64_t rank) {
  FailureOr<Sizes> axes = getIntListAsSizes(b, b.getLoc(), list, count, "axes");
  if (failed(axes) || failed(checkAxes(b, b.getLoc(), *axes, rank)))
    return failure();
  SmallVector<Value> result;
  for (int64_t dim = 0; dim < rank; ++dim) {
    Value found = b.integer(b.getI1Type(), 0);
    for (OpFoldResult axis : *axes)
      found = arith::OrIOp::create(
          b, found,
          b.compare(arith::CmpIPredicate::eq, b.index(axis), b.index(dim)));
    result.push_back(found);
  }
  return result;
}

/// The check that a dimension is of size 1 if it is an axis.
static void checkDropped(TensorBuilder &b, Value isAxis, OpFoldResult size) {
  Value kept = arith::XOrIOp::create(b, isAxis, b.integer(b.getI1Type(), 1));
  Value single =
      b.compare(arith::CmpIPredicate::eq, b.index(size), b.index(int64_t(1)));
  createCheck(b, b.getLoc(), arith::OrIOp::create(b, kept, single),
              "a dimension to drop is not of size 1: {0}", {size});
}

FailureOr<Value> reshapeByAxes(TensorBuilder &b, Value data, Value list,
                               bool drops, RankedTensorType declared) {
  RankedTensorType listType = rankedType(list);
  constexpr int64_t kMaxAxes = 64;
  int64_t rank = rankedType(data).getRank();
  if (!listType.hasStaticShape() || listType.getRank() > 1)
    return failure();
  int64_t count = listType.getNumElements();
  if (count > (drops ? rank : kMaxAxes))
    return failure();
  int64_t longer = drops ? rank : rank + count, shorter = longer - count;
  FailureOr<SmallVector<Value>> found = findAxes(b, list, count, longer);
  if (failed(found))
    return failure();

  // The elements stay as they are, so that it takes no more than the sizes: the
  // dimensions that are no axes are those of the shorter shape in order.
  Sizes in = b.dims(data), out(drops ? shorter : longer, b.size(1));
  Value before = b.index(int64_t(0)); // others before this dimension
  for (int64_t dim = 0; dim < longer; ++dim) {
    Value isAxis = (*found)[dim];
    if (drops)
      checkDropped(b, isAxis, in[dim]);
    for (int64_t at = 0; at < shorter; ++at) {
      Value here = b.compare(arith::CmpIPredicate::eq, before, b.index(at));
      OpFoldResult &target = out[drops ? at : dim];
      Value old = b.index(target);
      Value taken = b.select(here, b.index(in[drops ? dim : at]), old);
      target = b.select(isAxis, old, taken);
    }
    Value next = b.add(before, b.index(int64_t(1)));
    before = b.select(isAxis, before, next);
  }
  if (declared && declared.getRank() != static_cast<int64_t>(out.size()))
    return failure();
  if (declared)
    out = refineSizes(b, out, declared);
  return b.reshape(data, out);
}

} // namespace sardonyx
