//===- RuntimeCalls.h - What the runtime computes ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_RUNTIMECALLS_H
#define SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_RUNTIMECALLS_H

#include "Support/TensorBuilder.h"

namespace sardonyx {

/// Has the runtime's function `name` fill new tensors of the types of `outs`,
/// which are destinations. A call that is stateful may give something else each
/// time.
llvm::SmallVector<mlir::Value>
callRuntime(TensorBuilder &b, llvm::StringRef name, mlir::ValueRange ins,
            mlir::ValueRange outs, bool isStateful = false);
/// The same for one result.
mlir::Value callRuntime(TensorBuilder &b, llvm::StringRef name,
                        mlir::ValueRange ins,
                        llvm::ArrayRef<mlir::OpFoldResult> sizes,
                        mlir::Type elementType, bool isStateful = false);
/// An i64 operand.
mlir::Value asNumber(TensorBuilder &b, int64_t value);

} // namespace sardonyx

#endif // SARDONYX_LIB_CONVERSION_ONNXTOLINALG_SUPPORT_RUNTIMECALLS_H
