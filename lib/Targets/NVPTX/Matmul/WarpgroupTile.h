//===- WarpgroupTile.h - How warpgroups multiply tiles ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From compute capability 9.0 on the hardware copies tiles of a tensor to
// shared memory by itself (TMA), and four warps together multiply what lies
// there (wgmma). A block has a warpgroup that starts copies, and one or two
// that multiply. They meet at barriers in shared memory: of each stage one that
// its tiles are there, and one that they are no longer needed. What follows the
// product is computed of sums in registers, while the first one is already
// having tiles copied for the block's next one.
//
// Two blocks of a cluster share a tile of one side. Each has half of it copied
// to the shared memory of both, when it is no longer needed in either.
//
// Numbers of f32 that are taken as sums of two bf16 are split where they lie: a
// row of 32 of them becomes one of their high parts and their low parts.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPTILE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPTILE_H

#include "Kernel/Warpgroup.h"
#include "Matmul/BlockTile.h"

namespace sardonyx::nv {

/// Bytes of shared memory that results of a warpgroup wait for their copy in:
/// two boxes of its rows.
inline constexpr int64_t kGroupResultBytes = 2 * kGroupRows * kMapRowBytes;

/// The tiles of a block in shared memory, and their products.
class WarpgroupTile {
public:
  WarpgroupTile(const ProductTypes &types, MatmulPlanAttr plan);

  /// Rows of the boxes that the operands are copied by: of a tile that blocks
  /// of a cluster share each copies a part. A box has as many columns as 128
  /// bytes hold.
  int64_t lhsBoxRows() const { return plan.getTileM() / plan.getClusterN(); }
  int64_t rhsBoxRows() const {
    return types.transposed ? plan.getTileN() / plan.getClusterM()
                            : plan.getTileK();
  }
  int64_t boxCols() const { return kMapRowBytes / types.lhsBytes(); }
  /// Bytes of shared memory of a block.
  int64_t countSharedBytes() const;

  /// Makes the barriers in `shared`, that many bytes. All threads call it.
  /// `rank` is the block's number in its cluster.
  void begin(mlir::ImplicitLocOpBuilder &b, mlir::Value shared,
             mlir::Value thread, mlir::Value rank);
  /// All threads call it at the end: none leaves a cluster while others may
  /// still use the block's shared memory.
  void end(mlir::ImplicitLocOpBuilder &b);
  /// Whether the calling thread is of the warpgroups that multiply, or the one
  /// that starts copies.
  mlir::Value isWorker(mlir::ImplicitLocOpBuilder &b);
  mlir::Value isCopier(mlir::ImplicitLocOpBuilder &b);

  Ring beginCopies(mlir::ImplicitLocOpBuilder &b);
  /// Copies the tiles of steps `from` to `from` + `count` of the tile at (row,
  /// col), as stages become free. Returns where the ring is then.
  Ring copy(mlir::ImplicitLocOpBuilder &b, const MappedSource &lhs,
            const MappedSource &rhs, mlir::Value row, mlir::Value col,
            mlir::Value from, mlir::Value count, Ring ring);
  Ring beginProducts(mlir::ImplicitLocOpBuilder &b);
  /// Multiplies so many, and frees their stages. Of the `sums` a thread has
  /// those that wgmma leaves it.
  Ring multiply(mlir::ImplicitLocOpBuilder &b, mlir::Value count, Ring ring,
                llvm::SmallVector<mlir::Value> &sums);
  /// All of the shared memory as bytes, and where in there results wait for
  /// their copy.
  mlir::Value allBytes() const { return bytes; }
  int64_t resultsFrom() const { return plan.getStages() * stageBytes(); }

private:
  int64_t lhsBytes() const { return plan.getTileM() * kMapRowBytes; }
  int64_t rhsBytes() const { return plan.getTileN() * kMapRowBytes; }
  int64_t stageBytes() const { return lhsBytes() + rhsBytes(); }
  /// Where the barriers begin.
  int64_t barrierBytes() const;
  /// The barriers that the tiles of a stage are there, or free.
  mlir::Value fullAt(mlir::ImplicitLocOpBuilder &b, mlir::Value stage);
  mlir::Value freeAt(mlir::ImplicitLocOpBuilder &b, mlir::Value stage);
  mlir::Value byteAt(mlir::ImplicitLocOpBuilder &b, mlir::Value byte);
  /// Says that a stage is free, where `condition` holds.
  void release(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
               mlir::Value stage);
  void copyRhs(mlir::ImplicitLocOpBuilder &b, const MappedSource &rhs,
               mlir::Value col, mlir::Value k, mlir::Value at,
               mlir::Value full);
  void copyStage(mlir::ImplicitLocOpBuilder &b, const MappedSource &lhs,
                 const MappedSource &rhs, mlir::Value row, mlir::Value col,
                 mlir::Value k, Ring ring);
  llvm::SmallVector<mlir::Value> multiplyStage(mlir::ImplicitLocOpBuilder &b,
                                               mlir::Value lhs, mlir::Value rhs,
                                               mlir::ValueRange sums);
  /// Where in a row the operands of an instruction begin.
  struct Step {
    int64_t lhsByte, rhsByte;
  };
  llvm::SmallVector<Step> listSteps() const;
  void splitStage(mlir::ImplicitLocOpBuilder &b, mlir::Value stage);
  void splitChunks(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                   mlir::Value pair);

  ProductTypes types;
  MatmulPlanAttr plan;
  mlir::Value bytes, thread, rank;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_WARPGROUPTILE_H
