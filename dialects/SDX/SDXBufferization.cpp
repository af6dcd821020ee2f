//===- SDXBufferization.cpp - Bufferize the sdx ops -------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace sardonyx;

namespace {

/// Clones `op` onto buffers, without results, and replaces it by its outs.
LogicalResult bufferizeInPlace(Operation *op, RewriterBase &rewriter,
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
      ArrayRef(operands).slice(inits.getBeginOperandIndex(), inits.size()));
  OperationState newOp(op->getLoc(), op->getName(), operands, TypeRange(),
                       op->getDiscardableAttrDictionary().getValue());
  newOp.propertiesAttr = op->getPropertiesAsAttribute();
  rewriter.setInsertionPoint(op);
  rewriter.create(newOp);
  replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

/// The index of the first init. The interface's own answers make an attribute,
/// and the analysis asks them most of its time.
unsigned firstInit(Operation *op) {
  if (auto call = dyn_cast<sdx::CallOp>(op))
    return call.getIns().size();
  OperandRange inits = cast<DestinationStyleOpInterface>(op).getDpsInits();
  return inits.empty() ? op->getNumOperands() : inits.getBeginOperandIndex();
}

/// Inputs are read, inits are written, and read too if `readsInit`.
template <typename OpTy, bool readsInit>
struct DpsModel
    : public DstBufferizableOpInterfaceExternalModel<DpsModel<OpTy, readsInit>,
                                                     OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return readsInit || operand.getOperandNumber() < firstInit(op);
  }

  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return operand.getOperandNumber() >= firstInit(op);
  }

  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    unsigned first = firstInit(op), index = operand.getOperandNumber();
    if (index < first)
      return {};
    return {{op->getResult(index - first), BufferRelation::Equivalent}};
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    return bufferizeInPlace(op, rewriter, options, state);
  }
};

} // namespace

void sardonyx::registerSDXBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, sdx::SDXDialect *) {
    sdx::PackedMatmulOp::attachInterface<DpsModel<sdx::PackedMatmulOp, true>>(
        *context);
    sdx::ConvOp::attachInterface<DpsModel<sdx::ConvOp, true>>(*context);
    sdx::MaxPoolOp::attachInterface<DpsModel<sdx::MaxPoolOp, true>>(*context);
    sdx::PackRhsOp::attachInterface<DpsModel<sdx::PackRhsOp, false>>(*context);
    sdx::PackConvWeightsOp::attachInterface<
        DpsModel<sdx::PackConvWeightsOp, false>>(*context);
    sdx::CallOp::attachInterface<DpsModel<sdx::CallOp, false>>(*context);
    sdx::RuntimeCallOp::attachInterface<DpsModel<sdx::RuntimeCallOp, false>>(
        *context);
  });
}
