//===- Warpgroup.h - What warpgroups meet at --------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From compute capability 9.0 on the hardware copies boxes of a tensor to
// shared memory (TMA), and four warps together multiply what lies there
// (wgmma). A block has warpgroups that multiply, the first ones, and one that
// starts copies. They meet at barriers in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_WARPGROUP_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_WARPGROUP_H

#include "dialects/NV/NV.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <functional>
#include <optional>

namespace sardonyx::nv {

inline constexpr int64_t kWarpgroupThreads = MatmulPlanAttr::kWarpgroup;
/// Rows that a warpgroup multiplies, and bytes along K that an instruction
/// does.
inline constexpr int64_t kGroupRows = 64, kGroupStepBytes = 32;
inline constexpr int64_t kBarrierBytes = 8;
/// Bytes of a row of a tile in shared memory, which are swizzled.
inline constexpr int64_t kMapRowBytes = 128;

/// An operand whose tiles are copied by TMA.
struct MappedSource {
  /// Coordinates in the tensor, the innermost first, and of an image the
  /// offsets of what is copied from its pixels.
  struct Place {
    llvm::SmallVector<mlir::Value> coordinates, offsets;
  };

  /// An nv.tensor_map of the host.
  mlir::Value map;
  /// Where the box is that begins at (row, col) of the matrix.
  std::function<Place(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                      mlir::Value col)>
      find;

  /// A matrix of so many rows and columns, or one for each pair, of which
  /// `findPair` gives the number. With `rounds` f32 is rounded to tf32.
  static MappedSource matrix(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                             llvm::ArrayRef<mlir::Value> sizes,
                             llvm::ArrayRef<int64_t> box, bool rounds,
                             std::function<mlir::Value()> findPair = {});
};

/// Numbers of 32 bits.
mlir::Value word(mlir::ImplicitLocOpBuilder &b, int64_t value);
mlir::Value asWord(mlir::ImplicitLocOpBuilder &b, mlir::Value index);

/// Which of a number of stages is next, and the phase of its barriers.
struct Ring {
  mlir::Value stage, phase;
  Ring next(mlir::ImplicitLocOpBuilder &b, int64_t stages) const;
};

/// Waits for the end of a phase of a barrier.
void waitFor(mlir::ImplicitLocOpBuilder &b, mlir::Value barrier,
             mlir::Value phase);

/// Arrives at a barrier where `condition` holds, in the code of which `barrier`
/// gives it.
void arriveWhere(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
                 llvm::function_ref<mlir::Value()> barrier);

/// The same at the barriers of all blocks of a cluster of so many that lie
/// where this one does.
void arriveAtAllWhere(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
                      int64_t blocks,
                      llvm::function_ref<mlir::Value()> barrier);

/// Whether `thread` is of the first `groups` warpgroups.
mlir::Value isOfFirstGroups(mlir::ImplicitLocOpBuilder &b, mlir::Value thread,
                            int64_t groups);

/// Whether a thread is the first one of its warpgroup.
mlir::Value isFirstOfGroup(mlir::ImplicitLocOpBuilder &b, mlir::Value thread);

/// Has the box at (row, col) of a matrix copied to the address `to`; `barrier`
/// counts its bytes. With `blocks` > 1 so many blocks of the cluster have a
/// copy, whose bytes a barrier of theirs counts, where these lie here.
void copyBox(mlir::ImplicitLocOpBuilder &b, const MappedSource &source,
             mlir::Value row, mlir::Value col, mlir::Value to,
             mlir::Value barrier, int64_t blocks = 1);

/// The descriptor of a tile of swizzled rows in shared memory, `byte` from the
/// beginning of `bytes`. Along K rows follow each other; across it (`boxRows`)
/// so do boxes of that many rows.
mlir::Value describeTile(mlir::ImplicitLocOpBuilder &b, mlir::Value bytes,
                         mlir::Value byte, std::optional<int64_t> boxRows);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_WARPGROUP_H
