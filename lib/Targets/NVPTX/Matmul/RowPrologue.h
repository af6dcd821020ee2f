//===- RowPrologue.h - Rows that a product computes itself ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few rows are normalised in less time than a kernel takes to start. Each
// block of the product that reads them does so for itself, into shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_NVPTX_MATMUL_ROWPROLOGUE_H
#define SARDONYX_LIB_TARGETS_NVPTX_MATMUL_ROWPROLOGUE_H

#include "Kernel/Block.h"
#include "Rows/RowsKernel.h"

#include <memory>

namespace sardonyx::nv {

/// The left-hand side [M,K] of a product, where its kernel computes it.
class RowPrologue {
public:
  /// Threads of the product's blocks.
  static constexpr int64_t kThreads = RowsKernel::kThreads;

  RowPrologue(mlir::Value lhs, KernelBody &body);

  /// Whether there is anything to compute.
  bool isNeeded() const { return !KernelBody::hasBuffer(lhs); }
  bool isPossible();

  /// In the code of a block, of which this is `thread`: computes all rows.
  /// Gives them as [M,K] in shared memory, once all threads are done.
  mlir::Value emit(mlir::ImplicitLocOpBuilder &b, mlir::Value thread);

private:
  mlir::Value lhs, source; // `source`: without reshapes
  std::unique_ptr<RowsKernel> rows;
};

/// All `OpT` of a kernel on tensors, where they are of one form and have the
/// left-hand side, their first operand, in common; else none.
template <typename OpT>
llvm::SmallVector<OpT> findProducts(mlir::func::FuncOp func) {
  llvm::SmallVector<OpT> products;
  if (mayHaveBlocks(func))
    products = llvm::to_vector(func.getOps<OpT>());
  for (OpT op : products) {
    OpT first = products.front();
    if (!op.hasPureTensorSemantics() ||
        op->getOperand(0) != first->getOperand(0) ||
        op->getOperandTypes() != first->getOperandTypes() ||
        op->getAttrDictionary() != first->getAttrDictionary())
      return {};
  }
  return products;
}

} // namespace sardonyx::nv

#endif // SARDONYX_LIB_TARGETS_NVPTX_MATMUL_ROWPROLOGUE_H
