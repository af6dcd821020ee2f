//===- MatmulPlan.h - Which tiles a product goes by -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H

#include "Matmul/BlockTile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>

namespace sardonyx::nv {

/// On a kernel around a product: how many such kernels start together.
inline constexpr llvm::StringLiteral kTogetherAttr = "nv.together";

/// Whether there are tiles for what the operation multiplies.
bool hasTiles(sdx::MatmulOp op);
bool hasTiles(sdx::ConvOp op);
bool hasTiles(ConvOp op);
/// Whether a product of unsigned by signed bytes, [.,K] both, is worth having
/// signs on both sides.
bool wantsSignedBytes(sdx::MatmulOp op, TargetAttr target);
/// Whether a convolution of so many filters, and channels of a group, would
/// have them as an nv.conv.
bool hasLastTiles(mlir::Operation *conv, mlir::Type element, mlir::Type sum,
                  int64_t filters, int64_t channels, int64_t groups);
/// Whether its packed weights are unpacked in registers, or are multiplied as
/// they are by what are floats of eight bits, too.
bool hasTiles(sdx::DequantMatmulOp op);
/// Whether the latter is possible, were its left-hand side such floats.
bool canMultiplyByteFloats(sdx::DequantMatmulOp op, TargetAttr target);

/// Whether each output of a convolution sees one pixel, that of its place.
bool isPointwise(ConvOp op);
/// How far the last tap of a window is from its first.
int64_t reachOf(ConvOp op, int64_t dim);

/// What the kernel of a product multiplies: sdx.matmul, sdx.conv, whose filters
/// are the left-hand side, nv.conv, whose windows are, or sdx.dequant_matmul,
/// whose weights are unpacked to the type of the other side.
ProductTypes getProductTypes(mlir::Operation *op);

/// Sizes of a product; open ones are guessed, K is 0 then.
struct Extent {
  int64_t pairs, m, n, k;
  bool isKnown = false; ///< Whether none is open.
};
/// What blocks multiply at a time: of all kernels that start together.
Extent extentOf(mlir::Operation *op);

/// The tiles that are chosen for a product, or none.
std::optional<MatmulPlanAttr> choosePlan(mlir::Operation *op,
                                         TargetAttr target);
/// Whether a kernel reduces anything.
bool hasRows(mlir::func::FuncOp kernel);
/// The tiles by which clusters of blocks compute whole rows of a product, if
/// there are any.
std::optional<MatmulPlanAttr> findCluster(sdx::MatmulOp op, TargetAttr target);
/// The same where that is faster than `instead` and a kernel that reduces the
/// rows.
std::optional<MatmulPlanAttr>
chooseCluster(sdx::MatmulOp op, MatmulPlanAttr instead, TargetAttr target);
/// The tiles of warpgroups, shared by two blocks where that is faster.
MatmulPlanAttr chooseSharers(MatmulPlanAttr plan, const Extent &extent,
                             TargetAttr target);
/// Why the kernel of a product has no clusters by `plan`, the end of a
/// sentence; empty where it has.
std::string whyNoClusters(mlir::Operation *op, MatmulPlanAttr plan,
                          TargetAttr target);
/// `plan` with so many blocks that share the products of a tile, or in clusters
/// of so many.
MatmulPlanAttr withSplit(MatmulPlanAttr plan, int64_t split);
MatmulPlanAttr withCluster(MatmulPlanAttr plan, int64_t m, int64_t n);
/// All tiles of the tables that there are for a product, in all forms and in
/// clusters that share them; some may not fit.
llvm::SmallVector<MatmulPlanAttr> listTiles(mlir::Operation *op,
                                            TargetAttr target);
/// The most blocks that share a tile of `plan` where the device has work for
/// several rounds, and each block for some steps.
int64_t mostSplits(mlir::Operation *op, MatmulPlanAttr plan, TargetAttr target);
/// Why the kernel of a product cannot go by `plan`, the end of a sentence;
/// empty where it can.
std::string whyNot(mlir::Operation *op, MatmulPlanAttr plan, TargetAttr target);

/// The plan of the kernel `func` around the product `op`: what nv-select-plans
/// has set, else what is chosen; none where it is loops.
std::optional<MatmulPlanAttr> getPlan(mlir::func::FuncOp func,
                                      mlir::Operation *op);

/// Bytes of shared memory that tiles and sums of a block take.
int64_t countSharedBytes(const ProductTypes &types, MatmulPlanAttr plan);

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_MATMULPLAN_H
