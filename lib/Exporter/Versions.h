//===- Versions.h - The oldest version of an operator -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_EXPORTER_VERSIONS_H
#define SARDONYX_LIB_EXPORTER_VERSIONS_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"

#include <onnx/onnx_pb.h>

namespace sardonyx::exporter {

/// Oldest version of the operator, down to 17, that means the same by `node`
/// with values of these types (null for absent ones). Later versions often add
/// types only, and other programs lag behind the newest operator sets.
int64_t oldestVersion(const ::onnx::NodeProto &node,
                      llvm::ArrayRef<mlir::Type> inputs,
                      llvm::ArrayRef<mlir::Type> outputs);

/// IR version that came with each opset of the main domain since 9.
int64_t irVersionOf(int64_t opset);
/// IR version that introduced a data type.
int64_t irVersionOfType(int dataType);

} // namespace sardonyx::exporter

#endif // SARDONYX_LIB_EXPORTER_VERSIONS_H
