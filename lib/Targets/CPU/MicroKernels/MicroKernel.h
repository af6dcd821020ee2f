//===- MicroKernel.h - The table of micro-kernels ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A micro-kernel multiplies some rows of a left-hand side by panels of a packed
// right-hand side, onto a tile of accumulators in registers. Which one does is
// a matter of how the right-hand side is packed and of the machine's
// instructions, and no matter of the loops around the tile. A new one is a file
// with a subclass, and a line in MicroKernels.def.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H
#define SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H

#include "MicroKernels/ContractionLoop.h"

namespace sardonyx::cpu {

/// The operands of a register tile: `rows` rows of a left-hand side, and
/// `width` columns, from `column` on, of each of `panels` panels.
struct PackedTile {
  TargetAttr target;
  PackingAttr packing;
  /// The packed right-hand side and, unless null, the scales of its blocks of
  /// `block` values of k, with offsets or without (see cpu.packed_matmul).
  mlir::Value rhs, scales;
  int64_t block = 0;
  /// The right-hand side's batch; null without one.
  mlir::Value batch;
  int64_t rows = 0, width = 0;
  /// The first panel, of several.
  mlir::Value panel;
  int64_t panels = 1;
  mlir::Value column;
  /// Groups of values of k (PackingAttr::getDepthGroup), and values of k; where
  /// their number is open and groups have several, `size` is it.
  mlir::Value groups;
  std::optional<int64_t> depth;
  mlir::Value size;
  /// The group that the tile begins with; null: the first.
  mlir::Value firstGroup;
  /// `count` values of k of a row, from the first of `group` on: a scalar of
  /// the left-hand side, or the values of a group in an i32, zeros past them.
  /// `kThoseThere`: those before `size`.
  static constexpr int64_t kThoseThere = 0;
  llvm::function_ref<mlir::Value(mlir::Value group, int64_t row, int64_t count)>
      lhs;
  /// Of a micro-kernel that rounds rows `lhs` gives groups of bytes, and this a
  /// number (f32) of a row and a block of values of k: 0, the scale of its
  /// integers, and 1, minus the sum of what they stand for.
  llvm::function_ref<mlir::Value(mlir::Value block, int64_t row, int64_t which)>
      lhsScale;
  /// What the loop over k fetches beside.
  llvm::ArrayRef<Prefetch> prefetches = {};
};

/// What tile registers multiply in the place of f32.
struct SplitForm {
  /// How many bf16 make a number of a row, and of a column; one is rounded.
  int64_t rowParts = 3, columnParts = 3;
  /// Whether those of columns are integers less their zero points, exactly, and
  /// scales multiply sums of blocks.
  bool scalesSums = false;
};

/// A row of the table.
class MicroKernel {
public:
  /// What holds the operands of its instructions.
  enum class Unit {
    /// Vector registers.
    Vectors,
    /// Tile registers, which take the rows and the values of k that fill them;
    /// the rest goes by the fastest micro-kernel on vectors.
    Tiles,
    /// The same, of f32 that are split into bf16 (Bf16x3Product.h).
    SplitTiles,
  };

  virtual ~MicroKernel() = default;
  MicroKernel(const MicroKernel &) = delete;
  MicroKernel &operator=(const MicroKernel &) = delete;

  /// `others` and all elements of quantised right-hand sides
  /// (PackingAttr::isQuantized).
  static llvm::SmallVector<PackedElement>
  withQuantized(llvm::ArrayRef<PackedElement> others = {});

  /// As plans spell it.
  llvm::StringRef getName() const { return name; }
  Unit getUnit() const { return unit; }
  /// That of split tiles.
  const SplitForm &getForm() const { return form; }
  /// Whether it takes right-hand sides of such elements.
  bool takes(PackedElement element) const {
    return llvm::is_contained(elements, element);
  }
  /// Whether a machine has its instructions.
  virtual bool isSupported(TargetAttr target) const = 0;
  /// Whether an instruction or two multiply a register by another and add them
  /// up.
  virtual bool isShort() const { return true; }
  /// Whether it takes rows of f32 as signed bytes with scales for blocks.
  virtual bool roundsRows() const { return false; }

  /// accumulator + lhs * rhs on vectors; lanes of `lhs` and `rhs` hold a group
  /// of values of k.
  virtual mlir::Value emitStep(mlir::ImplicitLocOpBuilder &b, TargetAttr target,
                               mlir::Value lhs, mlir::Value rhs,
                               mlir::Value accumulator) const;
  /// The tile's products added onto `accs`, [row, panel].
  virtual llvm::SmallVector<mlir::Value>
  emit(mlir::ImplicitLocOpBuilder &b, const PackedTile &tile,
       llvm::SmallVector<mlir::Value> accs) const;

protected:
  MicroKernel(llvm::StringRef name, llvm::ArrayRef<PackedElement> elements,
              Unit unit = Unit::Vectors, SplitForm form = {})
      : name(name), elements(elements), unit(unit), form(form) {}

  /// A group of values of k of `panel` in the tile's columns, as a vector.
  virtual mlir::Value emitRhs(mlir::ImplicitLocOpBuilder &b,
                              const PackedTile &tile, mlir::Value panel,
                              mlir::Value group) const;

private:
  const llvm::StringRef name;
  const llvm::SmallVector<PackedElement, 3> elements;
  const Unit unit;
  const SplitForm form;
};

/// All of them; of those that take the same elements the fastest first.
llvm::ArrayRef<const MicroKernel *> getMicroKernels();

/// The one of that name; null if there is none.
const MicroKernel *findMicroKernel(llvm::StringRef name);

/// The fastest on `unit` that takes such elements on a machine; null if there
/// is none. On vectors there is one for all elements and machines.
const MicroKernel *selectMicroKernel(PackedElement element, TargetAttr target,
                                     MicroKernel::Unit unit);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_MICROKERNEL_H
