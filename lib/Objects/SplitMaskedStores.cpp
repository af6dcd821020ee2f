//===- SplitMaskedStores.cpp - Constant masks without masks ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitMaskedStores.h"
#include "MaskedLanes.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace sardonyx {

/// The lanes of a constant mask; empty where it is none.
static SmallVector<bool> findLanes(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  SmallVector<bool> lanes;
  if (!constant || !type)
    return lanes;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Constant *lane = constant->getAggregateElement(i);
    if (!lane || !isa<ConstantInt>(lane))
      return {};
    lanes.push_back(lane->isOneValue());
  }
  return lanes;
}

/// Where `store` would have lane `lane`, and what its alignment is.
static std::pair<Value *, Align> placeOf(IRBuilder<> &b, IntrinsicInst &store,
                                         unsigned lane) {
  return placeOfLane(b, store.getArgOperand(1),
                     store.getParamAlign(1).valueOrOne(),
                     store.getArgOperand(0)->getType()->getScalarType(), lane);
}

/// Stores `lanes`, in registers of at most `most` lanes.
static void storeLanes(IntrinsicInst &store, ArrayRef<bool> lanes,
                       unsigned most) {
  auto areSet = [&](unsigned first, unsigned count) {
    return first + count <= lanes.size() &&
           all_of(lanes.slice(first, count), [](bool lane) { return lane; });
  };
  unsigned first = 0;
  while (first < lanes.size()) {
    unsigned count = 1;
    while (count < most && first % (2 * count) == 0 && areSet(first, 2 * count))
      count *= 2;
    if (lanes[first]) {
      IRBuilder<> b(&store);
      auto [to, align] = placeOf(b, store, first);
      b.CreateAlignedStore(sliceLanes(b, store.getArgOperand(0), first, count),
                           to, align);
    }
    first += count;
  }
}

/// Looks at run time whether a register has all its lanes, or none.
static void guard(IntrinsicInst &store, unsigned lanes) {
  Value *vector = store.getArgOperand(0), *mask = store.getArgOperand(2);
  unsigned all = cast<FixedVectorType>(vector->getType())->getNumElements();
  for (unsigned first = 0; first < all; first += lanes) {
    IRBuilder<> b(&store);
    Value *part = sliceLanes(b, vector, first, lanes);
    Value *ofPart = sliceLanes(b, mask, first, lanes);
    auto [to, align] = placeOf(b, store, first);
    Type *bitsType = b.getIntNTy(lanes);
    Value *bits = b.CreateBitCast(ofPart, bitsType);
    Instruction *then, *otherwise;
    SplitBlockAndInsertIfThenElse(
        b.CreateICmpEQ(bits, Constant::getAllOnesValue(bitsType)), &store,
        &then, &otherwise);
    IRBuilder<>(then).CreateAlignedStore(part, to, align);
    IRBuilder<> rest(otherwise);
    Instruction *some = SplitBlockAndInsertIfThen(
        rest.CreateICmpNE(bits, Constant::getNullValue(bitsType)), otherwise,
        /*Unreachable=*/false);
    IRBuilder<>(some).CreateMaskedStore(part, to, align, ofPart);
  }
}

void splitMaskedStores(Function &function, unsigned registerBits, bool isSlow) {
  SmallVector<IntrinsicInst *> stores;
  for (Instruction &instruction : instructions(function)) {
    auto *store = dyn_cast<IntrinsicInst>(&instruction);
    if (store && store->getIntrinsicID() == Intrinsic::masked_store &&
        isa<FixedVectorType>(store->getArgOperand(0)->getType()))
      stores.push_back(store);
  }
  for (IntrinsicInst *store : stores) {
    auto *type = cast<FixedVectorType>(store->getArgOperand(0)->getType());
    unsigned bits =
        store->getDataLayout().getTypeSizeInBits(type->getElementType());
    if (bits % 8 != 0 || registerBits < bits)
      continue;
    const unsigned most = registerBits / bits, all = type->getNumElements();
    SmallVector<bool> lanes = findLanes(store->getArgOperand(2));
    if (!lanes.empty())
      storeLanes(*store, lanes, most);
    else if (isSlow && bits >= 32 && all > 1 && all % std::min(most, all) == 0)
      guard(*store, std::min(most, all));
    else
      continue;
    store->eraseFromParent();
  }
}

} // namespace sardonyx
