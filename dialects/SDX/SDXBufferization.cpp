//===- SDXBufferization.cpp - Bufferize the sdx ops -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDXBufferization.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace sardonyx;

LogicalResult sdx::bufferizeInPlace(Operation *op, RewriterBase &rewriter,
                                    const BufferizationOptions &options,
                                    BufferizationState &state) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isa<TensorType>(operand.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operand = *buffer;
    }
    operands.push_back(operand);
  }
  OperandRange inits = cast<DestinationStyleOpInterface>(op).getDpsInits();
  SmallVector<Value> results(
      ArrayRef(operands).slice(firstInit(op)).take_front(inits.size()));
  OperationState newOp(op->getLoc(), op->getName(), operands, TypeRange(),
                       op->getDiscardableAttrDictionary().getValue());
  newOp.propertiesAttr = op->getPropertiesAsAttribute();
  rewriter.setInsertionPoint(op);
  rewriter.create(newOp);
  replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

unsigned sdx::firstInit(Operation *op) {
  if (auto call = dyn_cast<sdx::CallOp>(op))
    return call.getIns().size();
  OperandRange inits = cast<DestinationStyleOpInterface>(op).getDpsInits();
  return inits.empty() ? op->getNumOperands() : inits.getBeginOperandIndex();
}

namespace {

/// An observation reads its value, and that is all.
struct ObserveModel
    : BufferizableOpInterface::ExternalModel<ObserveModel, sdx::ObserveOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto observe = cast<sdx::ObserveOp>(op);
    FailureOr<Value> buffer =
        getBuffer(rewriter, observe.getValue(), options, state);
    if (failed(buffer))
      return failure();
    rewriter.modifyOpInPlace(op,
                             [&] { observe.getValueMutable().set(*buffer); });
    return success();
  }
};

} // namespace

void sardonyx::registerSDXBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, sdx::SDXDialect *) {
    sdx::attachDpsModel<sdx::MatmulOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<sdx::DequantMatmulOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<sdx::ConvOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<sdx::MaxPoolOp, /*readsInit=*/true>(*context);
    sdx::attachDpsModel<sdx::AveragePoolOp, /*readsInit=*/false>(*context);
    sdx::attachDpsModel<sdx::CallOp, /*readsInit=*/false>(*context);
    sdx::attachDpsModel<sdx::RuntimeCallOp, /*readsInit=*/false>(*context);
    sdx::ObserveOp::attachInterface<ObserveModel>(*context);
  });
}
