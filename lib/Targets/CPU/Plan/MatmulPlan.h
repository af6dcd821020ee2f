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

namespace sardonyx::cpu {

/// What is known of a packed product when it is compiled. Sizes are nothing
/// where they are not.
struct MatmulFacts {
  PackingAttr packing;
  TargetAttr target;
  /// Rows and columns of the product, groups of values of k in the right-hand
  /// side, and its panels.
  std::optional<int64_t> m, n, k, panels;
  /// Values of k in the left-hand side.
  std::optional<int64_t> depth;
  /// See cpu.packed_matmul.
  std::optional<int64_t> strassen;
  /// Whether the right-hand side comes from memory in each run: what another
  /// kernel has just made is in the cache.
  bool comesFromMemory = false;

  bool isOfBytes() const { return packing.getElement() == PackedElement::I8; }
  bool isOfBf16() const { return packing.getElement() == PackedElement::BF16; }
  bool isOfF32() const { return packing.getElement() == PackedElement::F32; }
  /// Whether the right-hand side has scales.
  bool hasScales() const {
    return packing.isQuantized() || packing.isCompressed();
  }
  /// Whether an instruction multiplies and adds up a group of values of k.
  bool multipliesAtOnce() const;
  /// How often the values of k, whose number is known, fill tile registers.
  int64_t countTileSteps() const;
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

/// The loops of a product for a number of rows.
struct MatmulPlan {
  /// Rows that the loops are planned for.
  int64_t rows = 0;
  TileShape shape = {};
  /// Panels that a tile spans: several where the rows are too few to keep the
  /// multipliers busy, and where there are registers for more.
  int64_t panelsPerTile = 1;
  /// Whether a single row reads one panel after the other, as the stream that
  /// a processor of narrow vectors fetches best by itself.
  bool readsOneStream = false;
  /// Tiles one below the other in a chunk, at most.
  int64_t chunkTiles = 1;
  /// Whether the rows of a chunk meet all panels before other rows do.
  bool rowsFirst = false;
  /// Whether tile registers take what fills them.
  bool usesTiles = false;
  /// Whether they take f32, as sums of three bf16; so many rows, values of k
  /// and panels at a time.
  bool usesBf16x3 = false;
  int64_t partRows = 0, partDepth = 0, partPanels = 0;
  /// Whether seven products are made in the place of eight, by this plan.
  bool usesStrassen = false;
  StrassenPlan strassen = {};

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

/// Fewer rows than these go directly rather than by Strassen's algorithm: a
/// tile that is not full, and sums of columns, would be too much of their time.
int64_t getMinStrassenRows(const TileShape &shape);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_PLAN_MATMULPLAN_H
