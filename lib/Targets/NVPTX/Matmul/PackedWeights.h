//===- PackedWeights.h - Weights of a few bits in registers -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread reads as many neighbouring weights as lie in up to 16 bytes of one
// block, with their scale and zero point, and unpacks them in registers. A
// number of a few bits that is put into the mantissa of 2^23 is a float without
// a conversion, times a power of two that its place in the word says.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PACKEDWEIGHTS_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PACKEDWEIGHTS_H

#include "Common/KernelBody.h"

#include "dialects/SDX/SDX.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// Whether the weights come in whole words of 32 bits.
bool canUnpack(sdx::DequantMatmulOp op);

/// The weights [N,K] of a product, in pieces.
class PackedWeights {
public:
  /// Pieces of at most `mostValues` weights.
  PackedWeights(sdx::DequantMatmulOp op, KernelBody &body, int64_t mostValues);

  /// Weights of a piece, and pieces of a row, which may go beyond K.
  int64_t countValues() const { return bytes * 8 / bits; }
  int64_t piecesOfRow() const { return numPieces; }

  /// What a thread has of a piece: 32-bit words, its scale and perhaps its zero
  /// point, as f32.
  llvm::SmallVector<mlir::Type> types(mlir::ImplicitLocOpBuilder &b) const;
  /// Piece number `piece` of row `row`. Where it does not `exist` its scale is
  /// 0; the row does.
  llvm::SmallVector<mlir::Value> load(mlir::ImplicitLocOpBuilder &b,
                                      mlir::Value row, mlir::Value piece,
                                      mlir::Value exists) const;
  /// Asks for a piece, which exists, before it is loaded.
  void prefetchPiece(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                     mlir::Value piece) const;
  int64_t bytesOfPiece() const { return bytes; }
  /// Weight number `i` of a piece, without its scale, times 2^exponentOf(i).
  mlir::Value unpack(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange loaded,
                     int64_t i) const;
  mlir::Value scaleOf(mlir::ValueRange loaded) const {
    return loaded[bytes / 4];
  }
  int64_t exponentOf(int64_t i) const { return bits * (i % (16 / bits)); }
  /// 2^-exponentOf(i) where `i` is known at run time only.
  mlir::Value inverseFactor(mlir::ImplicitLocOpBuilder &b, mlir::Value i) const;

  /// Whether two weights at a time are numbers of f16 without a rounding: zero
  /// points are integers.
  bool hasPairs() const;
  /// Weights of a word that are half a word apart, of which this is number
  /// `pair` of the piece, as vector<2xf16>, without their scale, times
  /// 2^-pairExponent(). A number that is put into the mantissa of 2^10 is a
  /// float.
  mlir::Value unpackPair(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange loaded,
                         int64_t pair) const;
  /// Half a piece's products of any f16 numbers by such weights, each below 1,
  /// add up to what f16 has.
  int64_t pairExponent() const;
  /// Where element `i` of a piece lies where those of a pair are neighbours.
  mlir::Value placeInPairs(mlir::ImplicitLocOpBuilder &b, mlir::Value i) const;

private:
  mlir::Value loadZero(mlir::ImplicitLocOpBuilder &b, mlir::Value row,
                       mlir::Value block) const;

  int64_t bits, blockBytes, blocks, bytes, numPieces;
  mlir::Value weights, scales, zeros;
};

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_PACKEDWEIGHTS_H
