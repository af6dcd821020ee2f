//===- CPUOps.cpp - Packed products ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPU.h"
#include "dialects/SDX/SDXDps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::cpu;
using sdx::Effects;
using sdx::getDpsEffects;
using sdx::mayEqual;
using sdx::mayFit;
using sdx::reifyFromInits;
using sdx::resultTypes;
using sdx::verifyDps;

#define GET_OP_CLASSES
#include "dialects/CPU/CPUOps.cpp.inc"

//===----------------------------------------------------------------------===//
// PackedMatmulOp
//===----------------------------------------------------------------------===//

void PackedMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                           Value rhs, Value init, PackingAttr packing) {
  build(b, state, resultTypes(init), lhs, rhs, /*scales=*/Value(), init,
        packing, /*block=*/IntegerAttr(), /*whole_zeros=*/UnitAttr(),
        /*strassen=*/IntegerAttr());
}

void PackedMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                           Value rhs, Value scales, int64_t block, Value init,
                           PackingAttr packing, bool wholeZeros) {
  build(b, state, resultTypes(init), lhs, rhs, scales, init, packing,
        b.getI64IntegerAttr(block), wholeZeros ? b.getUnitAttr() : UnitAttr(),
        /*strassen=*/IntegerAttr());
}

/// What is wrong with the scales of a right-hand side of integers.
static LogicalResult verifyScales(PackedMatmulOp op) {
  PackingAttr packing = op.getPacking();
  if (!packing.isQuantized() && !packing.isCompressed()) {
    if (op.getScales() || op.getBlock())
      return op.emitOpError("has scales or a block, which are for integers of "
                            "2, 4 or 8 bits and compressed numbers");
    return success();
  }
  if (!op.getScales() || !op.getBlock() || *op.getBlock() < 1)
    return op.emitOpError("has no scales or no positive block");
  ArrayRef<int64_t> lhs = op.getLhs().getType().getShape();
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  ArrayRef<int64_t> scales = op.getScales().getType().getShape();
  if (rhs.size() != 3 || scales.size() != 4)
    return op.emitOpError("rhs must be [No,K,X] and scales "
                          "[No,ceil(K/block),1 or 2,Nt]");
  if (ShapedType::isDynamicShape(rhs) || ShapedType::isDynamicShape(scales) ||
      ShapedType::isDynamic(lhs.back()))
    return op.emitOpError("has scales and open sizes of weights");
  if (packing.getSmallFloat() && scales[2] != 1)
    return op.emitOpError("floats of 4 or 8 bits have no zero points");
  Type number = op.getScales().getType().getElementType();
  if (!number.isF32() &&
      (packing.isCompressed() || !(number.isF16() || number.isBF16())))
    return op.emitOpError("scales are of f32 or, of numbers of a few bits, of "
                          "f16 or bf16, not of ")
           << number;
  if (packing.isCompressed() && (scales[1] != 1 || scales[2] != 1))
    return op.emitOpError(
        "scales of numbers of 21 or 24 bits must be [No,1,1,Nt]");
  int64_t blocks = llvm::divideCeil(lhs.back(), *op.getBlock());
  if (scales[0] != rhs[0] || scales[1] != blocks ||
      (scales[2] != 1 && scales[2] != 2) || scales[3] != packing.getPanel())
    return op.emitOpError("scales must be ")
           << rhs[0] << "x" << blocks << "x1x" << packing.getPanel() << " or "
           << rhs[0] << "x" << blocks << "x2x" << packing.getPanel();
  return success();
}

/// What is wrong with the last dimension of a packed matrix of `type`.
static LogicalResult verifyPacked(Operation *op, StringRef what,
                                  ShapedType type, PackingAttr packing) {
  if (type.getElementType() != packing.getStoredType())
    return op->emitOpError()
           << what << " must be of " << packing.getStoredType() << " for "
           << packing << ", got " << type.getElementType();
  if (type.getShape().back() != packing.getRowSize())
    return op->emitOpError("the last dimension of ")
           << what << " must be " << packing.getRowSize() << " for " << packing;
  return success();
}

/// What is wrong with a product that may go by Strassen's algorithm.
static LogicalResult verifyStrassen(PackedMatmulOp op) {
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  int64_t depth = *op.getStrassen();
  if (op.getPacking().getElement() != PackedElement::F32 || op.isBatched() ||
      ShapedType::isDynamicShape(rhs))
    return op.emitOpError(
        "only a product of f32 without batches, by weights of "
        "known sizes, can go by Strassen's algorithm");
  // Vectors of values of k come from one half.
  constexpr int64_t kLeast = 32;
  if (depth <= 0 || depth % kLeast || rhs[1] % depth || rhs[0] < 2)
    return op.emitOpError("strassen must be a multiple of ")
           << kLeast << " that divides K, and there must be two panels";
  return success();
}

LogicalResult PackedMatmulOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  ArrayRef<int64_t> lhs = getLhs().getType().getShape();
  ArrayRef<int64_t> rhs = getRhs().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (lhs.size() != 2 && lhs.size() != 3)
    return emitOpError("lhs must be [M,K] or [B,M,K], got rank ") << lhs.size();
  if (init.size() != lhs.size())
    return emitOpError("init must have the rank of lhs, ")
           << lhs.size() << ", got rank " << init.size();
  if (rhs.size() != 3 && !(rhs.size() == 4 && lhs.size() == 3))
    return emitOpError("rhs must be [No,K,Nt], or [B,No,K,Nt] with a batched "
                       "lhs, got rank ")
           << rhs.size();
  PackingAttr packing = getPacking();
  Builder b(getContext());
  Type left = packing.getDepthGroup() > 1 ? packing.getStoredType()
                                          : Type(b.getF32Type());
  Type sum = packing.isOfBytes() ? Type(b.getI32Type()) : b.getF32Type();
  if (getLhs().getType().getElementType() != left ||
      getInit().getType().getElementType() != sum)
    return emitOpError("lhs must be of ")
           << left << " and init of " << sum << " for " << packing;
  if (failed(verifyPacked(*this, "rhs", getRhs().getType(), packing)) ||
      failed(verifyScales(*this)))
    return failure();
  if (getStrassen() && failed(verifyStrassen(*this)))
    return failure();
  int64_t panels = rhs[rhs.size() - 3];
  int64_t width = packing.getPanel();
  int64_t k = lhs.back();
  if (!ShapedType::isDynamic(k))
    k = packing.getPackedDepth(k);
  if (!mayEqual(k, rhs[rhs.size() - 2]))
    return emitOpError("lhs has K = ")
           << lhs.back() << " but rhs " << rhs[rhs.size() - 2]
           << (getDepthGroup() > 1 || isW21() ? " groups" : "");
  if (!mayEqual(lhs[lhs.size() - 2], init[init.size() - 2]))
    return emitOpError("lhs has M = ")
           << lhs[lhs.size() - 2] << " but init " << init[init.size() - 2];
  if (!mayFit(init.back(), panels, width))
    return emitOpError("init has N = ")
           << init.back() << " columns but rhs only " << panels << " panels of "
           << width;
  if (lhs.size() == 3 && !mayEqual(lhs[0], init[0]))
    return emitOpError("lhs has ") << lhs[0] << " batches but init " << init[0];
  if (rhs.size() == 4 && !mayEqual(rhs[0], init[0]))
    return emitOpError("rhs has ") << rhs[0] << " batches but init " << init[0];
  return success();
}

void PackedMatmulOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/true, effects);
}

LogicalResult
PackedMatmulOp::reifyResultShapes(OpBuilder &b,
                                  ReifiedRankedShapedTypeDims &shapes) {
  return reifyFromInits(*this, b, shapes);
}

//===----------------------------------------------------------------------===//
// PackRhsOp
//===----------------------------------------------------------------------===//

void PackRhsOp::build(OpBuilder &b, OperationState &state, Value source,
                      Value scales, Value init, bool transposed,
                      PackingAttr packing) {
  build(b, state, resultTypes(init), source, scales, init,
        transposed ? b.getUnitAttr() : UnitAttr(), packing);
}

LogicalResult PackRhsOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  PackingAttr packing = getPacking();
  if (packing.getElement() != PackedElement::F32 && !packing.isCompressed() &&
      !packing.isOfBytes())
    return emitOpError("packs f32, as they are or in 21 or 24 bits, and signed "
                       "bytes, and not ")
           << packing;
  Builder b(getContext());
  Type element = isOfBytes() ? Type(b.getI8Type()) : b.getF32Type();
  if (getSource().getType().getElementType() != element)
    return emitOpError("source must be of ") << element << " for " << packing;
  if (packing.isCompressed() != bool(getScales()))
    return emitOpError(
        "has scales where it compresses numbers, and only there");
  ArrayRef<int64_t> source = getSource().getType().getShape();
  ArrayRef<int64_t> init = getInit().getType().getShape();
  if (source.size() < 2 || source.size() > 4)
    return emitOpError("source must be a matrix or a batch of matrices, got "
                       "rank ")
           << source.size();
  size_t rank = std::min<size_t>(source.size() + 1, 4);
  if (init.size() != rank)
    return emitOpError("init must have rank ")
           << rank << " for a source of rank " << source.size() << ", got "
           << init.size();
  int64_t width = packing.getPanel();
  if (failed(verifyPacked(*this, "init", getInit().getType(), packing)))
    return failure();
  if (getScales()) {
    ArrayRef<int64_t> scales = getScales().getType().getShape();
    if (init.size() != 3 || scales.size() != 4 || scales[0] != init[0] ||
        scales[1] != 1 || scales[2] != 1 || scales[3] != width)
      return emitOpError("scales must be [No,1,1,Nt] for [No,X,Y]");
  }
  int64_t n = source[getColumnDim()], k = source[getDepthDim()];
  if (!ShapedType::isDynamic(k))
    k = packing.getPackedDepth(k);
  if (!mayEqual(k, init[init.size() - 2]))
    return emitOpError("source has K = ")
           << k << " but init " << init[init.size() - 2]
           << (makesW21() || packing.getDepthGroup() > 1 ? " groups" : "");
  int64_t panels = init[init.size() - 3];
  int64_t expected = ShapedType::isDynamic(n) ? n : (n + width - 1) / width;
  if (!mayEqual(expected, panels))
    return emitOpError("source has N = ") << n << ", which makes " << expected
                                          << " panels, but init has " << panels;
  if (source.size() == 2)
    return success();
  int64_t batches = source[0];
  if (isInterleaved())
    batches =
        ShapedType::isDynamic(source[0]) || ShapedType::isDynamic(source[2])
            ? ShapedType::kDynamic
            : source[0] * source[2];
  if (!mayEqual(batches, init[0]))
    return emitOpError("source has ")
           << batches << " batches but init " << init[0];
  return success();
}

void PackRhsOp::getEffects(Effects &effects) {
  getDpsEffects(*this, /*accumulates=*/false, effects);
}

LogicalResult PackRhsOp::reifyResultShapes(OpBuilder &b,
                                           ReifiedRankedShapedTypeDims &s) {
  return reifyFromInits(*this, b, s);
}
