//===- HostLowering.h - What lowers the host program shares -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_HOST_HOSTLOWERING_H
#define SARDONYX_LIB_HOST_HOSTLOWERING_H

#include "dialects/SDX/SDX.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace sardonyx {

/// Of `sdx.arena` and `sdx.output_buffer`: the memory is the device's.
inline constexpr llvm::StringLiteral kOnDeviceAttr = "sdx.on_device";

/// How the function is called that runs a parallel loop's body, before the
/// body's name.
inline constexpr llvm::StringLiteral kStarterPrefix = "sdx_parallel_for_";

/// A function of the runtime, which is declared when it is asked for first.
mlir::LLVM::LLVMFuncOp declareRuntime(mlir::SymbolTable &symbols,
                                      llvm::StringRef name, mlir::Type result,
                                      llvm::ArrayRef<mlir::Type> args);

/// A buffer of `type`, which has no layout, at `address`; `sizes` are those of
/// all dimensions, in words.
mlir::Value makeBuffer(mlir::OpBuilder &b, mlir::Location loc,
                       const mlir::LLVMTypeConverter &types,
                       mlir::MemRefType type, mlir::Value address,
                       llvm::ArrayRef<mlir::Value> sizes);

/// The check that the bytes of an allocation can be counted: their number is
/// computed without a look at overflow. Null where it is constant, and in
/// kernels, whose buffers are no larger than what they read or write.
sdx::CheckOp guardAllocation(mlir::memref::AllocOp alloc);

} // namespace sardonyx

#endif // SARDONYX_LIB_HOST_HOSTLOWERING_H
