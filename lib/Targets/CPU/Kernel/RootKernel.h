//===- RootKernel.h - Kernels around one operation --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_TARGETS_CPU_ROOTKERNEL_H
#define SARDONYX_LIB_TARGETS_CPU_ROOTKERNEL_H

#include "Kernel/Epilogue.h"

#include "dialects/CPU/CPU.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx::cpu {

/// The `OpT` around which `func` is a kernel on tensors; null if there is none.
/// A second one, a `what`, is an error.
template <typename OpT>
llvm::FailureOr<OpT> findRoot(mlir::func::FuncOp func, llvm::StringRef what) {
  if (!func->hasAttr(sdx::kKernelAttr) || func.isDeclaration())
    return OpT();
  auto roots = llvm::to_vector(func.getOps<OpT>());
  if (roots.empty() || !roots.front().hasPureTensorSemantics())
    return OpT();
  if (roots.size() > 1)
    return roots[1].emitOpError("is the second ") << what << " of its kernel";
  return roots.front();
}

/// Puts what `emitter` makes of `root` in the place of the kernel's tensors.
template <typename EmitterT>
llvm::LogicalResult emitKernel(mlir::func::FuncOp func, mlir::Operation *root,
                               KernelBody &body, EmitterT &emitter) {
  if (failed(emitter.verify()) || failed(body.replaceDims()))
    return mlir::failure();
  mlir::ImplicitLocOpBuilder b(root->getLoc(),
                               func.getBody().front().getTerminator());
  emitter.emit(b);
  body.eraseTensors();
  return mlir::success();
}

} // namespace sardonyx::cpu

#endif // SARDONYX_LIB_TARGETS_CPU_ROOTKERNEL_H
