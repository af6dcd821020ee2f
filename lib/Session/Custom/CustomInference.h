//===- CustomInference.h - Custom operators while compiling -----*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_SESSION_CUSTOM_CUSTOMINFERENCE_H
#define SARDONYX_LIB_SESSION_CUSTOM_CUSTOMINFERENCE_H

#include "dialects/ONNX/ONNX.h"
#include "lib/Session/Custom/CustomMlir.h"
#include "mlir/IR/OwningOpRef.h"
#include "sardonyx/Model/Artifact.h"
#include "sardonyx/Session/CustomOps.h"

namespace sardonyx {

/// What the compiler asks about `onnx.Custom`, for one compilation.
class CustomInference : public onnx::CustomOpsDialectInterface {
public:
  CustomInference(mlir::Dialect *dialect, std::shared_ptr<const CustomOps> ops);

  /// Gives the context's onnx dialect one; the context owns it.
  static CustomInference *attach(mlir::MLIRContext &context,
                                 std::shared_ptr<const CustomOps> ops);

  onnx::CustomImplementation find(mlir::Operation *op) const override;
  llvm::LogicalResult inferResultTypes(mlir::Operation *op,
                                       llvm::SmallVectorImpl<mlir::Type> &types,
                                       std::string &error) const override;
  llvm::FailureOr<int64_t> addNode(mlir::Operation *op,
                                   std::string &error) override;

  const std::vector<CustomCall> &calls() const { return nodes; }

private:
  const CustomOp *findCall(onnx::CustomOp op) const;

  std::shared_ptr<const CustomOps> ops;
  CustomMlir bodies;
  std::vector<CustomCall> nodes;
};

} // namespace sardonyx

#endif // SARDONYX_LIB_SESSION_CUSTOM_CUSTOMINFERENCE_H
