//===- TileCopy.h - Tiles of matrices in shared memory ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_TILECOPY_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_TILECOPY_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <functional>

namespace sardonyx::nv {

/// How the elements of a tile lie in shared memory.
struct TileLayout {
  enum Kind {
    /// Row by row, pieces of 16 bytes of row r at their number xor r mod 8:
    /// ldmatrix finds eight rows in different banks.
    Swizzled,
    /// The same with 2 (r mod 4): four rows of eight words are in different
    /// banks.
    SwizzledByTwo,
    /// Row by row, with a gap after each.
    Padded,
    /// Column by column, with a gap after each.
    Transposed,
    /// Row by row, with 16 bytes after each: ldmatrix finds eight rows in
    /// different banks where a row is a multiple of 32 bytes.
    Spaced
  };
  Kind kind;
  int64_t rows, cols; // of the tile
  int64_t elementBytes;

  static constexpr int64_t kGap = 4; // elements

  int64_t countElements() const {
    switch (kind) {
    case Swizzled:
    case SwizzledByTwo:
      return rows * cols;
    case Padded:
      return rows * (cols + kGap);
    case Transposed:
      return cols * (rows + kGap);
    case Spaced:
      return rows * (cols + 16 / elementBytes);
    }
    return 0;
  }
  int64_t countBytes() const { return countElements() * elementBytes; }
  /// Where element (row, col) is.
  mlir::Value place(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                    mlir::Value col) const;
};

/// A matrix of which tiles are copied.
struct TileSource {
  /// An element of the matrix: where it is in `memref`, counted from the first
  /// element, and whether it is there; what is not is 0.
  struct Element {
    mlir::Value index, exists;
  };

  mlir::Value memref;
  /// So many elements of a row follow each other in memory, from any multiple
  /// of that number on, and are there or not together.
  int64_t width = 1;
  std::function<Element(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                        mlir::Value col)>
      find;

  /// A matrix of so many rows and columns, number `batch` (null: the only one)
  /// of those that follow each other in `memref`.
  static TileSource matrix(mlir::Value memref, mlir::Value batch,
                           mlir::Value numRows, mlir::Value numCols);
};

/// Copies tiles of a matrix to shared memory. All threads of the block call it.
class TileCopy {
public:
  /// `thread` of `threads`.
  TileCopy(TileSource source, TileLayout layout, mlir::Value thread,
           int64_t threads);

  /// Whether copies go on while the threads do something else (cp.async).
  bool isAsync() const { return width * layout.elementBytes >= 4; }

  /// Copies the tile that begins at (row, col) to `shared`, a flat buffer of
  /// elements, from element `offset` on. What lies outside of the matrix is 0.
  void emit(mlir::ImplicitLocOpBuilder &b, mlir::Value row, mlir::Value col,
            mlir::Value shared, mlir::Value offset) const;

private:
  void copyPiece(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                 mlir::Value col, mlir::Value r, mlir::Value c,
                 mlir::Value shared, mlir::Value offset) const;

  TileSource source;
  TileLayout layout;
  mlir::Value thread;
  int64_t threads;
  /// Elements that a thread copies at a time.
  int64_t width;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_TILECOPY_H
