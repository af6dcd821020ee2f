//===- KeyBounds.h - Keys that a body excludes by their numbers -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_ATTENTION_KEYBOUNDS_H
#define SARDONYX_LIB_DISPATCH_ATTENTION_KEYBOUNDS_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallBitVector.h"

namespace sardonyx::attention {

/// The keys for which a body gives low scores since their number is above or
/// below one that hangs on the query alone: those after a query (causal), too
/// far before it (a window), behind the end of a cache.
class KeyBounds {
public:
  explicit KeyBounds(sdx::AttentionOp op);

  bool hasFirst() const { return !firsts.empty(); }
  bool hasEnd() const { return !ends.empty(); }
  /// No excluded key has a score above this: -inf, or a number, beside which
  /// the scores of all others may yet be as low.
  double getCeiling() const { return ceiling; }
  /// Whether the body does nothing else.
  bool areAll() const { return isExact; }

  /// The extras of which the bounds need elements.
  const llvm::SmallBitVector &getNeededExtras() const { return needed; }
  /// The first key of a query, and the one behind its last, with these elements
  /// of the extras (null where they are not needed) and indices of the outer
  /// loops. They may lie outside of the keys.
  mlir::Value emitFirst(mlir::ImplicitLocOpBuilder &b,
                        llvm::ArrayRef<mlir::Value> elements,
                        mlir::ValueRange indices) {
    return emit(b, firsts, /*isEnd=*/false, elements, indices);
  }
  mlir::Value emitEnd(mlir::ImplicitLocOpBuilder &b,
                      llvm::ArrayRef<mlir::Value> elements,
                      mlir::ValueRange indices) {
    return emit(b, ends, /*isEnd=*/true, elements, indices);
  }

private:
  /// `number`, an integer of the body, plus `offset`.
  struct Bound {
    mlir::Value number;
    int64_t offset;
  };

  bool visitScore(mlir::Value score, bool isSum);
  bool visitCondition(mlir::Value condition, bool excludes);
  bool visitCompare(mlir::arith::CmpIOp compare, bool excludes);
  bool isOfQuery(mlir::Value value);
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<Bound> bounds,
                   bool isEnd, llvm::ArrayRef<mlir::Value> elements,
                   mlir::ValueRange indices);

  sdx::AttentionOp op;
  llvm::SmallVector<Bound> firsts, ends;
  double ceiling;
  bool isExact;
  llvm::SmallBitVector needed;
};

} // namespace sardonyx::attention

#endif // SARDONYX_LIB_DISPATCH_ATTENTION_KEYBOUNDS_H
