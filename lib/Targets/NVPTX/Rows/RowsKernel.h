//===- RowsKernel.h - What reduces rows -------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has a row, of a shorter one a warp or a part of it, down to a thread.
// Where a thread's elements of it are few, what is computed of them stays in
// registers from one reduction to the next; otherwise each reduction reads the
// row again.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_ROWS_ROWSKERNEL_H
#define SARDONYX_LIB_TARGETS_NVPTX_ROWS_ROWSKERNEL_H

#include "Kernel/PointEvaluator.h"
#include "Rows/Combiner.h"

namespace sardonyx::nv {

/// Computes operations with reductions over trailing loops: as a kernel, or in
/// the blocks of another one.
class RowsKernel {
public:
  /// Threads of a block that computes rows.
  static constexpr int64_t kThreads = 256;

  /// `ops` in the order of the program.
  RowsKernel(llvm::ArrayRef<mlir::linalg::GenericOp> ops, KernelBody &body)
      : body(body), points(body), ops(ops) {}

  /// Says how `tensor`, which `ops` read, is computed at a position. That takes
  /// longer than a load: no more rows than one have the same block.
  void declare(mlir::Value tensor, PointEvaluator::Compute compute) {
    points.declare(tensor, std::move(compute));
    isSlow = true;
  }

  /// Whether `results` can be computed so; the caller has another way.
  bool isPossible(llvm::ArrayRef<mlir::Value> results);

  /// Whether rows are those of the last dimension of `result`, whose sizes are
  /// known. After `isPossible`.
  bool reducesLast(mlir::Value result);

  /// Finds the sizes of all loops. They are sizes of tensors, which become
  /// sizes of buffers meanwhile.
  mlir::LogicalResult findSizes(mlir::ImplicitLocOpBuilder &b);
  /// The same where they are all known.
  void useStaticSizes(mlir::ImplicitLocOpBuilder &b);
  /// Puts the loop over the blocks of a kernel at the builder's place. It
  /// leaves the body's outputs.
  void emit(mlir::ImplicitLocOpBuilder &b);

  /// In the code of a block of `kThreads` threads, of which this is `thread`:
  /// has them all compute the first `rows` rows of `outputs`, one after the
  /// other. All sizes are known; who reads the outputs waits for the threads.
  void emitRows(mlir::ImplicitLocOpBuilder &b, mlir::Value thread, int64_t rows,
                llvm::ArrayRef<KernelBody::Output> outputs);

  /// Whether `ops` read `tensor`, [M,N], nowhere but in the row that they
  /// compute, and rows are those of `tensor`. After `isPossible`.
  bool readsOwnRows(mlir::Value tensor);
  /// In the code of a block, of which this is `thread` of `threads`, whole
  /// warps: has each warp compute one of the rows `first`, `first` + `step` and
  /// so on, `count` of them or fewer, those below `end`, and then another one.
  /// All sizes are known.
  void emitRowsOfWarps(mlir::ImplicitLocOpBuilder &b, mlir::Value thread,
                       int64_t threads, mlir::Value first, int64_t step,
                       int64_t count, mlir::Value end);

private:
  using Point = PointEvaluator::Point;

  /// An element of a row that a thread has.
  struct Element {
    llvm::SmallVector<mlir::Value> index; // in all dimensions
    mlir::Value exists;                   // null: always
    Point point;
  };

  bool isRowReduction(mlir::linalg::GenericOp op);
  bool hasLength();
  int64_t countColumns() const;
  int64_t chooseGroup(std::optional<int64_t> length) const;
  int64_t chooseWidth();
  void chooseKept(std::optional<int64_t> length);
  llvm::SmallVector<Element> findElements(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value firstCol, bool mayPass);
  void emitRow(mlir::ImplicitLocOpBuilder &b, mlir::Value row);
  Point pointOf(const Element &element) const;
  llvm::SmallVector<mlir::Value> addElement(mlir::ImplicitLocOpBuilder &b,
                                            mlir::linalg::GenericOp op,
                                            Element &element,
                                            mlir::ValueRange sums);
  void emitReduction(mlir::ImplicitLocOpBuilder &b, mlir::linalg::GenericOp op,
                     llvm::MutableArrayRef<Element> elements);
  mlir::Value combineBlock(mlir::ImplicitLocOpBuilder &b,
                           const Combiner &combiner, mlir::Value sum);
  void emitResults(mlir::ImplicitLocOpBuilder &b,
                   llvm::MutableArrayRef<Element> elements);
  void storeElements(mlir::ImplicitLocOpBuilder &b,
                     llvm::MutableArrayRef<Element> elements,
                     llvm::ArrayRef<KernelBody::Output> ofElements);

  KernelBody &body;
  PointEvaluator points;
  llvm::SmallVector<mlir::linalg::GenericOp> ops;
  mlir::linalg::GenericOp first;
  int64_t rowDims = 0, dims = 0;
  bool isSlow = false;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<Combiner>> combiners;
  llvm::SmallVector<KernelBody::Output> outputs;
  llvm::SmallVector<mlir::Value> sizes;
  mlir::Value cols;
  /// Threads that share a row, neighbours that one reads at a time, and how
  /// often it does where it keeps them all; 0: it keeps none.
  int64_t group = 0, width = 1, kept = 0;
  mlir::Value thread, lane;
  /// Whether there is the row; null: certainly.
  mlir::Value rowExists;
  llvm::SmallVector<mlir::Value> rowIndex;
  Point rowPoint;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_ROWS_ROWSKERNEL_H
