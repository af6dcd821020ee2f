//===- ContractionLoop.h - The loop of a register tile ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_CONTRACTIONLOOP_H
#define SARDONYX_LIB_TARGETS_CPU_CONTRACTIONLOOP_H

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

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_CONTRACTIONLOOP_H
