//===- SplitLongBlocks.cpp - Bound what is selected at once ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitLongBlocks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"

using namespace llvm;

namespace sardonyx {

/// Instructions in a function that is split off: enough for what goes in and
/// out of it to be little beside them.
static constexpr unsigned kPiece = 512;

/// Cuts `block` after every so many instructions; adds what lies between two
/// cuts to `pieces`. What comes before the first stays, with the stack's
/// variables, and what comes after the last.
static void cut(BasicBlock &block, SmallVectorImpl<BasicBlock *> &pieces) {
  if (block.size() < 2 * kPiece)
    return;
  SmallVector<Instruction *> starts;
  unsigned count = 0;
  // Memory of the stack is taken and given back in one function.
  int taken = 0;
  for (Instruction &instruction : block) {
    if (auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction)) {
      taken += intrinsic->getIntrinsicID() == Intrinsic::stacksave;
      taken -= intrinsic->getIntrinsicID() == Intrinsic::stackrestore;
    }
    // What is taken for good stays where it is.
    if (isa<AllocaInst>(instruction) && taken == 0 && !starts.empty())
      return;
    if (++count < kPiece || taken != 0 ||
        isa<PHINode, AllocaInst, IntrinsicInst>(instruction))
      continue;
    starts.push_back(&instruction);
    count = 0;
  }
  // From the end, so that no instruction is moved twice.
  for (auto [i, start] : enumerate(reverse(starts))) {
    BasicBlock *piece = block.splitBasicBlock(start, "piece");
    if (i != 0)
      pieces.push_back(piece);
  }
}

void splitLongBlocks(Function &function) {
  SmallVector<BasicBlock *> pieces;
  for (BasicBlock *block : to_vector(make_pointer_range(function)))
    cut(*block, pieces);
  if (pieces.empty())
    return;
  CodeExtractorAnalysisCache cache(function);
  for (BasicBlock *piece : reverse(pieces)) {
    CodeExtractor extractor(piece, /*DT=*/nullptr, /*AggregateArgs=*/false,
                            /*BFI=*/nullptr, /*BPI=*/nullptr, /*AC=*/nullptr,
                            /*AllowVarArgs=*/false, /*AllowAlloca=*/true);
    if (Function *part = extractor.extractCodeRegion(cache))
      part->addFnAttr(Attribute::NoInline);
  }
}

} // namespace sardonyx
