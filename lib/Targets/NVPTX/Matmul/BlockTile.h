//===- BlockTile.h - How a block multiplies tiles ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block keeps the sums of a tile of the result in registers and adds to them
// products of tiles in shared memory: by multiply-adds, or by the instructions
// of the tensor cores.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_BLOCKTILE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_BLOCKTILE_H

#include "Matmul/TileCopy.h"

#include "dialects/NV/NV.h"
#include "dialects/SDX/SDX.h"

#include <memory>

namespace sardonyx::nv {

/// What a product multiplies and adds up.
struct ProductTypes {
  mlir::Type lhs, rhs, sum;
  bool isLhsUnsigned = false, isRhsUnsigned = false;
  /// The right-hand side is [N,K].
  bool transposed = false;
  /// Of f32, each of which is taken as the sum of two bf16.
  bool areSplit = false;

  /// Whether both sides are floats of eight bits, which lie in memory as i8.
  bool areByteFloats() const {
    return llvm::isa<mlir::FloatType>(lhs) && lhsBytes() == 1;
  }
  /// Of f32 by tensor cores: whether they are rounded to tf32.
  bool areRounded() const { return lhs.isF32() && !areSplit; }
  int64_t lhsBytes() const { return lhs.getIntOrFloatBitWidth() / 8; }
  int64_t rhsBytes() const { return rhs.getIntOrFloatBitWidth() / 8; }
};

/// The sums of a block's tile and how they are computed.
class BlockTile {
public:
  virtual ~BlockTile() = default;

  virtual TileLayout lhsLayout() const = 0;
  virtual TileLayout rhsLayout() const = 0;
  /// The sums of the calling thread, all 0.
  virtual mlir::SmallVector<mlir::Value>
  zeros(mlir::ImplicitLocOpBuilder &b) const = 0;
  /// `sums` plus the product of a tile of each side, which lie in flat buffers
  /// from these elements on.
  virtual mlir::SmallVector<mlir::Value>
  multiply(mlir::ImplicitLocOpBuilder &b, mlir::Value lhs,
           mlir::Value lhsOffset, mlir::Value rhs, mlir::Value rhsOffset,
           mlir::ValueRange sums) const = 0;
  /// Writes the sums to a tile in shared memory.
  virtual void store(mlir::ImplicitLocOpBuilder &b, mlir::ValueRange sums,
                     mlir::Value tile) const = 0;
};

/// Neighbouring elements of the result that a thread writes.
inline constexpr int64_t kStoredSums = 4;

/// Elements after each row of sums in shared memory, which keep rows out of
/// each other's banks.
inline constexpr int64_t kSumGap = 4;

/// The tile of a plan, for the thread of this number.
std::unique_ptr<BlockTile> createTile(const ProductTypes &types,
                                      MatmulPlanAttr plan, mlir::Value thread);
std::unique_ptr<BlockTile> createFmaTile(const ProductTypes &types,
                                         MatmulPlanAttr plan,
                                         mlir::Value thread);
std::unique_ptr<BlockTile> createMmaTile(const ProductTypes &types,
                                         MatmulPlanAttr plan,
                                         mlir::Value thread);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_BLOCKTILE_H
