//===- NarrowConv.h - Loops of a narrow convolution -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONV_NARROWCONV_H
#define SARDONYX_LIB_TARGETS_CPU_CONV_NARROWCONV_H

#include "Conv/Windows.h"
#include "Kernel/Epilogue.h"
#include "MicroKernels/AmxMicroKernel.h"
#include "Plan/NarrowConvPlan.h"

namespace sardonyx::cpu {

/// The kernel around a convolution of bytes or bf16, by a plan that fits.
class NarrowConvKernel {
public:
  NarrowConvKernel(const NarrowConvFacts &facts, NarrowConvPlanAttr plan,
                   KernelBody &body);

  llvm::LogicalResult verify();
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  /// Rows of the product, which are output positions, and the memory that has
  /// their windows: row `first` of all is row `firstOfLhs` there, and values of
  /// k begin with element `offset` of a row.
  struct Rows {
    mlir::Value group, first, end;
    mlir::Value lhs, firstOfLhs, offset;
    /// Where `lhs` is the input: memory for the rows that do not fill a block
    /// of tile registers, which would end past it.
    mlir::Value last;
  };

  Rows begin(mlir::ImplicitLocOpBuilder &b, mlir::Value group,
             mlir::Value first, mlir::Value end, mlir::Value scratch);
  mlir::Value emitScratch(mlir::ImplicitLocOpBuilder &b, int64_t rows);
  void emitLastRows(mlir::ImplicitLocOpBuilder &b, Rows &rows);
  void emitPack(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                mlir::Value from, mlir::Value to);
  void emitPackedTaps(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                      mlir::Value row, llvm::ArrayRef<mlir::Value> window,
                      int64_t dim, mlir::Value pixel, mlir::Value inside,
                      mlir::Value tap);
  void emitPackedRun(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                     mlir::Value row, mlir::Value first, mlir::Value line,
                     mlir::Value inside, mlir::Value tap);
  void emitFiltersShared(mlir::ImplicitLocOpBuilder &b);
  void emitPanelGroups(mlir::ImplicitLocOpBuilder &b, const Rows &rows);
  void emitPanels(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                  mlir::Value panel, int64_t count);
  void forEachColumn(mlir::ImplicitLocOpBuilder &b, mlir::Value panel,
                     llvm::function_ref<void(mlir::Value)> emit);
  mlir::Value emitSumMemory(mlir::ImplicitLocOpBuilder &b);
  std::optional<TileOperand> emitStart(mlir::ImplicitLocOpBuilder &b,
                                       mlir::Value group, mlir::Value panel,
                                       mlir::Value sums);
  Tile getTile(mlir::ImplicitLocOpBuilder &b, mlir::Value group,
               mlir::Value panel, mlir::Value column, mlir::Value row,
               mlir::Value rowLimit);
  void emitFetchOfNextPanel(mlir::ImplicitLocOpBuilder &b, mlir::Value panel,
                            mlir::Value block, mlir::Value blocks,
                            mlir::Value step, mlir::Value position);
  void emitBlocks(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                  mlir::Value panel);
  Prefetch prefetchNextPanels(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                              const PackedTile &tile, mlir::Value row);
  void emitTile(mlir::ImplicitLocOpBuilder &b, const Rows &rows,
                mlir::Value panel, int64_t panels, mlir::Value column,
                mlir::Value row, int64_t count, mlir::Value rowLimit,
                mlir::Value sums = nullptr, mlir::ValueRange sumRows = {});

  /// Output lines from `first` on of an image, as many as `count` (index), and
  /// the memory that has the lines of the input that they see, with pads.
  struct Lines {
    mlir::Value image, first, count, memory;
  };
  bool isInLines() const { return plan.getInPlace() && !facts.canBeInPlace(); }
  void emitInLines(mlir::ImplicitLocOpBuilder &b);
  mlir::Value emitLineMemory(mlir::ImplicitLocOpBuilder &b, int64_t lines);
  mlir::Value countInputLines(mlir::ImplicitLocOpBuilder &b, mlir::Value count);
  void emitCopyOfLine(mlir::ImplicitLocOpBuilder &b, const Lines &lines,
                      mlir::Value line);
  void emitLineBlocks(mlir::ImplicitLocOpBuilder &b, const Lines &lines,
                      mlir::Value panel);

  const NarrowConvFacts &facts;
  const NarrowConvPlanAttr plan;
  NarrowConvOp op;
  KernelBody &body;
  TileEvaluator evaluator;
  Windows windows;
  const MicroKernel &micro, &vectors;
  /// Whether sums of all rows start from the same numbers, which tile registers
  /// are given.
  const bool startsFromOneRow;
  /// The input as one dimension, and as [positions,C] where windows are read
  /// from there.
  mlir::Value flatInput, inputRows;
  mlir::Value weights, allRows;
  /// The weights as one dimension where they come from memory; null where they
  /// do not.
  mlir::Value flatWeights;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONV_NARROWCONV_H
