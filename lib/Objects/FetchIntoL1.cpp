//===- FetchIntoL1.cpp - Prefetches into the first cache ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FetchIntoL1.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace sardonyx {

void chooseCacheOfFetches(Function &function, CacheOfFetches cache) {
  // llvm.prefetch(address, write, locality, data): a locality of 3 is the first
  // cache, 2 the second.
  constexpr unsigned kLocality = 2, kIsData = 3;
  for (Instruction &instruction : instructions(function)) {
    auto *fetch = dyn_cast<IntrinsicInst>(&instruction);
    if (!fetch || fetch->getIntrinsicID() != Intrinsic::prefetch ||
        !cast<ConstantInt>(fetch->getArgOperand(kIsData))->isOne())
      continue;
    auto *locality = cast<ConstantInt>(fetch->getArgOperand(kLocality));
    uint64_t to = locality->getZExtValue();
    if (to == 1)
      to = cache.isL1Faster && cache.isL1Roomy ? 3 : 2;
    else if (to == 2 && cache.isL1Faster)
      to = 3;
    fetch->setArgOperand(kLocality, ConstantInt::get(locality->getType(), to));
  }
}

} // namespace sardonyx
