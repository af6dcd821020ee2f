//===- ContiguousOperands.cpp - Operands of kernels are contiguous --------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace sardonyx;

Value sardonyx::allocateLike(OpBuilder &b, Location loc, Value value) {
  auto type = cast<MemRefType>(value.getType());
  SmallVector<Value> sizes;
  for (int64_t i = 0, e = type.getRank(); i < e; ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(memref::DimOp::create(b, loc, value, i));
  return memref::AllocOp::create(
      b, loc,
      MemRefType::get(type.getShape(), type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace()),
      sizes, b.getI64IntegerAttr(64));
}

static bool hasIdentityLayout(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return !type || type.getLayout().isIdentity();
}

memref::AllocOp sardonyx::findViewedAllocation(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto type = dyn_cast<MemRefType>(value.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!type || !type.hasStaticShape() ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        llvm::any_of(strides, ShapedType::isDynamic))
      return {};
    if (auto alloc = dyn_cast<memref::AllocOp>(op))
      return alloc;
    if (!isa<memref::SubViewOp, memref::ExpandShapeOp, memref::CollapseShapeOp,
             memref::CastOp>(op))
      return {};
    value = op->getOperand(0);
  }
  return {};
}

/// Kernels on a device access sixteen bytes at a time.
static bool isAligned(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset = ShapedType::kDynamic;
  (void)type.getStridesAndOffset(strides, offset);
  return !ShapedType::isDynamic(offset) &&
         offset * ((type.getElementTypeBitWidth() + 7) / 8) % 16 == 0;
}

bool sardonyx::isViewOfPlannable(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && sdx::isContiguous(type) &&
         (!type.getMemorySpace() || isAligned(type)) &&
         findViewedAllocation(value);
}

bool sardonyx::isPassedByAddress(OpOperand &operand) {
  Operation *call = operand.getOwner();
  // Buffers of open sizes are no pieces, and kernels that run once shall share
  // code.
  if (call->getParentOfType<func::FuncOp>().getName() == "init")
    return false;
  sdx::TargetAttrInterface target = sdx::getTarget(call);
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  return isa<sdx::CallOp>(call) && type && sdx::isContiguous(type) &&
         !type.getMemorySpace() && !(target && target.getMemorySpace());
}

void sardonyx::makeOperandsContiguous(
    func::FuncOp func, llvm::function_ref<bool(OpOperand &)> isFine) {
  func.walk([&](Operation *call) {
    if (!isa<sdx::CallOp, sdx::RuntimeCallOp>(call))
      return;
    OpBuilder b(call);
    Location loc = call->getLoc();
    for (OpOperand &operand : call->getOpOperands()) {
      if (auto cast = operand.get().getDefiningOp<memref::CastOp>())
        if (hasIdentityLayout(cast.getSource()) &&
            mlir::cast<MemRefType>(cast.getSource().getType()).getShape() ==
                mlir::cast<MemRefType>(cast.getType()).getShape())
          operand.set(cast.getSource());
      Value value = operand.get();
      if (hasIdentityLayout(value) || isFine(operand))
        continue;
      b.setInsertionPoint(call);
      Value copy = allocateLike(b, loc, value);
      bool isOut = cast<DestinationStyleOpInterface>(call).isDpsInit(&operand);
      auto kernel = dyn_cast<sdx::CallOp>(call);
      if (isOut && kernel &&
          kernel.updatesOut(operand.getOperandNumber() -
                            kernel.getIns().size()))
        memref::CopyOp::create(b, loc, value, copy);
      if (isOut)
        b.setInsertionPointAfter(call);
      memref::CopyOp::create(b, loc, isOut ? copy : value,
                             isOut ? value : copy);
      operand.set(copy);
    }
  });
}
