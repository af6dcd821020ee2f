//===- Block.h - What the threads of a block do together --------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BLOCK_H
#define SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BLOCK_H

#include "dialects/NV/NV.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace sardonyx::nv {

/// Index arithmetic that folds what is constant.
class Indices {
public:
  explicit Indices(mlir::ImplicitLocOpBuilder &b) : b(b) {}

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value add(mlir::Value x, int64_t y) { return add(x, constant(y)); }
  mlir::Value mul(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, int64_t y) { return mul(x, constant(y)); }
  /// Of numbers that are not negative.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value div(mlir::Value x, int64_t y) { return div(x, constant(y)); }
  mlir::Value rem(mlir::Value x, mlir::Value y);
  mlir::Value rem(mlir::Value x, int64_t y) { return rem(x, constant(y)); }
  mlir::Value ceilDiv(mlir::Value x, int64_t y) {
    return div(add(x, y - 1), y);
  }
  mlir::Value exclusiveOr(mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y);
  mlir::Value both(mlir::Value x, mlir::Value y);
  /// The position in a grid of `sizes` of its element number `flat`.
  llvm::SmallVector<mlir::Value> unflatten(mlir::Value flat,
                                           llvm::ArrayRef<mlir::Value> sizes);

private:
  mlir::ImplicitLocOpBuilder &b;
};

/// `value` where it can be computed before `region`, by a copy of what computes
/// it; null where it hangs on what is in there. Without a builder it only tells
/// whether there is one.
mlir::Value hoistValue(mlir::OpBuilder *b, mlir::Value value,
                       mlir::Region &region);

/// How many elements of a type the largest access of a thread, 16 bytes, has.
inline int64_t countInPiece(mlir::Type element) {
  return 128 / element.getIntOrFloatBitWidth();
}

/// Whether `func` is a kernel that need not be plain loops.
bool mayHaveBlocks(mlir::func::FuncOp func);

/// The loop over the blocks of a kernel of `threads` threads each, all of which
/// run its body; the builder is in there afterwards. `step` names it.
mlir::scf::ParallelOp startBlocks(mlir::ImplicitLocOpBuilder &b,
                                  mlir::Value blocks, int64_t threads,
                                  llvm::StringRef step);

/// `bytes` of the block's shared memory.
mlir::Value allocateShared(mlir::ImplicitLocOpBuilder &b, int64_t bytes);

/// A typed piece of the block's shared memory, `byteOffset` from its beginning.
mlir::Value viewShared(mlir::ImplicitLocOpBuilder &b, mlir::Value bytes,
                       int64_t byteOffset, llvm::ArrayRef<int64_t> shape,
                       mlir::Type type);

/// The address of element `index`, counted from the first, of a buffer in the
/// device's or the block's memory, as the llvm dialect has it.
mlir::Value addressOf(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                      mlir::Value index);

/// That element.
mlir::Value loadAt(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                   mlir::Value index);

/// Waits until all threads of the blocks of a cluster are here. What they have
/// written to shared memory before each of them reads afterwards. `isAligned`:
/// the threads of a warp come together.
void joinCluster(mlir::ImplicitLocOpBuilder &b, bool isAligned = true);

/// Element `index`, counted from the first, of what is in block number `rank`
/// of the cluster where the shared memory `memref` is in this one.
mlir::Value loadFromCluster(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                            mlir::Value index, mlir::Value rank);

/// Whether code of `op` can ask for memory before its kernel may use it.
bool canPrefetch(mlir::Operation *op);

/// Asks for the memory at element `index` before it is needed, by the L2 cache.
/// Kernels do so for what no other kernel writes before they wait for these.
void prefetch(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
              mlir::Value index);

/// The size of a dimension, a constant where it is known.
mlir::Value sizeOf(mlir::ImplicitLocOpBuilder &b, mlir::Value memref,
                   int64_t dim);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_KERNEL_BLOCK_H
