//===- Layout.h - What the layout passes share ------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_LAYOUT_LAYOUT_H
#define SARDONYX_LIB_TARGETS_CPU_LAYOUT_LAYOUT_H

#include "dialects/CPU/CPU.h"
#include "lib/Dispatch/Utils.h"

namespace sardonyx::cpu {

/// Up to so many rows a product takes as long as its weights take to come.
inline constexpr int64_t kFewRows = 8;

/// How weights are kept in fewer bits (see cpu.pack_rhs): scales [No,1,1,Nt] of
/// columns, and whether three numbers share eight bytes, or each has three.
struct CompressedWeights {
  mlir::DenseElementsAttr scales;
  bool areW21;
};

/// Which weights are kept so: those of at least so many bytes (0: none), and
/// whether as triples where that is exact enough; also where it takes more than
/// 1.7 times what a sum in f32 does, with `losesMore`.
struct CompressionLimits {
  int64_t fewestBytes = 0;
  bool useW21 = false, losesMore = false;
};

struct ConstantColumns;

/// How the columns of a matrix may be kept in fewer bits: nothing where they
/// are small, or would lose more than the sum of a product does.
std::optional<CompressedWeights>
chooseCompression(const ConstantColumns &columns, int64_t panelWidth,
                  mlir::MLIRContext *context, const CompressionLimits &limits);

/// A pattern that splits filters into sums of two bf16 where tile registers are
/// faster by them than multiply-adds.
void populateBf16x2WeightsPatterns(mlir::RewritePatternSet &patterns);

/// The ranges of k in which products by a matrix of these columns may go by
/// Strassen's algorithm (see cpu.packed_matmul): 0 where it is small, or has
/// numbers of very different size that meet.
int64_t chooseStrassenDepth(const ConstantColumns &columns, int64_t panelWidth);

/// How bytes lie in packed operands: widened where a processor multiplies
/// integers of 16 bits.
inline PackedElement getPackedByte(TargetAttr target) {
  return target.getInt8() == Int8Product::Maddwd ? PackedElement::I16
                                                 : PackedElement::I8;
}

/// `tensor` with what `emit` makes of each element, of type `element`.
mlir::Value mapElements(
    mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
    mlir::Type element,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value)> emit);

/// `bytes` as integers of 16 bits.
mlir::Value widenBytes(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value bytes, bool areUnsigned);

/// Whether weights of a product of f32 that are f16, or may be rounded to f16,
/// stay so in memory.
bool keepsHalves(sdx::MatmulOp op, TargetAttr target);

/// Patterns that pack products of 8-bit integers and, where `target` has
/// instructions for them, those of bf16 with weights; other products of bf16
/// become those of f32, and products of other types loop nests.
void populatePackNarrowProductsPatterns(mlir::RewritePatternSet &patterns,
                                        TargetAttr target);

/// Whether filters of the convolution, whose sizes are known, fill panels:
/// those of its only group, or of each of several.
bool hasPanels(sdx::ConvOp op);

/// Whether the convolution, if it is of narrow numbers, has a kernel with
/// channels last: by panels, or for single channels.
bool hasNarrowForm(sdx::ConvOp op);

/// `matrix` [(B,) K, N], or [(B,) N, K] if `transposed`, of f32 or of signed
/// bytes, in panels as `packing` says; [C, K, H, N] or [C, N, H, K] is a batch
/// of C * H (see cpu.pack_rhs).
mlir::Value packRhs(mlir::OpBuilder &b, mlir::Location loc, mlir::Value matrix,
                    bool transposed, PackingAttr packing);

/// Patterns that pack the matrices of a batch from where their rows lie beside
/// each other.
void populatePackInterleavedPatterns(mlir::RewritePatternSet &patterns);

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_LAYOUT_LAYOUT_H
