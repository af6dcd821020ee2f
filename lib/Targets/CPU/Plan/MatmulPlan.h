//===- MatmulPlan.h - How matrix products are computed ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of sizes, of how the right-hand side is packed and of the machine,
// and of nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_PLAN_MATMULPLAN_H
#define SARDONYX_LIB_TARGETS_CPU_PLAN_MATMULPLAN_H

#include "MicroKernels/MicroKernel.h"

#include "dialects/CPU/CPU.h"

#include <optional>
#include <string>

namespace sardonyx::cpu {

/// What is known of a packed product when it is compiled. Sizes are nothing
/// where they are not.
struct MatmulFacts {
  MatmulFacts(PackingAttr packing, TargetAttr target)
      : packing(packing), target(target) {}
  /// Those of a product in its kernel.
  MatmulFacts(PackedMatmulOp op, TargetAttr target);

  PackingAttr packing;
  TargetAttr target;
  /// Rows and columns of the product, groups of values of k in the right-hand
  /// side, and its panels.
  std::optional<int64_t> m, n, k, panels;
  /// Rows that there are at least, and at most (0: as many as one likes).
  int64_t minRows = 0, maxRows = 0;
  /// Values of k in the left-hand side.
  std::optional<int64_t> depth;
  /// Values of k of a quantised right-hand side that share scales, and whether
  /// zero points are whole numbers.
  int64_t block = 0;
  bool hasWholeZeros = false;
  /// What kernels may round the left-hand side to; null: to nothing.
  mlir::Type rounded;
  /// See cpu.packed_matmul.
  std::optional<int64_t> strassen;
  /// Whether the right-hand side comes from memory in each run: what another
  /// kernel has just made is in the cache.
  bool comesFromMemory = false;

  bool isOfBytes() const { return packing.isOfBytes(); }
  /// Whether the right-hand side has scales.
  bool hasScales() const {
    return packing.isQuantized() || packing.isCompressed();
  }
  /// Whether panels can become f32 before they are multiplied.
  bool mayUnpack() const {
    return packing.isQuantized() || packing.getElement() == PackedElement::F16;
  }
  /// The fastest micro-kernel on `unit`; null if there is none.
  const MicroKernel *select(MicroKernel::Unit unit) const;
  /// The fastest on vectors that rounds nothing.
  const MicroKernel *selectExact() const;
  /// Whether a micro-kernel that takes such elements takes these operands.
  bool suits(const MicroKernel &micro) const;
  /// How often the values of k, whose number is known, fill tile registers.
  int64_t countTileSteps() const;
  /// Whether they do, as far as is known.
  bool mayFillTiles() const { return !depth || countTileSteps() > 0; }
  /// What is known where a case of a plan is taken, that for `maxRows` after
  /// that for `before`.
  MatmulFacts getFactsOfCase(int64_t maxRows, int64_t before) const;
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

/// The loops of a product for a number of rows: a #cpu.matmul_case and what
/// follows from it.
struct MatmulPlan {
  /// Rows that the loops are planned for.
  int64_t rows = 0;
  TileShape shape = {};
  /// Panels that a tile spans: several where the rows are too few to keep the
  /// multipliers busy, and where there are registers for more.
  int64_t panelsPerTile = 1;
  /// Tiles one below the other in a chunk, at most.
  int64_t chunkTiles = 1;
  MatmulOrder order = MatmulOrder::PanelsOuter;
  MatmulPrefetch prefetch = MatmulPrefetch::None;
  /// What multiplies, on vectors or on tile registers.
  const MicroKernel *micro = nullptr;
  /// With split tiles, so many rows, values of k and panels at a time.
  int64_t partRows = 0, partDepth = 0, partPanels = 0;
  /// Whether seven products are made in the place of eight, by this plan.
  bool usesStrassen = false;
  StrassenPlan strassen = {};

  /// Whether tile registers take what fills them.
  bool usesTiles() const {
    return micro->getUnit() == MicroKernel::Unit::Tiles;
  }
  /// Whether the panels of a chunk, of f16 or of integers of few bits, become
  /// f32 in scratch memory first.
  bool unpacksPanels(const MatmulFacts &facts) const {
    return facts.mayUnpack() && micro == findMicroKernel("fma");
  }
  /// Whether they take f32, as sums of bf16 or rounded.
  bool usesBf16x3() const {
    return micro->getUnit() == MicroKernel::Unit::SplitTiles;
  }

  /// What a case says, with nothing of what follows from it.
  static MatmulPlan read(MatmulCaseAttr from);
  /// That of a case, which fits.
  static MatmulPlan get(const MatmulFacts &facts, MatmulCaseAttr from);
  /// The case for at most `maxRows`.
  MatmulCaseAttr getCase(mlir::MLIRContext *context, int64_t maxRows = 0) const;

  /// Rows that a product whose number of them is open is planned for.
  static constexpr int64_t kLikelyRows = 128;
  /// Up to so many rows use a weight as fast as memory can give it.
  static constexpr int64_t kFewRows = 32;
  /// Rows of a tile of which the last ones do best in others
  /// (MatmulEmitter::emitRestOfRows), and those of the lowest that keeps the
  /// multipliers busy.
  static constexpr int64_t kUnevenRows = 6, kLowRows = 4;
};

/// The plan for a number of rows that is `rows`, or about that. A direct one is
/// neither by bf16x3 nor by Strassen's algorithm.
MatmulPlan planMatmul(const MatmulFacts &facts, int64_t rows,
                      bool isDirect = false);

/// The fastest loops that are known to fit.
MatmulPlanAttr selectPlan(const MatmulFacts &facts);

/// A case says all.
inline MatmulPlanAttr completePlan(const MatmulFacts &, MatmulPlanAttr plan) {
  return plan;
}

/// Why a product cannot be computed by a plan, as the end of a sentence; empty
/// if it can.
std::string whyNot(const MatmulFacts &facts, MatmulPlanAttr plan);

/// How the values of k of a product that `plan` computes by Strassen's
/// algorithm, and its panels, are cut.
StrassenPlan planStrassen(const MatmulFacts &facts, const MatmulPlan &plan);

/// Whether tiles of `plan` can fetch the next panel: one of known size, without
/// scales, that comes from memory.
bool canPrefetch(const MatmulFacts &facts, const MatmulPlan &plan);

/// Whether a run may find that it must be computed directly.
bool needsDirectCase(const MatmulFacts &facts, const MatmulPlan &plan);

/// Fewer rows than these go directly rather than by Strassen's algorithm: a
/// tile that is not full, and sums of columns, would be too much of their time.
int64_t getMinStrassenRows(const TileShape &shape);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_MATMULPLAN_H
