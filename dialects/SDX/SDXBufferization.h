//===- SDXBufferization.h - Bufferize ops in destination style --*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_SDX_SDXBUFFERIZATION_H
#define SARDONYX_DIALECTS_SDX_SDXBUFFERIZATION_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

namespace sardonyx::sdx {

/// Clones `op` onto buffers, without results, and replaces it by its outs.
llvm::LogicalResult
bufferizeInPlace(mlir::Operation *op, mlir::RewriterBase &rewriter,
                 const mlir::bufferization::BufferizationOptions &options,
                 mlir::bufferization::BufferizationState &state);

/// The index of the first init. The interface's own answers make an attribute,
/// and the analysis asks them most of its time.
unsigned firstInit(mlir::Operation *op);

/// Inputs are read, inits are written, and read too if `readsInit`, or by a
/// call that updates them.
template <typename OpTy, bool readsInit>
struct DpsModel
    : public mlir::bufferization::DstBufferizableOpInterfaceExternalModel<
          DpsModel<OpTy, readsInit>, OpTy> {
  bool
  bufferizesToMemoryRead(mlir::Operation *op, mlir::OpOperand &operand,
                         const mlir::bufferization::AnalysisState &) const {
    unsigned first = firstInit(op), index = operand.getOperandNumber();
    if constexpr (std::is_same_v<OpTy, CallOp>)
      return index < first || mlir::cast<CallOp>(op).updatesOut(index - first);
    return readsInit || index < first;
  }

  bool
  bufferizesToMemoryWrite(mlir::Operation *op, mlir::OpOperand &operand,
                          const mlir::bufferization::AnalysisState &) const {
    return operand.getOperandNumber() >= firstInit(op);
  }

  mlir::bufferization::AliasingValueList
  getAliasingValues(mlir::Operation *op, mlir::OpOperand &operand,
                    const mlir::bufferization::AnalysisState &) const {
    unsigned first = firstInit(op), index = operand.getOperandNumber();
    if (index < first)
      return {};
    return {{op->getResult(index - first),
             mlir::bufferization::BufferRelation::Equivalent}};
  }

  llvm::LogicalResult
  bufferize(mlir::Operation *op, mlir::RewriterBase &rewriter,
            const mlir::bufferization::BufferizationOptions &options,
            mlir::bufferization::BufferizationState &state) const {
    return bufferizeInPlace(op, rewriter, options, state);
  }
};

/// Lets one-shot bufferization handle an operation in destination style.
template <typename OpTy, bool readsInit>
void attachDpsModel(mlir::MLIRContext &context) {
  OpTy::template attachInterface<DpsModel<OpTy, readsInit>>(context);
}

} // namespace sardonyx::sdx

#endif // SARDONYX_DIALECTS_SDX_SDXBUFFERIZATION_H
