//===- MmaPiece.cpp - What a warp multiplies at a time --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Matmul/MmaPiece.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace sardonyx;
using namespace sardonyx::nv;

SmallVector<Value> nv::loadMatrices(ImplicitLocOpBuilder &b, Value address,
                                    bool transpose) {
  Type i32 = b.getI32Type();
  auto four =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded = NVVM::LdMatrixOp::create(b, four, address, 4,
                                          transpose ? NVVM::MMALayout::col
                                                    : NVVM::MMALayout::row,
                                          shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return registers;
}

static NVVM::MMATypes typeOf(Type type, bool isUnsigned) {
  if (type.isF16())
    return NVVM::MMATypes::f16;
  if (type.isBF16())
    return NVVM::MMATypes::bf16;
  if (type.isF32())
    return NVVM::MMATypes::tf32;
  return isUnsigned ? NVVM::MMATypes::u8 : NVVM::MMATypes::s8;
}

void nv::multiplyPiece(ImplicitLocOpBuilder &b, const ProductTypes &types,
                       ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                       MutableArrayRef<Value> sums) {
  auto asOperands = [&](ArrayRef<Value> registers) {
    SmallVector<Value> operands(registers);
    if (types.lhs.isF16())
      for (Value &operand : operands)
        operand = LLVM::BitcastOp::create(
            b, VectorType::get({2}, b.getF16Type()), operand);
    return operands;
  };
  const bool isInteger = types.lhs.isInteger();
  SmallVector<Type> parts(kMmaSums, types.sum);
  auto result = LLVM::LLVMStructType::getLiteral(b.getContext(), parts);
  const int64_t depth = kMmaStepBytes / types.lhsBytes();
  std::array<NVVM::MMATypes, 2> operandTypes = {
      typeOf(types.lhs, types.isLhsUnsigned),
      typeOf(types.rhs, types.isRhsUnsigned)};
  std::array<NVVM::MMALayout, 2> layouts = {NVVM::MMALayout::row,
                                            NVVM::MMALayout::col};
  Value product = NVVM::MmaOp::create(
      b, result, asOperands(lhs), asOperands(rhs), ValueRange(sums),
      ArrayRef<int64_t>{kMmaRows, kMmaCols, depth}, std::nullopt,
      isInteger ? std::optional(NVVM::MMAIntOverflow::wrapped) : std::nullopt,
      operandTypes, layouts);
  for (auto [i, sum] : llvm::enumerate(sums))
    sum = LLVM::ExtractValueOp::create(b, product, i);
}
