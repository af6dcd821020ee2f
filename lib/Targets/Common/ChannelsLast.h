//===- ChannelsLast.h - Regions of images with channels last ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations are visited in order. A convolution for which the target has loops
// with channels last is made one, between transposes; what follows and takes
// the result of such a transpose takes its operand in its place, and is
// followed by a transpose itself. Those that nobody takes are dropped at the
// end: what is left is a transpose where a region of operations with channels
// last begins or ends.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_COMMON_CHANNELSLAST_H
#define SARDONYX_LIB_TARGETS_COMMON_CHANNELSLAST_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace sardonyx {

/// The permutation [0, 2, ..., r-1, 1] that makes [N,S...,C] of [N,C,S...].
llvm::SmallVector<int64_t> orderLast(int64_t rank);
/// The way back, [0, r-1, 1, ..., r-2].
llvm::SmallVector<int64_t> orderFirst(int64_t rank);

/// Makes regions of operations with channels last. What becomes of convolutions
/// and poolings is the target's.
class ChannelsLast {
public:
  explicit ChannelsLast(mlir::IRRewriter &b) : b(b) {}
  virtual ~ChannelsLast() = default;

  /// Visits all operations in `root`, if a region begins with one of them.
  void run(mlir::Operation *root);

protected:
  /// Whether a region begins with the convolution.
  virtual bool isWorth(sdx::ConvOp op) = 0;
  /// The result [N,O...,OC] of a convolution with which a region begins, or
  /// whose input is in one, from that input and its init with channels last;
  /// null, and nothing is made, where the target has no loops for it.
  virtual mlir::Value convert(sdx::ConvOp op, mlir::Value input,
                              mlir::Value init) = 0;
  /// The same of a pooling whose input is in a region.
  virtual mlir::Value convert(sdx::MaxPoolOp op, mlir::Value input,
                              mlir::Value init) = 0;
  /// Whether the convolution and the pooling can be converted.
  virtual bool canConvert(sdx::ConvOp op) = 0;
  virtual bool canConvert(sdx::MaxPoolOp op) = 0;
  /// Whether an operation on elements is computed with channels last, if its
  /// operands ask for it.
  virtual bool canConvert(mlir::linalg::GenericOp op) = 0;
  /// Whether operations that pick pixels of an image by computed positions, as
  /// a resize does, are computed with channels last.
  virtual bool canPickPixels() { return false; }

  /// What `value` is with channels last, if it is the transpose of that.
  static mlir::Value findLast(mlir::Value value);

  mlir::IRRewriter &b;

private:
  void visit(mlir::Operation *op);
  void dropUnused();
  mlir::Value computeLast(mlir::linalg::GenericOp op);
  mlir::Value toLast(mlir::Value value);
  mlir::Value emptyLast(mlir::Value value);
  void replace(mlir::Value old, mlir::Value last);
  template <typename OpT> void convertDense(OpT op);
  void convert(mlir::tensor::InsertSliceOp op);
  void convert(mlir::tensor::ExtractSliceOp op);
  void convertBlocks(mlir::Operation *op);
  void convert(mlir::linalg::GenericOp op);
  void convertPicks(mlir::linalg::GenericOp op,
                    llvm::ArrayRef<mlir::tensor::ExtractOp> picks);
  bool shouldConvert(mlir::linalg::GenericOp op);
  void orderLoops(mlir::linalg::GenericOp op, llvm::ArrayRef<bool> areLast);

  llvm::DenseMap<mlir::Value, mlir::Value> transposed;
  llvm::SmallVector<mlir::Operation *> made;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_TARGETS_COMMON_CHANNELSLAST_H
