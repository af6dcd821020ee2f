//===- Epilogue.h - Elementwise operations on register tiles ----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel around one contraction: reading its tensors where they lie in
// memory, and applying what follows the contraction to accumulators that are
// still in registers.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_EPILOGUE_H
#define SARDONYX_LIB_TARGETS_CPU_EPILOGUE_H

#include "Common/KernelBody.h"
#include "MicroKernels/ContractionLoop.h"
#include "MicroKernels/VectorOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

namespace sardonyx::cpu {

/// A tile of the result's index space: some rows (consecutive indices of the
/// flattened dimensions of rows), each of `width` consecutive positions in the
/// flattened trailing dimensions.
struct Tile {
  /// Indices of the leading dimensions, and the first row's.
  llvm::SmallVector<mlir::Value> index;
  /// The first position in the flattened trailing dimensions.
  mlir::Value position;
  int64_t width;
  /// Lanes that exist; null if all do.
  mlir::Value mask;
  /// Rows from this index on do not exist; null if all of the tile's do.
  mlir::Value rowLimit;
};

/// Evaluates the tensors of a kernel on tiles of the root's result.
class TileEvaluator {
public:
  /// `root` is the contraction's result. Its dimensions from `vectorDim` on
  /// are flattened; those from `rowDim` to there count the rows of a tile, and
  /// are flattened, too.
  TileEvaluator(KernelBody &body, mlir::Value root, int64_t rowDim,
                int64_t vectorDim)
      : body(body), root(root), rowDim(rowDim), vectorDim(vectorDim),
        target(getTargetOrDefault(root.getDefiningOp())) {}

  /// Checks that all that the kernel computes can be evaluated on tiles, and
  /// says what not. `init` is null where nothing reads it.
  mlir::LogicalResult verify(mlir::Value init = nullptr);

  /// Whether `init` is the same in all rows.
  bool hasEqualRows(mlir::Value init) const;

  /// Builds, at the insertion point, what all tiles share: views and sizes.
  void prepare(mlir::ImplicitLocOpBuilder &b, mlir::Value init = nullptr);

  /// The size of a dimension of the result.
  mlir::Value getSize(int64_t dim) const { return sizes[dim]; }

  /// The first `rows` rows of `init` on a tile, as starting accumulators.
  /// Rows past the limit get the value of the last one.
  llvm::SmallVector<mlir::Value> emitInit(mlir::ImplicitLocOpBuilder &b,
                                          mlir::Value init, const Tile &tile,
                                          int64_t rows);

  /// Applies what follows the root to its accumulators on a tile and stores
  /// all that the kernel puts out.
  void emitStores(mlir::ImplicitLocOpBuilder &b, const Tile &tile,
                  llvm::ArrayRef<mlir::Value> accumulators);

  /// Asks for the memory that `emitStores` will write, where results of more
  /// than `cacheBytes` have pushed it out of the cache: a store to a line that
  /// is far away waits for it, and only so many can.
  void prefetchOutputs(mlir::ImplicitLocOpBuilder &b, const Tile &tile,
                       int64_t rows, int64_t cacheBytes);

  /// The same of a share of the first `rows` rows of tiles side by side: number
  /// `number` of `shares`.
  void prefetchShare(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<Tile> tiles,
                     int64_t rows, mlir::Value number, int64_t shares,
                     int64_t cacheBytes);

  /// The same of the tile whose rows come next, as a part of this tile's loop
  /// over `depth` values of k.
  llvm::SmallVector<Prefetch>
  prefetchNextOutputs(mlir::ImplicitLocOpBuilder &b, const Tile &tile,
                      int64_t rows, int64_t cacheBytes, int64_t depth);

private:
  struct RowState;
  struct SaturatedBytes;

  /// Memory of all of the results' elements that a cache of so many bytes does
  /// not hold.
  struct FarBuffer {
    mlir::Value collapsed;
    bool isWritten;
    int64_t elementBytes;
  };
  llvm::SmallVector<FarBuffer> findFarBuffers(int64_t cacheBytes);

  bool hasEqualRows(mlir::Value tensor, mlir::AffineMap map) const;
  mlir::LogicalResult verifyValue(mlir::Value tensor, mlir::AffineMap map);
  void prepareValue(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                    mlir::AffineMap map);
  mlir::AffineMap identity() const;
  bool isContiguous(mlir::AffineMap map) const;
  bool hasRowsTogether(mlir::AffineMap map) const;
  mlir::Value emitView(mlir::ImplicitLocOpBuilder &b, mlir::Value buffer,
                       mlir::AffineMap map);
  void splitRow(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                llvm::MutableArrayRef<mlir::Value> dims);
  bool usesDims(mlir::AffineMap map, int64_t from, int64_t to) const;

  mlir::Value evaluate(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                       mlir::AffineMap map, const Tile &tile, RowState &row);
  llvm::SmallVector<mlir::Value>
  evaluateOperands(mlir::ImplicitLocOpBuilder &b,
                   mlir::linalg::GenericOp generic, mlir::AffineMap map,
                   const Tile &tile, RowState &row);
  std::pair<mlir::Value, mlir::Value>
  evaluateInteger(mlir::ImplicitLocOpBuilder &b, const SaturatedBytes &bytes,
                  const Tile &tile, RowState &row);
  void emitSaturatedStores(mlir::ImplicitLocOpBuilder &b,
                           const SaturatedBytes &bytes, mlir::Value memref,
                           const Tile &tile,
                           llvm::MutableArrayRef<RowState> rows);
  void emitRowStore(mlir::ImplicitLocOpBuilder &b, mlir::Value value,
                    mlir::Value memref, const Tile &tile, const RowState &row);
  /// Numbers of an observed value that the runtime has not seen yet: memory of
  /// one row, and of how many there are; `first` is the place of a tile's
  /// first.
  struct ObservedBuffer {
    mlir::Value numbers, count, first;
    /// Has the task's last ones be seen.
    llvm::SmallVector<mlir::Operation *> atEnd;
  };
  llvm::SmallVector<ObservedBuffer>
  prepareObserved(mlir::ImplicitLocOpBuilder &b, int64_t numbers);
  void emitObservation(mlir::ImplicitLocOpBuilder &b, sdx::ObserveOp op,
                       const ObservedBuffer &buffer);
  mlir::Value countLanes(mlir::ImplicitLocOpBuilder &b, const Tile &tile);
  mlir::Value emitAccess(mlir::ImplicitLocOpBuilder &b, mlir::Value tensor,
                         mlir::AffineMap map, const Tile &tile, RowState &row);
  mlir::Value emitLanewise(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                           mlir::AffineMap map, const Tile &tile,
                           mlir::ValueRange index);

  KernelBody &body;
  mlir::Value root;
  int64_t rowDim;
  int64_t vectorDim;
  TargetAttr target;
  llvm::SmallVector<mlir::Value> sizes;
  /// By the task, the number of the observation and the buffer's size.
  llvm::DenseMap<std::tuple<mlir::Operation *, size_t, int64_t>, ObservedBuffer>
      observed;
  /// The key of a result's view.
  std::pair<mlir::Value, unsigned> getOutputKey(mlir::Value memref) const {
    return {memref, vectorDim - rowDim > 1};
  }
  /// Views with the trailing dimensions collapsed, and those of rows as well if
  /// the key says so, by buffer.
  llvm::MapVector<std::pair<mlir::Value, unsigned>, mlir::Value> collapsed;
};

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_EPILOGUE_H
