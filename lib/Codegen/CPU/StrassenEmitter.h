//===- StrassenEmitter.h - A step of Strassen's algorithm ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CODEGEN_CPU_STRASSENEMITTER_H
#define SARDONYX_LIB_CODEGEN_CPU_STRASSENEMITTER_H

#include "MatmulEmitter.h"

namespace sardonyx::cpu {

/// The quarters of a result: its lower half, its right half.
enum StrassenQuarter {
  TopLeft,
  BottomLeft,
  TopRight,
  BottomRight,
  kStrassenQuarters
};

/// Products in a step, and those before its second and its third phase.
inline constexpr int64_t kStrassenProducts = 7;
inline constexpr int64_t kFirstOfSecond = 2, kFirstOfThird = 5;
/// Sums of columns, t1 to t4, and those of rows, s1 to s4, with a copy of a22.
inline constexpr int64_t kColumnSums = 4, kRowSums = 5, kCopyOfRows = 4;
/// What StrassenSums::share counts in.
inline constexpr int64_t kStrassenShareUnit = 1 << 16;

/// The rows that Strassen's algorithm computes at a time: `count` from `first`
/// on, the upper `half` of them in so many tiles. There is memory for `padded`.
struct StrassenRows {
  mlir::Value first, count, half, tiles;
  int64_t padded = 0;
  /// The tiles that one thread multiplies, the last of which may not be full.
  mlir::Value firstTile, endTile, endOfFull;
  /// [sum, row of the upper half, value of k of a half], and by range of k and
  /// tile, whether its rows must be multiplied directly.
  mlir::Value sums, bad;
};

/// What one thread keeps of Strassen's algorithm.
struct StrassenScratch {
  /// Sums of columns for two steps: [slot, sum, panel, value of k, column].
  mlir::Value columns;
  /// States of each tile: [which, panel, row, column].
  mlir::Value kept;
  /// [(panel, quarter, row), column].
  mlir::Value results;
};

/// A group of panels, from `panel` on, and a range of k, from `depth` on.
struct StrassenStep {
  mlir::Value panel, depth;
  /// Where its sums of columns lie.
  mlir::Value slot;
  /// Whether other ranges of k are added.
  bool isAdded = false;
};

/// Sums of columns of a step, which are made beside products: of `count` rows
/// so many as `share`, in units of 2^-16, says before each period of them, from
/// the period number `origin` on.
struct StrassenSums {
  StrassenStep of;
  mlir::Value count, share, origin;
};

/// Whether a step is the first of its thread, in the first group of panels, or
/// the last range of k of its group.
struct StrassenOrder {
  mlir::Value isFirst, isFirstGroup, isLast;
};

/// Rows of a tile in the upper half; the lower half has as many. Limited ones
/// may be past the end of either, and then repeat its last.
struct StrassenTile {
  mlir::Value row;
  int64_t rows;
  bool isLimited;
};

/// The rows of the upper half that fill no tile: at most `rows`, from a tile
/// on. They have a lower one.
struct StrassenRest {
  int64_t rows = 0;
  /// Whether other tiles may be past the end of the rows, and whether this may.
  bool areTilesLimited = false, isLimited = false;
  mlir::Value firstTile;
};

/// A phase of a step: products of all tiles, `count` of each, after so many of
/// each `before`, and the sums beside them.
struct StrassenPhase {
  int64_t before, count;
  const StrassenSums &sums;
};

/// A tile, the columns of its panels from `column` on, and the period in which
/// the first of its products in a phase begins: null where no sums are made
/// beside them.
struct StrassenProducts {
  const StrassenTile &tile;
  const StrassenPhase &phase;
  mlir::Value column, firstPeriod;
};

/// The rows of the upper half that fill no tile of `tileRows`.
StrassenRest getStrassenRest(mlir::ImplicitLocOpBuilder &b,
                             const StrassenRows &rows, int64_t tileRows);

/// Emits a step: the products of a thread's rows with a group of panels over a
/// range of k. Seven products of halves are in three phases, in each of which a
/// register tile goes through several without leaving its registers.
class StrassenEmitter {
public:
  StrassenEmitter(MatmulEmitter &matmul, mlir::ImplicitLocOpBuilder &b,
                  const StrassenRows &rows, const StrassenScratch &scratch,
                  const StrassenStep &step, const StrassenOrder &order);

  /// With sums of columns beside the products of the first phase, `early`, and
  /// of the others, `later`.
  void emit(const StrassenSums &early, const StrassenSums &later);

private:
  /// The number of a left-hand or a right-hand side at a value of k, in a row
  /// or a panel of a tile.
  using Operand = std::function<mlir::Value(mlir::Value k, int64_t index)>;
  using Accumulators = llvm::SmallVector<mlir::Value>;

  void emitPhase(const StrassenPhase &phase,
                 llvm::function_ref<void(const StrassenProducts &)> products,
                 llvm::function_ref<void(const StrassenTile &)> otherwise,
                 llvm::function_ref<void(const StrassenTile &)> afterwards,
                 mlir::Value isAlways = {});
  void emitFirst(const StrassenProducts &at);
  void emitSecond(const StrassenProducts &at);
  void emitThird(const StrassenProducts &at);
  void emitLast(const StrassenTile &tile);
  mlir::Value periodsOf(int64_t products);

  // StrassenSums.cpp
  void emitRowSums(mlir::Value tile);
  void emitColumnSums(const StrassenStep &of, mlir::Value row);
  void emitSums(const StrassenSums &sums, mlir::Value from,
                mlir::Value end = {});

  // Operands.
  mlir::Value getDepth(bool isLater);
  mlir::Value getRow(const StrassenTile &tile, int64_t r, bool isBottom);
  Operand getUpperRows(const StrassenTile &tile, bool isLater);
  Operand getRowSums(const StrassenTile &tile, int64_t number);
  Operand getColumns(const StrassenProducts &at, bool isRight, bool isLater);
  Operand getColumnSums(const StrassenProducts &at, int64_t number);
  void multiply(const StrassenProducts &at, Accumulators &accs, int64_t number,
                const Operand &left, const Operand &right,
                llvm::function_ref<void(mlir::Value period)> beside = {});
  void fetchLowerRows(const StrassenTile &tile, mlir::Value depth);

  // States and results of a tile.
  Accumulators makeZeros(const StrassenTile &tile);
  void forEach(
      const StrassenProducts &at, Accumulators &accs,
      llvm::function_ref<void(mlir::Value &acc, int64_t r, int64_t p)> body);
  void keep(const StrassenProducts &at, Accumulators &accs, int64_t which);
  Accumulators getKept(const StrassenProducts &at, int64_t which);
  void addKept(const StrassenProducts &at, Accumulators &accs, int64_t which);
  void addResult(const StrassenProducts &at, Accumulators &accs,
                 StrassenQuarter quarter);
  void store(const StrassenProducts &at, Accumulators &accs,
             StrassenQuarter quarter);
  mlir::Value getResultRow(mlir::Value panel, mlir::Value quarter,
                           mlir::Value row);
  void fetchResults(const StrassenProducts &at, mlir::Value period);
  void emitDirect(const StrassenTile &tile);
  void emitResults(const StrassenTile &tile);

  MatmulEmitter &matmul;
  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const StrassenRows &rows;
  const StrassenScratch &scratch;
  const StrassenStep &step;
  StrassenOrder order;
  /// What `matmul` has planned.
  const StrassenPlan &plan;
  int64_t tileRows, width, panels;
  StrassenRest rest;
  mlir::Value zero;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_CODEGEN_CPU_STRASSENEMITTER_H
