//===- ProductKernel.h - Kernels around a product of matrices ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes a tile of the result. While it multiplies one pair of tiles
// of the operands, copies of the next ones are on their way to shared memory.
// The sums go through shared memory once more, so that what follows the product
// reads and writes rows. A block of warpgroups, which keeps its sums, computes
// several tiles where there are more of them than blocks run at a time.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PRODUCTKERNEL_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PRODUCTKERNEL_H

#include "Kernel/Block.h"
#include "Kernel/PointEvaluator.h"
#include "Matmul/WarpgroupStore.h"
#include "Matmul/WarpgroupTile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace sardonyx::nv {

/// The kernel of an operation that is, for each of a number of pairs of
/// matrices, their product [M,K] x [K,N]: where their elements are, and those
/// of the result, is the derived class's to say.
class ProductKernel {
public:
  ProductKernel(sdx::DenseOpInterface op, ProductTypes types,
                MatmulPlanAttr plan, KernelBody &body);
  virtual ~ProductKernel() = default;

  /// Whether all that the kernel computes can be computed so; the caller has
  /// another way.
  bool isPossible();
  /// Puts the loop over the blocks at the builder's place.
  void emit(mlir::ImplicitLocOpBuilder &b);

  /// The same for another kernel behind that loop: what the blocks that share
  /// a tile have of its sums stays in memory, until `freeSums`.
  bool canLeaveSums() { return hasOperands() && points.canEvaluate(init()); }
  void emitSumsOfParts(mlir::ImplicitLocOpBuilder &b);
  /// In the code behind it: the product at a position, [M,N].
  mlir::Value emitSum(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange index);
  void freeSums(mlir::ImplicitLocOpBuilder &b);

  /// Puts the loop over the blocks at the builder's place, where those of a
  /// cluster have whole rows. In their code `emitRows` says what is computed of
  /// rows `first`, `first` + `step` and so on, `count` of them or fewer, those
  /// below `end`, by this `thread`. The product at a position of such a row,
  /// [M,N], is what `loadSum` says there.
  using EmitRows =
      llvm::function_ref<void(mlir::Value thread, mlir::Value first,
                              int64_t step, int64_t count, mlir::Value end)>;
  void emitClusters(mlir::ImplicitLocOpBuilder &b, EmitRows emitRows);
  mlir::Value loadSum(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange index);

protected:
  /// The sizes of all matrices, and how many pairs there are.
  struct Sizes {
    mlir::Value pairs, m, n, k;
  };
  virtual bool hasOperands() = 0;
  virtual Sizes findSizes(mlir::ImplicitLocOpBuilder &b) = 0;
  /// The operands of pair `pair`, for the code of a block.
  virtual TileSource findLhs(mlir::ImplicitLocOpBuilder &b,
                             mlir::Value pair) = 0;
  virtual TileSource findRhs(mlir::ImplicitLocOpBuilder &b,
                             mlir::Value pair) = 0;
  /// The same for warpgroups, on the host: the map of an operand, whose boxes
  /// are of so many elements, and where the box at (row, col) of the block's
  /// pair is.
  virtual MappedSource mapLhs(mlir::ImplicitLocOpBuilder &b, int64_t boxRows,
                              int64_t boxCols) {
    return {};
  }
  virtual MappedSource mapRhs(mlir::ImplicitLocOpBuilder &b, int64_t boxRows,
                              int64_t boxCols) {
    return {};
  }
  /// What the sum of column `n` is multiplied by.
  virtual mlir::Value scaleSum(mlir::ImplicitLocOpBuilder &b, mlir::Value sum,
                               mlir::Value n) {
    return sum;
  }
  /// The indices of sum (m, n) of a pair in the operation's result.
  virtual llvm::SmallVector<mlir::Value>
  findResult(mlir::ImplicitLocOpBuilder &b, mlir::Value pair, mlir::Value m,
             mlir::Value n) = 0;
  /// Where tiles of the right-hand side are computed rather than copied, a
  /// thread reads what it needs for the tile that begins at (row, col) before
  /// it multiplies others, and writes its part of the tile afterwards.
  virtual bool computesRhs() const { return false; }
  virtual llvm::SmallVector<mlir::Value>
  readRhs(mlir::ImplicitLocOpBuilder &b, mlir::Value row, mlir::Value col) {
    return {};
  }
  virtual void writeRhs(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange read,
                        mlir::Value col, mlir::Value shared,
                        mlir::Value offset) {}
  mlir::Value init() const { return op->getOperand(op->getNumOperands() - 1); }

  sdx::DenseOpInterface op;
  ProductTypes types;
  MatmulPlanAttr plan;
  KernelBody &body;
  /// Whether the kernel is wanted, for the host; null: always.
  mlir::Value isWanted;
  // Of the code of a block: the pair whose product it computes.
  mlir::Value thread, pair;
  std::unique_ptr<BlockTile> tile;

private:
  using EmitPiece = llvm::function_ref<void(mlir::Value r, mlir::Value c,
                                            mlir::Value m, mlir::Value n)>;

  void emitBlocks(mlir::ImplicitLocOpBuilder &b, bool hasPartials);
  mlir::Value allocatePartials(mlir::ImplicitLocOpBuilder &b);
  mlir::Value addParts(mlir::ImplicitLocOpBuilder &b, mlir::Value m,
                       mlir::Value n);
  mlir::Value finishSum(mlir::ImplicitLocOpBuilder &b, mlir::Value sum,
                        mlir::Value n, mlir::ValueRange index,
                        PointEvaluator::Point &point);
  mlir::Value addSums(mlir::ImplicitLocOpBuilder &b, mlir::Value x,
                      mlir::Value y);
  int64_t sumCols() const;
  /// Neighbours that a thread has at a time.
  int64_t width() const;
  /// What a block computes, or the blocks of a cluster that share tiles: a tile
  /// each, or where blocks share its products a part of them.
  struct Item {
    mlir::Value part, from, to; // of the steps along K
  };
  int64_t rowsOfItem() const;
  int64_t colsOfItem() const;
  Item findItem(mlir::ImplicitLocOpBuilder &b, mlir::Value number);
  void emitBlock(mlir::ImplicitLocOpBuilder &b, mlir::Value number);
  /// The stages of the operands' tiles in shared memory.
  struct Stages {
    mlir::Value lhs, rhs;
    int64_t lhsCount, rhsCount; // elements of a stage
  };
  mlir::Value allocateStages(mlir::ImplicitLocOpBuilder &b, Stages &stages);
  void copyLhs(mlir::ImplicitLocOpBuilder &b, const Stages &stages,
               mlir::Value step, mlir::Value stage);
  llvm::SmallVector<mlir::Value> startRhs(mlir::ImplicitLocOpBuilder &b,
                                          const Stages &stages,
                                          mlir::Value step, mlir::Value stage);
  void finishRhs(mlir::ImplicitLocOpBuilder &b, const Stages &stages,
                 mlir::ValueRange read, mlir::Value step, mlir::Value stage);
  mlir::ValueRange emitSteps(mlir::ImplicitLocOpBuilder &b,
                             const Stages &stages, mlir::Value from,
                             mlir::Value to);
  void emitProduct(mlir::ImplicitLocOpBuilder &b, mlir::Value from,
                   mlir::Value to);
  void findTile(mlir::ImplicitLocOpBuilder &b, mlir::Value number);
  bool hasPairs() const { return !isConstantIntValue(sizes.pairs, 1); }
  int64_t countBlocksOfMultiprocessor() const;
  bool canStoreBoxes() const;
  mlir::Value prepareWarpgroups(mlir::ImplicitLocOpBuilder &b);
  void emitWarpgroups(mlir::ImplicitLocOpBuilder &b,
                      mlir::scf::ParallelOp loop);
  using EmitItem = llvm::function_ref<Ring(const Item &, Ring)>;
  void forEachItem(mlir::ImplicitLocOpBuilder &b, mlir::scf::ParallelOp loop,
                   Ring begin, EmitItem emitItem);
  void emitBoxes(mlir::ImplicitLocOpBuilder &b, WarpgroupStore &store,
                 llvm::ArrayRef<mlir::Value> sums, mlir::Value part);
  void emitPairs(mlir::ImplicitLocOpBuilder &b,
                 llvm::ArrayRef<mlir::Value> sums, mlir::Value part);
  void forEachPiece(mlir::ImplicitLocOpBuilder &b, EmitPiece emitPiece);
  void emitResults(mlir::ImplicitLocOpBuilder &b);
  llvm::SmallVector<mlir::Value> loadSums(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value r, mlir::Value c);
  void storePartials(mlir::ImplicitLocOpBuilder &b, mlir::Value part);
  void storePartial(mlir::ImplicitLocOpBuilder &b, mlir::Value part,
                    mlir::Value m, mlir::Value n,
                    llvm::ArrayRef<mlir::Value> sums);
  void emitSums(mlir::ImplicitLocOpBuilder &b);
  struct Points {
    llvm::SmallVector<llvm::SmallVector<mlir::Value>> indices;
    llvm::SmallVector<PointEvaluator::Point> known;
  };
  Points findPoints(mlir::ImplicitLocOpBuilder &b, mlir::Value m, mlir::Value n,
                    llvm::ArrayRef<mlir::Value> sums);
  void emitPoints(mlir::ImplicitLocOpBuilder &b, mlir::Value m, mlir::Value n,
                  llvm::ArrayRef<mlir::Value> sums);

  PointEvaluator points;
  Sizes sizes;
  mlir::Value row0, col0; // of the block's tile
  mlir::Value rank;       // of the block in its cluster; null: it has none
  mlir::Value sumTile;
  MappedSource lhsMap, rhsMap;
  mlir::Value resultMap;         // where the hardware stores
  mlir::Value items, mostItems;  // in all; that run at a time, null: all
  mlir::Value rows, cols, steps; // of items there are so many, and of K
  /// Sums of the blocks that share tiles, [split, pairs, M, N]; null where each
  /// has its own.
  mlir::Value partials;
};

/// The only `OpT` of a kernel on tensors, or null.
template <typename OpT> OpT findProduct(mlir::func::FuncOp func) {
  if (!mayHaveBlocks(func) || !llvm::hasSingleElement(func.getOps<OpT>()))
    return OpT();
  OpT op = *func.getOps<OpT>().begin();
  return op.hasPureTensorSemantics() ? op : OpT();
}

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PRODUCTKERNEL_H
