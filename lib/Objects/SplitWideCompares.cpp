//===- SplitWideCompares.cpp - Comparisons of many lanes ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitWideCompares.h"
#include "MaskedLanes.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/InstIterator.h"

using namespace llvm;

namespace sardonyx {

/// As many as the bytes of a register.
static constexpr unsigned kLanes = 16;

static void split(CmpInst &compare, unsigned lanes) {
  IRBuilder<> b(&compare);
  SmallVector<Value *> parts;
  for (unsigned first = 0; first < lanes; first += kLanes) {
    Value *part =
        b.CreateCmp(compare.getPredicate(),
                    sliceLanes(b, compare.getOperand(0), first, kLanes),
                    sliceLanes(b, compare.getOperand(1), first, kLanes));
    if (auto *instruction = dyn_cast<Instruction>(part))
      instruction->copyIRFlags(&compare);
    parts.push_back(part);
  }
  compare.replaceAllUsesWith(concatenateVectors(b, parts));
  compare.eraseFromParent();
}

void splitWideCompares(Function &function) {
  SmallVector<std::pair<CmpInst *, unsigned>> wide;
  for (Instruction &instruction : instructions(function)) {
    auto *compare = dyn_cast<CmpInst>(&instruction);
    auto *type =
        compare ? dyn_cast<FixedVectorType>(compare->getOperand(0)->getType())
                : nullptr;
    const unsigned lanes = type ? type->getNumElements() : 0;
    if (lanes == 2 * kLanes || lanes == 4 * kLanes)
      wide.push_back({compare, lanes});
  }
  for (auto [compare, lanes] : wide)
    split(*compare, lanes);
}

} // namespace sardonyx
