//===- KernelBody.cpp - The tensors of a kernel and their memory ----------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelBody.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace sardonyx;

Value sardonyx::skipCasts(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

KernelBody::KernelBody(func::FuncOp func) : func(func) {
  func.walk([&](bufferization::MaterializeInDestinationOp op) {
    outputs.push_back({skipCasts(op.getSource()), op.getDest()});
  });
  func.walk([&](sdx::ObserveOp op) { observations.push_back(op); });
}

bool KernelBody::hasBuffer(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (isa_and_nonnull<bufferization::ToTensorOp>(op))
    return true;
  if (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                      tensor::ExpandShapeOp>(op))
    return hasBuffer(op->getOperand(0));
  return false;
}

Value KernelBody::getBuffer(Value tensor) {
  if (Value known = buffers.lookup(tensor))
    return known;
  Operation *op = tensor.getDefiningOp();
  Value buffer;
  if (auto toTensor = dyn_cast_or_null<bufferization::ToTensorOp>(op)) {
    buffer = toTensor.getBuffer();
  } else if (isa_and_nonnull<tensor::CastOp, tensor::CollapseShapeOp,
                             tensor::ExpandShapeOp>(op)) {
    Value source = getBuffer(op->getOperand(0));
    if (!source)
      return nullptr;
    // The view stands where the reshape of the tensor stood.
    OpBuilder b(op);
    auto type = cast<RankedTensorType>(tensor.getType());
    auto memrefType = MemRefType::get(
        type.getShape(), type.getElementType(), MemRefLayoutAttrInterface(),
        cast<MemRefType>(source.getType()).getMemorySpace());
    if (isa<tensor::CastOp>(op)) {
      buffer = memref::CastOp::create(b, op->getLoc(), memrefType, source);
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      buffer = memref::CollapseShapeOp::create(
          b, op->getLoc(), source, collapse.getReassociationIndices());
    } else {
      auto expand = cast<tensor::ExpandShapeOp>(op);
      buffer = memref::ExpandShapeOp::create(
          b, op->getLoc(), memrefType, source, expand.getReassociationIndices(),
          expand.getMixedOutputShape());
    }
  } else {
    return nullptr;
  }
  buffers[tensor] = buffer;
  return buffer;
}

LogicalResult KernelBody::replaceDims() {
  SmallVector<tensor::DimOp> dims;
  func.walk([&](tensor::DimOp op) { dims.push_back(op); });
  // Sizes of computed tensors are sizes of their destinations; an empty
  // tensor's sizes may be sizes again, of a tensor before it.
  for (tensor::DimOp op : dims) {
    std::optional<int64_t> dim = op.getConstantIndex();
    Value source = op.getSource();
    OpBuilder b(op);
    Value size;
    while (!size) {
      if (hasBuffer(source)) {
        Value buffer = getBuffer(source);
        size = memref::DimOp::create(b, op.getLoc(), buffer, op.getIndex());
      } else if (auto castOp = source.getDefiningOp<tensor::CastOp>()) {
        source = castOp.getSource();
      } else if (auto empty = source.getDefiningOp<tensor::EmptyOp>()) {
        if (!dim || *dim >= empty.getType().getRank())
          return op.emitOpError("takes a size that is not known here");
        OpFoldResult mixed = empty.getMixedSizes()[*dim];
        size = getValueOrCreateConstantIndexOp(b, op.getLoc(), mixed);
      } else if (auto result = dyn_cast<OpResult>(source);
                 result &&
                 isa<DestinationStyleOpInterface>(result.getOwner())) {
        source = cast<DestinationStyleOpInterface>(result.getOwner())
                     .getTiedOpOperand(result)
                     ->get();
      } else {
        return op.emitOpError("takes the size of a tensor that is neither an "
                              "argument nor computed in place");
      }
    }
    op.replaceAllUsesWith(size);
    op.erase();
  }
  return success();
}

void KernelBody::eraseTensors() {
  SmallVector<Operation *> doomed;
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  for (Operation &op : func.getBody().front())
    if (llvm::any_of(op.getOperandTypes(), isTensor) ||
        llvm::any_of(op.getResultTypes(), isTensor))
      doomed.push_back(&op);
  for (Operation *op : llvm::reverse(doomed))
    op->erase();
}

LogicalResult
KernelBody::replaceWith(llvm::function_ref<void(ImplicitLocOpBuilder &)> emit) {
  if (failed(replaceDims()))
    return failure();
  ImplicitLocOpBuilder b(func.getLoc(), func.getBody().front().getTerminator());
  emit(b);
  eraseTensors();
  return success();
}
