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
#include "MicroKernels/CompressedWeights.h"
#include "MicroKernels/DotMicroKernels.h"
#include "MicroKernels/MicroKernel.h"

#include "dialects/CPU/CPU.h"

namespace sardonyx::cpu {

/// Where the sums of a register tile begin: in which row of a chunk's `sums`
/// (null: at zero), and at which group of values of k they go on.
struct Start {
  mlir::Value row;
  int64_t group = 0;
  /// The first column of a panel that a narrower tile has; null: the first.
  mlir::Value column;
  /// Whether nothing is left to be added.
  bool isWhole = false;
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
};

/// How a product goes by Strassen's algorithm (StrassenMatmul.cpp).
struct StrassenPlan {
  /// Values of k whose halves are added to each other.
  int64_t depth = 0;
  /// Panels of the left half of the columns, that is pairs of panels.
  int64_t pairs = 0;
  /// Tiles side by side in a panel.
  int64_t pieces = 1;
  /// Values of k after which something is fetched.
  int64_t period = 1;

  int64_t half() const { return depth / 2; }
  /// Periods in a product over half of a range.
  int64_t periods() const { return half() / period; }
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

/// Emits the loops of one kernel around a packed matrix product.
class MatmulEmitter {
public:
  MatmulEmitter(cpu::PackedMatmulOp op, KernelBody &body,
                cpu::TargetAttr target)
      : op(op), body(body),
        evaluator(body, op->getResult(0), op.isBatched() ? 1 : 0,
                  op.isBatched() ? 2 : 1),
        depthGroup(op.getDepthGroup()), target(target) {}

  mlir::LogicalResult verify();
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
    /// What tile registers have summed up for a block of rows.
    mlir::Value sums;
  };

  /// Rows that a product whose number of them is open is planned for.
  static constexpr int64_t kLikelyRows = 128;
  /// Up to so many rows use a weight as fast as memory can give it.
  static constexpr int64_t kFewRows = 32;
  /// Rows of a tile of which the last ones do best in others (emitRestOfRows),
  /// and those of the lowest that keeps the multipliers busy.
  static constexpr int64_t kUnevenRows = 6, kLowRows = 4;

  void emitLoops(mlir::ImplicitLocOpBuilder &b, int64_t rows);
  void emitChunks(mlir::ImplicitLocOpBuilder &b);
  void emitBf16x3Loops(mlir::ImplicitLocOpBuilder &b);
  void emitBf16x3Panels(mlir::ImplicitLocOpBuilder &b, Chunk chunk,
                        const Bf16x3Buffers &buffers, mlir::Value range,
                        mlir::Value firstPanel, mlir::Value endPanel);
  void emitPanelParts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value panel, const DepthRange &depth,
                      mlir::Value firstPair, mlir::Value endPair,
                      const ColumnParts &to);
  void emitBf16x3Block(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                       const Bf16x3Buffers &buffers, const Bf16x3Block &block,
                       const DepthRange &depth, const ColumnParts &columns,
                       const ColumnParts &next);
  void emitBf16x3Results(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                         const Bf16x3Block &block, mlir::Value isBad);
  DepthRange getDepthRange(mlir::ImplicitLocOpBuilder &b, mlir::Value range);
  void emitAfterLastRange(mlir::ImplicitLocOpBuilder &b, mlir::Value range,
                          llvm::function_ref<void()> body);
  Tile getTile(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
               mlir::Value row, mlir::Value position);
  void emitRestOfRows(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value first);
  void emitRows(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk);
  mlir::Value emitBlocks(
      mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
      llvm::function_ref<void(mlir::Value row, int64_t rowTiles)> emitBlock);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                 mlir::Value row, int64_t rowTiles);
  void emitRowTail(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                   mlir::Value row);
  void emitTiles(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                 mlir::Value row, int64_t rows, mlir::Value rowLimit);
  void emitTile(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                mlir::Value row, int64_t rows, mlir::Value column,
                mlir::Value rowLimit, Start start = {});
  void emitPanelGroup(mlir::ImplicitLocOpBuilder &b, Chunk chunk);
  bool isOfBytes() { return depthGroup == 4; }
  bool multipliesAtOnce();
  void widenFewRows();
  void planTiles();
  void planBf16x3();
  void planStrassen();
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
  void planChunks();
  /// How often the values of k, whose number is known, fill tile registers.
  int64_t countTileSteps() {
    return op.getLhs().getType().getShape().back() / (kTileRows * depthGroup);
  }
  Prefetch prefetchNextPanel(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                             mlir::Value row, mlir::Value columnInPanel);
  llvm::SmallVector<mlir::Value>
  emitProducts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
               llvm::ArrayRef<mlir::Value> rows, mlir::Value columnInPanel,
               llvm::SmallVector<mlir::Value> accs,
               llvm::ArrayRef<Prefetch> prefetches, int64_t firstGroup);
  llvm::SmallVector<mlir::Value>
  emitScaledProducts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                     llvm::ArrayRef<mlir::Value> rows,
                     mlir::Value columnInPanel,
                     llvm::SmallVector<mlir::Value> accs);
  llvm::SmallVector<mlir::Value>
  emitDepthBlock(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                 llvm::ArrayRef<mlir::Value> rows, mlir::Value columnInPanel,
                 mlir::ValueRange accs, mlir::Value block, int64_t size);
  Prefetch prefetchW24(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                       int64_t p, int64_t depth);
  CompressedPanel getCompressedPanel(mlir::Value number);
  using LeftNumber = std::function<mlir::Value(mlir::Value k, int64_t row)>;
  llvm::SmallVector<mlir::Value>
  emitW21Products(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                  const LeftNumber &left, int64_t rows,
                  llvm::SmallVector<mlir::Value> accs);
  llvm::SmallVector<mlir::Value>
  emitCompressedProducts(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                         llvm::ArrayRef<mlir::Value> rows,
                         llvm::ArrayRef<mlir::Value> accs);
  mlir::Value emitNumbers(mlir::ImplicitLocOpBuilder &b, mlir::Value panel,
                          mlir::Value depth, mlir::Value columnInPanel);
  mlir::Value emitLhs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value row, mlir::Value depth, int64_t count);
  mlir::Value emitRhs(mlir::ImplicitLocOpBuilder &b, const Chunk &chunk,
                      mlir::Value panel, mlir::Value depth,
                      mlir::Value columnInPanel);

  cpu::PackedMatmulOp op;
  KernelBody &body;
  TileEvaluator evaluator;
  TileShape shape = {};
  /// Values of k that are multiplied at once, and how narrow ones are.
  int64_t depthGroup;
  cpu::TargetAttr target;
  mlir::Value lhs, rhs, scales, m, n, panelCount;
  /// Groups of values of k in the right-hand side, the last maybe not full.
  mlir::Value k;
  /// Rows that the loops are planned for.
  int64_t plannedRows = 0;
  /// Panels that a tile spans: several where the rows are too few to keep the
  /// multipliers busy, and where there are registers for more.
  int64_t panelsPerTile = 1;
  /// Whether a single row reads one panel after the other, as the stream that
  /// a processor of narrow vectors fetches best by itself.
  bool readsOneStream = false;
  /// Tiles one below the other in a chunk, at most.
  int64_t chunkTiles = 1;
  /// Whether tile registers take what fills them.
  bool usesTiles = false;
  /// Whether they take f32, by parts; so many rows, values of k and panels at a
  /// time.
  bool usesBf16x3 = false;
  int64_t partRows = 0, partDepth = 0, partPanels = 0;
  /// Whether seven products are made in the place of eight.
  bool usesStrassen = false;
  StrassenPlan strassen;
  /// Whether the rows of a chunk meet all panels before other rows do.
  bool rowsFirst = false;
  /// Whether the right-hand side comes from memory in each run.
  bool comesFromMemory = false;
  /// The right-hand side as one dimension; null where nothing is prefetched.
  mlir::Value flatRhs;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_MATMULEMITTER_H
