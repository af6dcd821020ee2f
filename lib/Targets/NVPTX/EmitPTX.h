//===- EmitPTX.h - Images of kernels ----------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_EMITPTX_H
#define SARDONYX_TARGETS_NVPTX_EMITPTX_H

#include "sardonyx/Model/Image.h"

#include "mlir/IR/BuiltinOps.h"

namespace sardonyx::nv {

/// Takes the modules of kernels (gpu.module, in the dialects llvm and nvvm) out
/// of `module` and makes an image of each: PTX for the module's device.
mlir::LogicalResult emitImages(mlir::ModuleOp module,
                               llvm::SmallVectorImpl<Image> &images);

} // namespace sardonyx::nv

#endif // SARDONYX_TARGETS_NVPTX_EMITPTX_H
