//===- MaskedLanes.cpp - Some lanes of masked accesses --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskedLanes.h"

#include "llvm/Analysis/VectorUtils.h"

using namespace llvm;

namespace sardonyx {

Value *sliceLanes(IRBuilder<> &b, Value *vector, unsigned first,
                  unsigned count) {
  if (count == 1)
    return b.CreateExtractElement(vector, first);
  return b.CreateShuffleVector(
      vector, createSequentialMask(first, count, /*NumUndefs=*/0));
}

std::pair<Value *, Align> placeOfLane(IRBuilder<> &b, Value *first, Align align,
                                      Type *element, unsigned lane) {
  uint64_t offset =
      lane * b.GetInsertBlock()->getDataLayout().getTypeStoreSize(element);
  return {b.CreatePtrAdd(first, b.getInt64(offset)),
          commonAlignment(align, offset)};
}

} // namespace sardonyx
