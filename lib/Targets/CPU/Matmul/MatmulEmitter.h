//===- MatmulEmitter.h - The loops of a matrix product ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_MATMULEMITTER_H
#define SARDONYX_LIB_TARGETS_CPU_MATMULEMITTER_H

#include "Common/IndexMath.h"
#include "Kernel/Epilogue.h"
#include "MicroKernels/Bf16x3Product.h"
#include "MicroKernels/MicroKernel.h"
#include "MicroKernels/RoundedRows.h"
#include "MicroKernels/VectorOps.h"
#include "Plan/MatmulPlan.h"

#include "dialects/CPU/CPU.h"

namespace sardonyx::cpu {

/// Where the sums of a register tile begin: in which row of a chunk's `sums`
/// (null: at zero), and at which group of values of k they go on (null: the
/// first).
struct Start {
  mlir::Value row, group;
  /// The first column of a panel that a narrower tile has; null: the first.
  mlir::Value column;
  /// Whether nothing is left to be added.
  bool isWhole = false;
  /// Whether the sums are right, as a run finds; where they are not, the whole
  /// tile is multiplied anew. Null: they are.
  mlir::Value areRight;
};

/// What a product by parts keeps of some rows.
struct Bf16x3Buffers {
  /// The parts of the rows, for a range of k.
  mlir::Value rows;
  /// Whether a block of rows must not be multiplied by parts.
  mlir::Value rowFlags;
  /// Sums over the ranges before this one, and whether a panel must not be;
  /// null where there is but one range.
  mlir::Value sums, panelFlags;
};

/// A block of rows of a product by parts.
struct Bf16x3Block {
  mlir::Value row;
  int64_t rowTiles;
  /// Which of its chunk, and in which row of the sums it begins.
  mlir::Value number, sum;
  /// Where its rows end; null: it has all that tile registers have.
  mlir::Value rowLimit = {};
};

/// How threads share a product by Strassen's algorithm: the rows are cut into
/// `splitRows`, and each goes with `splitPanel` of the groups of panels.
struct StrassenSplit {
  mlir::Value splitRows, splitPanel;
  /// Whether the product is faster so than directly.
  mlir::Value pays;
};

struct StrassenRows;
struct StrassenScratch;
struct StrassenGroup;

/// The buffers and the sizes of a packed product.
struct MatmulOperands {
  mlir::Value lhs, rhs, scales, m, n, panelCount;
  /// Groups of values of k in the right-hand side, the last maybe not full.
  mlir::Value k;
  /// The right-hand side as one dimension; null where nothing is prefetched.
  mlir::Value flatRhs;
};

/// The kernel around a packed matrix product, by a plan that fits.
class MatmulKernel {
public:
  MatmulKernel(PackedMatmulOp op, const MatmulFacts &facts, MatmulPlanAttr plan,
               KernelBody &body)
      : op(op), facts(facts), plan(plan), body(body),
        evaluator(body, op->getResult(0), op.isBatched() ? 1 : 0,
                  op.isBatched() ? 2 : 1) {}

  mlir::LogicalResult verify();
  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  MatmulOperands getOperands(mlir::ImplicitLocOpBuilder &b);
  void emitCases(mlir::ImplicitLocOpBuilder &b, const MatmulOperands &operands,
                 llvm::ArrayRef<MatmulCaseAttr> cases, int64_t before);

  PackedMatmulOp op;
  const MatmulFacts &facts;
  const MatmulPlanAttr plan;
  KernelBody &body;
  TileEvaluator evaluator;
};

/// Emits the loops of a packed matrix product by a plan, or by `direct` where a
/// run cannot go by it; null where all can.
class MatmulEmitter {
public:
  MatmulEmitter(PackedMatmulOp op, TileEvaluator &evaluator,
                const MatmulFacts &facts, const MatmulOperands &operands,
                const MatmulPlan &plan, const MatmulPlan *direct = nullptr)
      : op(op), evaluator(evaluator), facts(facts), plan(plan), direct(direct),
        shape(this->plan.shape), depthGroup(op.getDepthGroup()),
        target(facts.target), form(plan.micro->getForm()),
        vectors(plan.micro->getUnit() == MicroKernel::Unit::Vectors
                    ? *plan.micro
                    : *facts.selectExact()),
        lhs(operands.lhs), rhs(operands.rhs), scales(operands.scales),
        m(operands.m), n(operands.n), panelCount(operands.panelCount),
        k(operands.k), flatRhs(operands.flatRhs) {}

  void emit(mlir::ImplicitLocOpBuilder &b);

private:
  friend class StrassenEmitter;

  /// The part of a batch that one iteration of the parallel loop computes.
  struct Chunk {
    mlir::Value batch; // null without a batch
    /// The first of its panels, and how many they are.
    mlir::Value panel;
    int64_t panels = 1;
    mlir::Value firstRow, endRow;
    /// What tile registers have summed up for a block of rows, and, to be
    /// scaled, for a block of values of k.
    mlir::Value sums, unscaled;
    /// Its panels as f32 [panel, k, column], where they are unpacked.
    mlir::Value unpacked;
  };

  static constexpr int64_t kFewRows = MatmulPlan::kFewRows;
  static constexpr int64_t kUnevenRows = MatmulPlan::kUnevenRows;
  static constexpr int64_t kLowRows = MatmulPlan::kLowRows;

  void emitDirect(mlir::ImplicitLocOpBuilder &b);
  void emitChunks(mlir::ImplicitLocOpBuilder &b);
  void emitRoundedRows(mlir::ImplicitLocOpBuilder &b);
  void emitBf16x3Loops(mlir::ImplicitLocOpBuilder &b);
  void emitBf16x3Panels(mlir::ImplicitLocOpBuilder &b, Chunk chunk,
                        const Bf16x3Buffers &buffers, mlir::Value range,
                        mlir::Value firstPanel, mlir::Value endPanel);
  void
  emitFilledBlocks(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                   llvm::function_ref<void(mlir::Value row, int64_t rowTiles,
                                           mlir::Value rowLimit)>
                       emitBlock);
  void emitPanelParts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value panel, const DepthRange &depth,
                      mlir::Value firstPair, mlir::Value endPair,
                      const ColumnParts &to);
  void emitBf16x3Block(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                       const Bf16x3Buffers &buffers, const Bf16x3Block &block,
                       const DepthRange &depth, const ColumnParts &columns,
                       const ColumnParts &next);
  int64_t countScaledPieces() const;
  void emitScaledProducts(
      mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
      const Bf16x3Buffers &buffers, const Bf16x3Block &block,
      const DepthRange &depth, const ColumnParts &columns,
      llvm::function_ref<void(mlir::Value step, int64_t product)> meanwhile);
  void emitBf16x3Results(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                         const Bf16x3Block &block, mlir::Value isBad);
  PackedTile getPackedTile(const Chunk &chunk, int64_t rows, int64_t width);
  DepthRange getDepthRange(mlir::ImplicitLocOpBuilder &b, mlir::Value range);
  void emitAfterLastRange(mlir::ImplicitLocOpBuilder &b, mlir::Value range,
                          llvm::function_ref<void()> body);
  Tile getTile(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
               mlir::Value row, mlir::Value position);
  void emitRestOfRows(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value first);
  void emitRows(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk);
  mlir::Value emitUnpackedPanels(mlir::ImplicitLocOpBuilder &b,
                                 const Chunk &chunk);
  mlir::Value emitBlocks(
      mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
      llvm::function_ref<void(mlir::Value row, int64_t rowTiles)> emitBlock);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                 mlir::Value row, int64_t rowTiles,
                 mlir::Value missing = nullptr);
  void fetchNextPanel(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value row, mlir::Value step);
  void emitRowTail(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                   mlir::Value row);
  void emitTiles(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                 mlir::Value row, int64_t rows, mlir::Value rowLimit);
  void emitTile(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                mlir::Value row, int64_t rows, mlir::Value column,
                mlir::Value rowLimit, Start start = {});
  void emitPanelGroup(mlir::ImplicitLocOpBuilder &b, Chunk chunk);
  void emitStrassenLoops(mlir::ImplicitLocOpBuilder &b);
  StrassenSplit emitStrassenSplit(mlir::ImplicitLocOpBuilder &b,
                                  mlir::Value rows);
  StrassenRows getStrassenRows(mlir::ImplicitLocOpBuilder &b,
                               mlir::Value firstRow, mlir::Value endRow);
  void emitOddPanels(mlir::ImplicitLocOpBuilder &b, const StrassenRows &rows,
                     mlir::Value endRow);
  void emitStrassenRows(mlir::ImplicitLocOpBuilder &b,
                        const StrassenSplit &split, mlir::Value firstRow,
                        mlir::Value endRow);
  void emitStrassenGroup(mlir::ImplicitLocOpBuilder &b,
                         const StrassenRows &rows,
                         const StrassenScratch &scratch,
                         const StrassenGroup &group, mlir::Value depth);
  /// Whether no step of a product by parts has fewer values of k than others.
  bool hasFullSteps() {
    return IndexMath::known(k).value_or(1) % kStepDepth == 0;
  }
  Prefetch prefetchNextPanel(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                             mlir::Value row, mlir::Value columnInPanel);
  llvm::SmallVector<mlir::Value>
  emitProducts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
               llvm::ArrayRef<mlir::Value> rows, mlir::Value columnInPanel,
               llvm::SmallVector<mlir::Value> accs,
               llvm::ArrayRef<Prefetch> prefetches, mlir::Value firstGroup);
  /// The number of values of k, and how often they fill tile registers.
  mlir::Value getDepth(mlir::ImplicitLocOpBuilder &b);
  mlir::Value countTileSteps(mlir::ImplicitLocOpBuilder &b);
  mlir::Value emitLhs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value row, mlir::Value depth, int64_t count);

  PackedMatmulOp op;
  TileEvaluator &evaluator;
  const MatmulFacts facts;
  const MatmulPlan plan;
  const MatmulPlan *const direct;
  /// That of the plan.
  const TileShape &shape;
  /// Values of k that are multiplied at once.
  const int64_t depthGroup;
  const TargetAttr target;
  /// That of split tiles.
  const SplitForm &form;
  /// What multiplies on vectors.
  const MicroKernel &vectors;
  /// See MatmulOperands.
  const mlir::Value lhs, rhs, scales, m, n, panelCount, k, flatRhs;
  /// Where rows are rounded, what they are then; null elsewhere.
  RoundedRows rounded = {};
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_MATMULEMITTER_H
