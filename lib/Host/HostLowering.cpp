//===- HostLowering.cpp - What lowers the host program shares -------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostLowering.h"

#include "sardonyx/NodeName.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace sardonyx;

LLVM::LLVMFuncOp sardonyx::declareRuntime(SymbolTable &symbols, StringRef name,
                                          Type result, ArrayRef<Type> args) {
  if (auto func = symbols.lookup<LLVM::LLVMFuncOp>(name))
    return func;
  auto module = cast<ModuleOp>(symbols.getOp());
  auto b = OpBuilder::atBlockBegin(module.getBody());
  auto func = LLVM::LLVMFuncOp::create(
      b, module.getLoc(), name, LLVM::LLVMFunctionType::get(result, args));
  symbols.insert(func, module.getBody()->begin());
  return func;
}

Value sardonyx::makeBuffer(OpBuilder &b, Location loc,
                           const LLVMTypeConverter &types, MemRefType type,
                           Value address, ArrayRef<Value> sizes) {
  auto desc = MemRefDescriptor::poison(b, loc, types.convertType(type));
  desc.setAllocatedPtr(b, loc, address);
  desc.setAlignedPtr(b, loc, address);
  desc.setConstantOffset(b, loc, 0);
  Value stride = LLVM::ConstantOp::create(b, loc, b.getI64Type(), 1);
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    desc.setSize(b, loc, i, sizes[i]);
    desc.setStride(b, loc, i, stride);
    if (i > 0)
      stride = LLVM::MulOp::create(b, loc, stride, sizes[i]);
  }
  return UnrealizedConversionCastOp::create(b, loc, type, Value(desc))
      .getResult(0);
}

sdx::CheckOp sardonyx::guardAllocation(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (alloc.getDynamicSizes().empty() ||
      alloc->getParentOfType<func::FuncOp>()->hasAttr(sdx::kKernelAttr))
    return {};
  Location loc = alloc.getLoc();
  OpBuilder b(alloc);
  Type f64 = b.getF64Type();
  double bytes = (type.getElementTypeBitWidth() + 7) / 8;
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      bytes *= static_cast<double>(size);
  Value product = arith::ConstantOp::create(b, loc, b.getF64FloatAttr(bytes));
  for (Value size : alloc.getDynamicSizes()) {
    // As unsigned, a negative size is huge.
    Value integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), size);
    Value factor = arith::UIToFPOp::create(b, loc, f64, integer);
    product = arith::MulFOp::create(b, loc, product, factor);
  }
  Value most = arith::ConstantOp::create(b, loc, b.getF64FloatAttr(0x1p62));
  Value good =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, product, most);
  std::string text = describeNode(loc);
  text += text.empty() ? "" : ": ";
  text += "a tensor has the impossible size";
  unsigned named = std::min<unsigned>(alloc.getDynamicSizes().size(),
                                      sdx::CheckOp::kMaxValues);
  for (unsigned i = 0; i < named; ++i)
    text += (i ? " x {" : " {") + std::to_string(i) + "}";
  return sdx::CheckOp::create(b, loc, good, b.getStringAttr(text),
                              alloc.getDynamicSizes().take_front(named),
                              sdx::FailureKind::Failed);
}
