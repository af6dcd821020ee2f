//===- CPUOps.cpp - Packed products ---------------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CPU/CPUVerify.h"
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
                           Value rhs, Value init) {
  state.addOperands({lhs, rhs, init});
  state.addTypes(resultTypes(init));
}

void PackedMatmulOp::build(OpBuilder &b, OperationState &state, Value lhs,
                           Value rhs, Value scales, int64_t block, Value init) {
  state.addOperands({lhs, rhs, scales, init});
  state.getOrAddProperties<Properties>().setBlock(b.getI64IntegerAttr(block));
  state.addTypes(resultTypes(init));
}

/// What is wrong with a right-hand side of scaled integers.
static LogicalResult verifyScales(PackedMatmulOp op) {
  ArrayRef<int64_t> lhs = op.getLhs().getType().getShape();
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  ArrayRef<int64_t> scales = op.getScales().getType().getShape();
  if (!op.getBlock() || *op.getBlock() < 1)
    return op.emitOpError("has scales but no positive block");
  if (rhs.size() != 3 || scales.size() != 4)
    return op.emitOpError("rhs must be [No,K,Nt/P] and scales "
                          "[No,ceil(K/block),1 or 2,Nt]");
  if (ShapedType::isDynamicShape(rhs) || ShapedType::isDynamicShape(scales) ||
      ShapedType::isDynamic(lhs.back()))
    return op.emitOpError("has scales and open sizes of weights");
  bool isShort = op.isShort();
  if (isShort && (scales[1] != 1 || scales[2] != 1))
    return op.emitOpError(
        "scales of numbers of 21 or 24 bits must be [No,1,1,Nt]");
  if (op.isOfTriples() && rhs.back() != scales.back())
    return op.emitOpError("has panels of ")
           << rhs.back() << " columns but scales for " << scales.back();
  if (isShort && failed(verifyShortPanels(op, scales.back())))
    return failure();
  int64_t perByte = rhs.back() ? scales.back() / rhs.back() : 0;
  if (!isShort && ((perByte != 1 && perByte != 2 && perByte != 4) ||
                   perByte * rhs.back() != scales.back()))
    return op.emitOpError("a panel of ")
           << scales.back() << " columns cannot have " << rhs.back()
           << " bytes";
  int64_t blocks = llvm::divideCeil(lhs.back(), *op.getBlock());
  if (scales[0] != rhs[0] || scales[1] != blocks ||
      (scales[2] != 1 && scales[2] != 2))
    return op.emitOpError("scales must be ")
           << rhs[0] << "x" << blocks << "x1x" << scales.back() << " or "
           << rhs[0] << "x" << blocks << "x2x" << scales.back();
  return success();
}

/// What is wrong with a product that may go by Strassen's algorithm.
static LogicalResult verifyStrassen(PackedMatmulOp op) {
  ArrayRef<int64_t> rhs = op.getRhs().getType().getShape();
  int64_t depth = *op.getStrassen();
  if (op.getScales() || !op.getRhs().getType().getElementType().isF32() ||
      op.isBatched() || ShapedType::isDynamicShape(rhs))
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
  auto isOf = [&](Type left, Type right, Type sum) {
    return getLhs().getType().getElementType() == left &&
           getRhs().getType().getElementType() == right &&
           getInit().getType().getElementType() == sum;
  };
  Builder b(getContext());
  Type f32 = b.getF32Type(), bf16 = b.getBF16Type(), i8 = b.getI8Type();
  if (!isOf(f32, f32, f32) && !isOf(bf16, bf16, f32) &&
      !isOf(i8, i8, b.getI32Type()) &&
      !(getScales() && (isOf(f32, i8, f32) || isOf(f32, b.getI64Type(), f32))))
    return emitOpError("operands must be of f32, or lhs and rhs of i8 and init "
                       "of i32, or lhs and rhs of bf16 and init of f32, or rhs "
                       "of i8 or i64 with scales and the others of f32");
  if (getScales() && failed(verifyScales(*this)))
    return failure();
  if (getStrassen() && failed(verifyStrassen(*this)))
    return failure();
  if (!getScales() && getBlock())
    return emitOpError("has a block but no scales");
  int64_t panels = rhs[rhs.size() - 3];
  if (ShapedType::isDynamic(rhs.back()) || rhs.back() <= 0)
    return emitOpError("the last dimension of rhs, the panel width, must be "
                       "static and positive");
  if (rhs.back() % getDepthGroup())
    return emitOpError("the last dimension of rhs, ")
           << rhs.back() << ", is no multiple of " << getDepthGroup();
  int64_t width = getPanelWidth();
  int64_t k = lhs.back();
  if (!ShapedType::isDynamic(k))
    k = getPackedDepth(k);
  if (!mayEqual(k, rhs[rhs.size() - 2]))
    return emitOpError("lhs has K = ")
           << lhs.back() << " but rhs " << rhs[rhs.size() - 2]
           << (getDepthGroup() > 1 || isOfTriples() ? " groups" : "");
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
                      Value init, bool transposed) {
  build(b, state, source, /*scales=*/Value(), init, transposed);
}

void PackRhsOp::build(OpBuilder &b, OperationState &state, Value source,
                      Value scales, Value init, bool transposed) {
  state.addOperands(source);
  if (scales)
    state.addOperands(scales);
  state.addOperands(init);
  if (transposed)
    state.getOrAddProperties<Properties>().setTransposed(b.getUnitAttr());
  state.addTypes(resultTypes(init));
}

LogicalResult PackRhsOp::verify() {
  if (failed(verifyDps(*this, getDpsInits(), (*this)->getResultTypes())))
    return failure();
  Type element = getInit().getType().getElementType();
  if (getScales() ? !element.isInteger(8) && !makesTriples() : !element.isF32())
    return emitOpError("init must be of i8 or i64 with scales, else of f32");
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
  int64_t width = getPanelWidth();
  if (ShapedType::isDynamic(width) || width <= 0)
    return emitOpError("the last dimension of init, the panel width, must be "
                       "static and positive");
  if (getScales()) {
    ArrayRef<int64_t> scales = getScales().getType().getShape();
    if (init.size() != 3 || scales.size() != 4 || scales[0] != init[0] ||
        scales[1] != 1 || scales[2] != 1 ||
        init.back() != (makesTriples() ? width : width * 3))
      return emitOpError(
          "with scales [No,1,1,Nt] init must be [No,K,Nt*3] of i8 "
          "or [No,ceil(K/3),Nt] of i64");
    if (failed(verifyShortPanels(*this, width)))
      return failure();
  }
  int64_t n = source[getColumnDim()], k = source[getDepthDim()];
  if (makesTriples() && !ShapedType::isDynamic(k))
    k = llvm::divideCeil(k, kTriple);
  if (!mayEqual(k, init[init.size() - 2]))
    return emitOpError("source has K = ")
           << k << " but init " << init[init.size() - 2]
           << (makesTriples() ? " groups" : "");
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
