//===- KernelEquality.h - Which kernels are one -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_KERNELEQUALITY_H
#define SARDONYX_LIB_DISPATCH_KERNELEQUALITY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx {

/// A hash of all of a kernel but its name and locations.
llvm::hash_code hashKernel(mlir::func::FuncOp kernel);

/// Whether two kernels differ in names and locations only.
bool areEqualKernels(mlir::func::FuncOp a, mlir::func::FuncOp b);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_KERNELEQUALITY_H
