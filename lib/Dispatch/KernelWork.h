//===- KernelWork.h - What a kernel computes and moves ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_DISPATCH_KERNELWORK_H
#define SARDONYX_LIB_DISPATCH_KERNELWORK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace sardonyx {

/// Of a kernel: why it has none of the forms that its target computes fast, as
/// a noun. The target's plan passes write it.
inline constexpr llvm::StringLiteral kPlanReasonAttr = "sdx.plan_reason";

/// A product of a number and of sizes that a call tells.
struct WorkTerm {
  /// A kernel's argument and one of its dimensions; the argument itself, an
  /// index, where there is no dimension.
  struct Size {
    unsigned argument;
    std::optional<int64_t> dim;
  };
  int64_t factor = 0;
  llvm::SmallVector<Size> sizes;
};

/// Both are sums of terms.
struct KernelWork {
  /// Floating-point additions, multiplications, functions and so on, each as
  /// one, and the integer ones of a matrix product. A convolution counts as the
  /// direct sum, whatever its algorithm.
  llvm::SmallVector<WorkTerm> flops;
  /// The operands that the kernel reads or writes, each once, however often it
  /// does; of one that is read at computed indices as many elements as it
  /// reads.
  llvm::SmallVector<WorkTerm> bytes;
};

/// The bytes of a buffer of `type`, a call's argument of that number.
WorkTerm countBytes(mlir::MemRefType type, unsigned argument);

/// The work of a kernel whose body is still on tensors.
KernelWork countWork(mlir::func::FuncOp kernel);

/// The kernel's dense operation and its parameters in a word or two, say
/// "conv 3x3 stride 2x2", and why it has none of its target's forms.
std::string describeForm(mlir::func::FuncOp kernel);

} // namespace sardonyx

#endif // SARDONYX_LIB_DISPATCH_KERNELWORK_H
