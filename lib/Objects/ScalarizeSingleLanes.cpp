//===- ScalarizeSingleLanes.cpp - Masks of one lane -----------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarizeSingleLanes.h"
#include "MaskedLanes.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Local.h"
#include <optional>

using namespace llvm;

namespace sardonyx {

/// The only lane of a constant mask; none where others are or may be set.
static std::optional<unsigned> singleLane(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> lane;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Constant *element = constant->getAggregateElement(i);
    if (element && element->isNullValue())
      continue;
    if (lane || !element || !element->isOneValue())
      return std::nullopt;
    lane = i;
  }
  return lane;
}

static void scalarizeLoad(IntrinsicInst &load, unsigned lane) {
  IRBuilder<> b(&load);
  Type *element = load.getType()->getScalarType();
  auto [from, align] =
      placeOfLane(b, load.getArgOperand(0), load.getParamAlign(0).valueOrOne(),
                  element, lane);
  Value *value = b.CreateAlignedLoad(element, from, align);
  load.replaceAllUsesWith(
      b.CreateInsertElement(load.getArgOperand(2), value, lane));
}

static void scalarizeStore(IntrinsicInst &store, unsigned lane) {
  IRBuilder<> b(&store);
  Value *value = b.CreateExtractElement(store.getArgOperand(0), lane);
  auto [to, align] =
      placeOfLane(b, store.getArgOperand(1),
                  store.getParamAlign(1).valueOrOne(), value->getType(), lane);
  b.CreateAlignedStore(value, to, align);
}

void scalarizeSingleLanes(Function &function) {
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    auto *access = dyn_cast<IntrinsicInst>(&instruction);
    if (!access)
      continue;
    bool isLoad = access->getIntrinsicID() == Intrinsic::masked_load;
    bool isStore = access->getIntrinsicID() == Intrinsic::masked_store;
    if (!isLoad && !isStore)
      continue;
    std::optional<unsigned> lane =
        singleLane(access->getArgOperand(isLoad ? 1 : 2));
    if (!lane)
      continue;
    isLoad ? scalarizeLoad(*access, *lane) : scalarizeStore(*access, *lane);
    access->eraseFromParent();
  }
}

} // namespace sardonyx
