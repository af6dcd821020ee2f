//===- LLVMLowering.h - Loops and vectors to the llvm dialect ---*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_PIPELINES_LLVMLOWERING_H
#define SARDONYX_LIB_PIPELINES_LLVMLOWERING_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace sardonyx {

/// From loops, vectors and memrefs (after `sdx-lower-host-parallel`) to
/// the llvm dialect; `sdx-finalize-host` completes the module.
void buildLLVMLoweringPipeline(mlir::OpPassManager &pm);

} // namespace sardonyx

#endif // SARDONYX_LIB_PIPELINES_LLVMLOWERING_H
