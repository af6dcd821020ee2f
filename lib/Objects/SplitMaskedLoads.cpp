//===- SplitMaskedLoads.cpp - Masked loads of one register ----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitMaskedLoads.h"
#include "MaskedLanes.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace sardonyx {

/// Whether a mask is a conjunction that a constant makes false in all lanes
/// [first, first + count).
static bool isNever(IRBuilder<> &b, Value *mask, unsigned first,
                    unsigned count) {
  using namespace PatternMatch;
  Constant *constant;
  if (!match(mask, m_c_And(m_Value(), m_Constant(constant))) &&
      !match(mask, m_Constant(constant)))
    return false;
  auto *part = dyn_cast<Constant>(sliceLanes(b, constant, first, count));
  return part && part->isNullValue();
}

static void split(IntrinsicInst &load, unsigned lanes) {
  IRBuilder<> b(&load);
  auto *type = cast<FixedVectorType>(load.getType());
  auto *part = FixedVectorType::get(type->getElementType(), lanes);
  Value *from = load.getArgOperand(0), *mask = load.getArgOperand(1);
  Align align = load.getParamAlign(0).valueOrOne();
  SmallVector<Value *> parts;
  for (unsigned first = 0; first < type->getNumElements(); first += lanes) {
    Value *loaded = sliceLanes(b, load.getArgOperand(2), first, lanes);
    if (!isNever(b, mask, first, lanes)) {
      auto [at, alignment] =
          placeOfLane(b, from, align, type->getElementType(), first);
      loaded = b.CreateMaskedLoad(part, at, alignment,
                                  sliceLanes(b, mask, first, lanes), loaded);
    }
    parts.push_back(loaded);
  }
  load.replaceAllUsesWith(concatenateVectors(b, parts));
  RecursivelyDeleteTriviallyDeadInstructions(&load);
}

void splitMaskedLoads(Function &function, unsigned registerBits) {
  SmallVector<std::pair<IntrinsicInst *, unsigned>> wide;
  for (Instruction &instruction : instructions(function)) {
    auto *load = dyn_cast<IntrinsicInst>(&instruction);
    if (!load || load->getIntrinsicID() != Intrinsic::masked_load)
      continue;
    auto *type = dyn_cast<FixedVectorType>(load->getType());
    if (!type)
      continue;
    unsigned bits =
        load->getDataLayout().getTypeSizeInBits(type->getElementType());
    unsigned lanes = registerBits / bits;
    if (lanes > 1 && type->getNumElements() > lanes &&
        type->getNumElements() % lanes == 0)
      wide.push_back({load, lanes});
  }
  for (auto [load, lanes] : wide)
    split(*load, lanes);
}

} // namespace sardonyx
