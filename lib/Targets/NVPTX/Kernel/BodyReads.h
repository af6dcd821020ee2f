//===- BodyReads.h - Which elements a body reads ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which elements of other tensors an operation on elements reads, where its
// indices are sums of a loop and a number, and under which conditions. One
// value of the last loop may be given: what hangs on it alone is computed, and
// what is read for nothing is left out.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BODYREADS_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BODYREADS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace sardonyx::nv {

/// Reads the body of an operation whose loops are all parallel.
class BodyReads {
public:
  /// A loop, if there is one, plus a number.
  struct Index {
    std::optional<unsigned> loop;
    int64_t offset = 0;

    bool isNumber() const { return !loop; }
    bool operator==(const Index &other) const {
      return loop == other.loop && offset == other.offset;
    }
  };
  /// Where `from <= loop < to`.
  struct Range {
    unsigned loop;
    int64_t from, to;
  };
  /// What is read of a tensor, where all of `ranges` hold. Indices that are no
  /// such sum are none.
  struct Read {
    mlir::Value tensor, value;
    llvm::SmallVector<std::optional<Index>> index;
    llvm::SmallVector<Range> ranges;
  };

  explicit BodyReads(mlir::linalg::GenericOp op,
                     std::optional<int64_t> last = std::nullopt);

  llvm::ArrayRef<Read> getReads() const { return reads; }
  /// The range of a loop that `condition` is.
  std::optional<Range> findRange(mlir::Value condition) const;

private:
  std::optional<Index> lookup(mlir::Value value) const;
  void visit(mlir::Block &block, llvm::ArrayRef<Range> ranges);
  std::optional<Index> compute(mlir::Operation *op);
  void visitIf(mlir::Operation *op, llvm::ArrayRef<Range> ranges);
  void findUsed(mlir::Value value, llvm::DenseSet<mlir::Value> &used) const;

  llvm::SmallVector<Index> loops;
  llvm::DenseMap<mlir::Value, Index> known;
  llvm::DenseMap<mlir::Value, Range> conditions;
  llvm::SmallVector<Read> reads;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BODYREADS_H
