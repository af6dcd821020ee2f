//===- StrassenEmitter.h - A step of Strassen's algorithm -------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_STRASSENEMITTER_H
#define SARDONYX_LIB_TARGETS_CPU_STRASSENEMITTER_H

#include "Matmul/MatmulEmitter.h"

namespace sardonyx::cpu {

/// The quarters of a result: its lower half, its right half.
enum StrassenQuarter {
  TopLeft,
  BottomLeft,
  TopRight,
  BottomRight,
  kStrassenQuarters
};

/// Products in a step, each in a phase of its own. The first have rows of the
/// upper half as such, the others sums of rows (one is a copy of a22), of which
/// each has its own.
inline constexpr int64_t kStrassenProducts = 7;
inline constexpr int64_t kPhasesOfRows = 2;
inline constexpr int64_t kRowSums = kStrassenProducts - kPhasesOfRows;
/// What StrassenFetch::share counts in.
inline constexpr int64_t kStrassenShareUnit = 1 << 16;
/// Which states of a tile are kept (StrassenEmitter.cpp): v + x is in the place
/// of x, and w in that of y.
enum StrassenState { kStateU, kStateX, kStateY, kStrassenStates };

/// The rows that Strassen's algorithm computes at a time: `count` from `first`
/// on, the upper `half` of them in so many tiles. There is memory for `padded`.
struct StrassenRows {
  mlir::Value first, count, half, tiles;
  int64_t padded = 0;
  /// The tiles that one thread multiplies, the last of which may not be full.
  mlir::Value firstTile, endTile, endOfFull;
  /// Of a range of k: [sum, row of the upper half, value of k of a half], and
  /// by tile, whether its rows must be multiplied directly.
  mlir::Value sums, bad;
};

/// What one thread keeps of Strassen's algorithm.
struct StrassenScratch {
  /// The columns of a phase: [piece, panel, value of k, column of the piece].
  mlir::Value columns;
  /// States of each tile: [which, panel, row, column].
  mlir::Value kept;
  /// [(panel, quarter, row), column].
  mlir::Value results;
};

/// Group `number` of those from `first` to `end`, a part, and whether the
/// thread that has it has yet to make the sums of its rows.
struct StrassenGroup {
  mlir::Value number, first, end, needsSums;
};

/// A group of panels, from `panel` on, and a range of k, from `depth` on.
struct StrassenStep {
  mlir::Value panel, depth;
  /// The same of the step after this, whose weights are fetched beside this
  /// one's products where `hasNext`.
  mlir::Value nextPanel, nextDepth, hasNext;
  /// Whether other ranges of k are added.
  bool isAdded = false;
  /// Whether sums of rows are made first, and its range of k is the last.
  mlir::Value needsSums, isLast;
};

/// Rows of a tile in the upper half; the lower half has as many. Limited ones
/// may be past the end of either, and then repeat its last.
struct StrassenTile {
  mlir::Value row;
  int64_t rows;
  bool isLimited;
  /// Which of the thread's full tiles it is; null: it is none of them.
  mlir::Value number;
};

/// A quarter of a group's weights, from `panel` and `depth` on, whose rows are
/// fetched beside the products of a phase, before each period so many as
/// `share` says, in units of 2^-16; 0: nothing is.
struct StrassenFetch {
  mlir::Value panel, depth, share;
};

/// One of the products of all tiles.
struct StrassenPhase {
  mlir::Value number;
  /// Whether it has rows as such.
  mlir::Value isOfRows;
  /// Whether its columns are a sum of weights, and whether that is of what the
  /// phase before has made.
  mlir::Value isSum, isSumOfMade;
  /// Whether it begins with a state of a tile that was kept; keeps another, or
  /// those that make up sums of states.
  mlir::Value startsFromState, endsInState, endsInSums;
  /// Whether no product of a tile is left after it.
  bool isLast;
  StrassenFetch fetch;
};

/// The rows of the upper half that fill no tile: at most `rows`, from a tile
/// on. They have a lower one.
struct StrassenRest {
  int64_t rows = 0;
  /// Whether other tiles may be past the end of the rows, and whether this may.
  bool areTilesLimited = false, isLimited = false;
  mlir::Value firstTile;
};

/// The products of a tile in a phase, with a piece of its panels, that begins
/// with `column`.
struct StrassenProducts {
  const StrassenTile &tile;
  mlir::Value piece, column;
  /// How many loops of the phase come before; null where nothing is fetched
  /// beside these.
  mlir::Value loop;
};

/// The rows of the upper half that fill no tile of `tileRows`.
StrassenRest getStrassenRest(mlir::ImplicitLocOpBuilder &b,
                             const StrassenRows &rows, int64_t tileRows);

/// Emits a step: the products of a thread's rows with a group of panels over a
/// range of k. Seven products of halves are in phases, each over all tiles.
class StrassenEmitter {
public:
  StrassenEmitter(MatmulEmitter &matmul, mlir::ImplicitLocOpBuilder &b,
                  const StrassenRows &rows, const StrassenScratch &scratch,
                  const StrassenStep &step);
  void emit();

private:
  /// The number of a left-hand or a right-hand side at a value of k, in a row
  /// or a panel of a tile.
  using Operand = std::function<mlir::Value(mlir::Value k, int64_t index)>;
  using Accumulators = llvm::SmallVector<mlir::Value>;

  StrassenPhase getPhase(mlir::Value number, bool isLast);
  mlir::Value ofPhase(mlir::Value number, llvm::ArrayRef<int64_t> values);
  void emitPhase(const StrassenPhase &phase);
  void emitPiece(const StrassenPhase &phase, mlir::Value piece);
  void emitProducts(const StrassenPhase &phase, const StrassenProducts &at,
                    mlir::Value isMaker);
  void forEachTile(llvm::function_ref<void(const StrassenTile &)> body);
  mlir::Value isBad(const StrassenTile &tile);
  mlir::Value isGood(const StrassenTile &tile);
  mlir::Value countFullTiles();

  // StrassenSums.cpp
  void emitRowSums(mlir::Value tile);
  mlir::Value makesColumns(const StrassenPhase &phase);
  Accumulators makeColumns(
      const StrassenPhase &phase, const StrassenProducts &at,
      mlir::TypeRange types,
      llvm::function_ref<Accumulators(const Operand &columns, bool areSums)>
          body);

  // Operands.
  mlir::Value getRow(const StrassenTile &tile, int64_t r, bool isBottom);
  Operand getUpperRows(const StrassenPhase &phase, const StrassenTile &tile);
  Operand getRowSums(const StrassenPhase &phase, const StrassenTile &tile);
  Operand getWeights(const StrassenProducts &at, mlir::Value isRight,
                     mlir::Value isLater);
  Operand getFirstWeights(const StrassenPhase &phase,
                          const StrassenProducts &at);
  Operand getColumns(const StrassenProducts &at);
  Accumulators choose(mlir::TypeRange types, mlir::Value condition,
                      llvm::function_ref<Accumulators()> then,
                      llvm::function_ref<Accumulators()> otherwise);
  Accumulators multiply(const StrassenProducts &at, const Accumulators &accs,
                        const Operand &left, const Operand &right,
                        llvm::function_ref<void(mlir::Value period)> beside);

  // What is fetched.
  StrassenFetch getFetch(const StrassenPhase &phase);
  void fetchWeights(const StrassenFetch &fetch, mlir::Value loop,
                    mlir::Value period);

  // StrassenResults.cpp
  Accumulators makeZeros(const StrassenTile &tile);
  Accumulators begin(const StrassenPhase &phase, const StrassenProducts &at);
  void end(const StrassenPhase &phase, const StrassenProducts &at,
           Accumulators &accs);
  void forEach(
      const StrassenTile &tile, Accumulators &accs,
      llvm::function_ref<void(mlir::Value &acc, int64_t r, int64_t p)> body);
  void keep(const StrassenProducts &at, mlir::Value acc, mlir::Value state,
            int64_t r, int64_t p);
  mlir::Value getKept(const StrassenProducts &at, mlir::Value state, int64_t r,
                      int64_t p);
  void store(const StrassenProducts &at, mlir::Value acc, mlir::Value quarter,
             int64_t r, int64_t p);
  mlir::Value getResultRow(mlir::Value panel, mlir::Value quarter,
                           mlir::Value row);
  void fetchResults(const StrassenProducts &at, mlir::Value period);
  void emitDirectTiles();
  void emitDirect(const StrassenTile &tile);
  void emitResults(const StrassenTile &tile);

  MatmulEmitter &matmul;
  mlir::ImplicitLocOpBuilder &b;
  IndexMath math;
  const StrassenRows &rows;
  const StrassenScratch &scratch;
  const StrassenStep &step;
  /// What `matmul` has planned.
  const StrassenPlan &plan;
  const int64_t tileRows, width, panels;
  const StrassenRest rest;
  const mlir::Value zero;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_STRASSENEMITTER_H
