//===- MemoryUses.cpp - Which memory an operation uses --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryUses.h"

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

bool Piece::overlaps(const Piece &other) const {
  if (!isKnown || !other.isKnown)
    return true;
  // The arena is the same memory wherever it is named.
  const bool areArenas = isa_and_present<sdx::ArenaOp>(owner) &&
                         isa_and_present<sdx::ArenaOp>(other.owner);
  if (!areArenas && (owner != other.owner || argument != other.argument))
    return false;
  return to < 0 || other.to < 0 || (from < other.to && other.from < to);
}

static Piece findPiece(Value value) {
  Piece piece;
  while (Operation *op = value.getDefiningOp()) {
    if (auto view = dyn_cast<memref::ViewOp>(op)) {
      std::optional<int64_t> shift = getConstantIntValue(view.getByteShift());
      MemRefType type = view.getType();
      if (shift && type.hasStaticShape() && piece.to < 0) {
        piece.from = *shift;
        piece.to = *shift + llvm::divideCeil(type.getNumElements() *
                                                 type.getElementTypeBitWidth(),
                                             8);
      }
      value = view.getSource();
    } else if (isa<memref::CastOp, memref::SubViewOp, memref::CollapseShapeOp,
                   memref::ExpandShapeOp, memref::ReinterpretCastOp>(op)) {
      value = op->getOperand(0);
    } else {
      piece.owner = op;
      piece.isKnown =
          isa<memref::AllocOp, sdx::ArenaOp, sdx::OutputBufferOp>(op);
      return piece;
    }
  }
  // Memory of the caller's for results is none that a run reads.
  piece.argument = value;
  piece.isKnown = isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  return piece;
}

bool Uses::conflictWith(const Uses &other) const {
  auto overlap = [](ArrayRef<Piece> some, ArrayRef<Piece> others) {
    return llvm::any_of(some, [&](const Piece &piece) {
      return llvm::any_of(
          others, [&](const Piece &with) { return piece.overlaps(with); });
    });
  };
  return overlap(written, other.written) || overlap(written, other.read) ||
         overlap(read, other.written);
}

std::optional<Uses> nv::findUses(Operation *op) {
  Uses uses;
  auto add = [](SmallVector<Piece, 0> &pieces, ValueRange values) {
    for (Value value : values)
      if (isa<MemRefType>(value.getType()))
        pieces.push_back(findPiece(value));
  };
  if (auto call = dyn_cast<sdx::CallOp>(op)) {
    add(uses.read, call.getIns());
    add(uses.written, call.getOuts());
  } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    add(uses.read, copy.getSource());
    add(uses.written, copy.getTarget());
  } else if (isa<memref::DeallocOp>(op)) {
    add(uses.written, op->getOperands());
  } else {
    return std::nullopt;
  }
  return uses;
}
