//===- MicroKernel.h - Register-tiled contraction ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H
#define SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::cpu {

/// Shape of the register tiles for a target: `rows` accumulators of `width`
/// elements each.
struct TileShape {
  int64_t rows;
  int64_t width;

  /// A tile for a packed width of `packed`: two registers wide (wide enough to
  /// hide the latency of an FMA with few rows), and as high as the register
  /// file allows.
  static TileShape get(cpu::TargetAttr target, int64_t packed);
};

/// What a contraction's loop over k fetches beside its work, into the L2 cache:
/// cache lines that another loop, later, reads first, or into L1: lines that
/// the next tile writes. Weights come from memory once for each run, and large
/// activations too; whoever reads them only when it needs them waits.
struct Prefetch {
  /// The memory, flat, and where in it the loop's first line begins; null: it
  /// fetches nothing.
  mlir::Value memory, start;
  /// Elements from one line to the next.
  int64_t stride = 0;
  /// Values of k for each line: a power of two that divides their number. If
  /// more than `kMaxSteps`, a line is asked for again.
  int64_t period = 1;
  /// Whether the lines are to be written.
  bool isWrite = false;
  /// Whether they go into L2 also where a line comes faster into L1, unless
  /// that is roomy: more lines than it holds, for several loops.
  bool isForL2 = false;
  /// Lines for each value of k where one is too few (and the period is 1).
  int64_t count = 1;
  /// Lines that follow each other at each of these places.
  int64_t run = 1;

  static constexpr int64_t kLineBytes = 64;
  /// More steps than this in a row only make the code longer.
  static constexpr int64_t kMaxSteps = 4;
  /// f32 elements in a line of the cache.
  static constexpr int64_t kLine = kLineBytes / sizeof(float);
  /// Whether `weights` are too large to stay in the L2 cache from chunk to
  /// chunk, and from run to run.
  static bool pays(mlir::Value weights);
  /// Lines that several loops fetch together.
  struct Task {
    /// As above; `from` is where the first of all lines begins.
    mlir::Value memory, from;
    int64_t stride;
    int64_t lines;
    /// How many loops, and over how many values of k each.
    int64_t loops, depth;
    int64_t run = 1;
  };
  /// What loop number `loop` of them fetches. They may not get to the last
  /// lines; where there is time, the last loops fetch the same ones again.
  /// Nothing where that would be most of the time.
  static Prefetch share(mlir::ImplicitLocOpBuilder &b, const Task &task,
                        mlir::Value loop);
};

/// Emits accumulator + lhs * rhs on vectors.
using MultiplyAdd = llvm::function_ref<mlir::Value(
    mlir::ImplicitLocOpBuilder &b, mlir::Value lhs, mlir::Value rhs,
    mlir::Value accumulator)>;

/// By a fused multiply-add.
mlir::Value emitFusedMultiplyAdd(mlir::ImplicitLocOpBuilder &b, mlir::Value lhs,
                                 mlir::Value rhs, mlir::Value accumulator);

/// Emits the loop over k of a tile of `rows` x `columns` accumulators:
///   acc[r * columns + c] += broadcast(lhs(k, r)) * rhs(k, c)
/// and returns the accumulators after it.
llvm::SmallVector<mlir::Value> emitContractionLoop(
    mlir::ImplicitLocOpBuilder &b, mlir::Value size, int64_t rows,
    int64_t columns, mlir::ValueRange init,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t row)> lhs,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t column)> rhs,
    llvm::ArrayRef<Prefetch> prefetches = {},
    MultiplyAdd multiplyAdd = emitFusedMultiplyAdd);

/// The same from zeros (`type` each) in sums of `block` values of k, which are
/// added to each other: a sum of n numbers in f32 has an error of some sqrt(n),
/// one of sums that of a block and of their number. `block` is a multiple of
/// `Prefetch::kMaxSteps`.
llvm::SmallVector<mlir::Value> emitContractionOfBlocks(
    mlir::ImplicitLocOpBuilder &b, mlir::Value size, int64_t block,
    int64_t rows, int64_t columns, mlir::VectorType type,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t row)> lhs,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t column)> rhs,
    llvm::ArrayRef<Prefetch> prefetches = {});

/// One step of that loop.
void emitContractionStep(
    mlir::ImplicitLocOpBuilder &b, mlir::Value k, int64_t rows, int64_t columns,
    llvm::MutableArrayRef<mlir::Value> accumulators,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t row)> lhs,
    llvm::function_ref<mlir::Value(mlir::Value k, int64_t column)> rhs,
    MultiplyAdd multiplyAdd);

/// The integer `value` as a `type`, or in all lanes of one.
mlir::Value emitSplat(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                      int64_t value);

/// The same of an f32.
mlir::Value emitFloatSplat(mlir::ImplicitLocOpBuilder &b, mlir::Type type,
                           float value);

/// The larger magnitudes of `largest`, as bits, which order them with
/// infinities and NaN on top, and of `value`, of f32.
mlir::Value emitLarger(mlir::ImplicitLocOpBuilder &b, mlir::Value largest,
                       mlir::Value value);

/// Asks for the line of `memref` at `indices`, which may be past its end; into
/// the L1 cache, or, with locality 2, into L2.
void emitFetch(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
               mlir::ValueRange indices, int64_t locality = 3);

/// `index` in all lanes of a vector of i32.
mlir::Value emitSplat32(mlir::ImplicitLocOpBuilder &b, mlir::Value index,
                        int64_t width);

/// The lanes i < width with 0 <= start + step * i < size.
mlir::Value emitInside(mlir::ImplicitLocOpBuilder &b, mlir::Value start,
                       int64_t width, mlir::Value size, int64_t step = 1);

/// `mask` if 0 <= index < size, no lane otherwise.
mlir::Value emitRowMask(mlir::ImplicitLocOpBuilder &b, mlir::Value mask,
                        mlir::Value index, mlir::Value size);

/// What lanes hold that are not read: zero, or one for integers, which some
/// body may divide by.
mlir::Value emitPadding(mlir::ImplicitLocOpBuilder &b, mlir::VectorType type);

/// A vector of `width` elements at `indices`; lanes that `mask` turns off are
/// not read and hold `emitPadding`.
mlir::Value emitLoad(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                     mlir::ValueRange indices, int64_t width,
                     mlir::Value mask = nullptr);

/// Stores `vector` at `indices`, only lanes of `mask` if there is one.
void emitStore(mlir::ImplicitLocOpBuilder &b, mlir::Value vector,
               mlir::Value memref, mlir::ValueRange indices,
               mlir::Value mask = nullptr);

/// A mask of the first `count` of `width` lanes; null if `count` is known to
/// cover all.
mlir::Value emitTailMask(mlir::ImplicitLocOpBuilder &b, mlir::Value count,
                         int64_t width);

/// The lanes 0, step, 2 * step, ... of a vector of i32.
mlir::Value emitLanes(mlir::ImplicitLocOpBuilder &b, int64_t width,
                      int64_t step);

/// Lanes first, first + step, ... of two vectors after one another.
mlir::Value emitPick(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                     mlir::Value y, int64_t first, int64_t step, int64_t count);

/// Vectors of the same length, one after the other; their number is a power of
/// two.
mlir::Value emitConcatenation(mlir::ImplicitLocOpBuilder &b,
                              llvm::SmallVector<mlir::Value> parts);

/// Transposes squares of `rows.size()`, a power of two, in registers, of which
/// each vector has one or several: result[i][s + j] = rows[j][s + i].
llvm::SmallVector<mlir::Value> emitTranspose(mlir::ImplicitLocOpBuilder &b,
                                             llvm::ArrayRef<mlir::Value> rows);

/// Memory of `type`, with `sizes` for its open dimensions, that begins with a
/// line of the cache.
mlir::Value emitBuffer(mlir::ImplicitLocOpBuilder &b, mlir::MemRefType type,
                       mlir::ValueRange sizes = {});

/// `memref` (of identity layout) with dimensions from `first` on collapsed.
mlir::Value emitCollapse(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                         int64_t first);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H
