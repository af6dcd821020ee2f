//===- Toy.h - A target from outside of the tree ----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that a target needs: a dialect with an attribute for its machines, an
// interface of the dialect that makes code for them, and a function that loads
// the code. This one has the kernels as C, which the system's compiler
// compiles.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TEST_TARGETS_TOY_TOY_H
#define SARDONYX_TEST_TARGETS_TOY_TOY_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"

#include "ToyDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ToyAttrs.h.inc"

namespace toy {

/// Registers the dialect and its target.
void registerToyTarget(mlir::DialectRegistry &registry);

/// Writes `kernel`, which works on memrefs by loops, as a C function of its
/// name, called with the parts of memrefs: both pointers, the offset, the sizes
/// and the strides. Fails with an error at the operation that has no
/// C.
llvm::LogicalResult printKernel(mlir::func::FuncOp kernel,
                                llvm::raw_ostream &os);

/// What comes before the first kernel.
llvm::StringRef getPrelude();

} // namespace toy

#endif // SARDONYX_TEST_TARGETS_TOY_TOY_H
