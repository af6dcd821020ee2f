//===- ChannelWindows.h - Loops over windows of single channels ----*- C++
//-*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONV_CHANNELWINDOWS_H
#define SARDONYX_LIB_TARGETS_CPU_CONV_CHANNELWINDOWS_H

#include "Conv/Windows.h"
#include "Kernel/Epilogue.h"
#include "MicroKernels/MicroKernel.h"

namespace sardonyx::cpu {

/// Emits the loops of a kernel around windows over the channels of an image
/// [N,S...,C], which lie in the lanes of vectors: what is common to
/// convolutions and poolings.
class ChannelWindowKernel {
public:
  ChannelWindowKernel(mlir::DestinationStyleOpInterface op, KernelBody &body,
                      ChannelWindowPlanAttr plan,
                      llvm::ArrayRef<int64_t> kernel,
                      llvm::ArrayRef<int64_t> strides,
                      llvm::ArrayRef<int64_t> padsBegin);
  virtual ~ChannelWindowKernel() = default;

  llvm::LogicalResult verify();
  void emit(mlir::ImplicitLocOpBuilder &b);

protected:
  /// Some outputs of a line: `count` positions from `first` on, of the channels
  /// from `channel` on.
  struct Piece {
    /// The input position of the first tap along each dimension but the last.
    llvm::SmallVector<mlir::Value> starts;
    mlir::Value image, first, channel;
    int64_t count;
    /// Channels that exist; null: all of a vector's.
    mlir::Value mask;
  };

  /// What the operation begins with, once.
  virtual void prepare(mlir::ImplicitLocOpBuilder &b) = 0;
  /// The results at the piece's positions, from the init's elements on.
  virtual llvm::SmallVector<mlir::Value>
  emitResults(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
              llvm::SmallVector<mlir::Value> inits) = 0;

  /// The channels of a pixel as a vector.
  mlir::Value emitPixel(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
                        mlir::Value pixel);

  mlir::DestinationStyleOpInterface op;
  KernelBody &body;
  const int64_t lanes, positions;
  const llvm::ArrayRef<int64_t> kernel, strides;
  Windows windows;

private:
  void emitLine(mlir::ImplicitLocOpBuilder &b, mlir::Value line);
  void emitPiece(mlir::ImplicitLocOpBuilder &b, mlir::Value line,
                 mlir::ValueRange at, mlir::Value channel, mlir::Value mask,
                 mlir::Value first, mlir::Value limit);

  TileEvaluator evaluator;
  /// The input as one dimension.
  mlir::Value flatInput;
  mlir::Value channels;
};

/// Emits a convolution of single channels.
class DepthwiseNarrowConvKernel : public ChannelWindowKernel {
public:
  DepthwiseNarrowConvKernel(DepthwiseNarrowConvOp op, TargetAttr target,
                            ChannelWindowPlanAttr plan, KernelBody &body);

protected:
  void prepare(mlir::ImplicitLocOpBuilder &b) override;
  llvm::SmallVector<mlir::Value>
  emitResults(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
              llvm::SmallVector<mlir::Value> inits) override;

private:
  struct Line;
  Line emitLineStart(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
                     int64_t number);
  llvm::SmallVector<mlir::Value>
  emitLines(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
            int64_t firstLine, llvm::ArrayRef<Line> lines, bool isInner,
            llvm::SmallVector<mlir::Value> sums);
  mlir::Value emitOperand(mlir::ImplicitLocOpBuilder &b, mlir::Value values);
  mlir::Value emitGroup(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
                        llvm::ArrayRef<Line> lines, mlir::Value column,
                        bool isInner);

  DepthwiseNarrowConvOp conv;
  const TargetAttr target;
  /// Lines of the kernel whose pixels an instruction multiplies.
  const int64_t size;
  const MicroKernel &micro;
  mlir::Value weights;
};

/// Emits a maximum pooling.
class ChannelsLastMaxPoolKernel : public ChannelWindowKernel {
public:
  ChannelsLastMaxPoolKernel(ChannelsLastMaxPoolOp op,
                            ChannelWindowPlanAttr plan, KernelBody &body);

protected:
  void prepare(mlir::ImplicitLocOpBuilder &) override {}
  llvm::SmallVector<mlir::Value>
  emitResults(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
              llvm::SmallVector<mlir::Value> inits) override;

private:
  mlir::Value emitTaps(mlir::ImplicitLocOpBuilder &b, const Piece &piece,
                       int64_t dim, mlir::Value line, mlir::Value position,
                       mlir::Value largest);

  ChannelsLastMaxPoolOp pool;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONV_CHANNELWINDOWS_H
