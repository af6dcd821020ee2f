//===- NV.h - GPUs of NVIDIA's ----------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The nv dialect: the devices that the NVPTX target knows. Everything about it
// is included from here.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DIALECTS_NV_NV_H
#define SARDONYX_DIALECTS_NV_NV_H

#include "dialects/SDX/SDX.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "dialects/NV/NVDialect.h.inc"
#include "dialects/NV/NVEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/NV/NVAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/NV/NVOps.h.inc"

namespace sardonyx::nv {

/// Names of this dialect's discardable attributes.
inline constexpr llvm::StringLiteral kPlanAttr = "nv.plan";
inline constexpr llvm::StringLiteral kStepAttr = "nv.step";
inline constexpr llvm::StringLiteral kThreadsAttr = "nv.threads";
inline constexpr llvm::StringLiteral kBlocksAttr = "nv.blocks";
/// So many neighbouring blocks are a cluster; there are whole ones only.
inline constexpr llvm::StringLiteral kClusterAttr = "nv.cluster";
inline constexpr llvm::StringLiteral kFailureRecordAttr = "nv.failure_record";
inline constexpr llvm::StringLiteral kMessagesAttr = "nv.messages";
inline constexpr llvm::StringLiteral kNodeAttr = "nv.node";
inline constexpr llvm::StringLiteral kSharedAttr = "nv.shared";
/// Of a module of kernels: each of them waits for what comes before it itself.
inline constexpr llvm::StringLiteral kWaitsAttr = "nv.waits";
/// Of a product of f32: its operands may be rounded to tf32.
inline constexpr llvm::StringLiteral kTF32Attr = "nv.tf32";
/// The same: each operand may be taken as the sum of two bf16.
inline constexpr llvm::StringLiteral kBF16x3Attr = "nv.bf16x3";

/// Whether tensor cores may compute a product of f32.
inline bool mayRound(mlir::Operation *product) {
  return product->hasAttr(kTF32Attr) || product->hasAttr(kBF16x3Attr);
}

/// The device that a name as "sm_90a" stands for, all that is known of it
/// filled in; null for what is no such name, and for devices before sm_80.
TargetAttr findDevice(mlir::MLIRContext *context, llvm::StringRef name);

/// The device that the code of `op` is for; null where none is said, or where
/// it is another target's.
TargetAttr getTarget(mlir::Operation *op);
/// The same; where it is not said, the least that there is code for.
TargetAttr getTargetOrDefault(mlir::Operation *op);

} // namespace sardonyx::nv

#endif // SARDONYX_DIALECTS_NV_NV_H
