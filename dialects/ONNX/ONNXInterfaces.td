//===- ONNXInterfaces.td - What every generated op can tell ---------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_ONNX_INTERFACES
#define SARDONYX_ONNX_INTERFACES

include "mlir/IR/OpBase.td"

def ONNXOpInterface : OpInterface<"ONNXOpInterface"> {
  let cppNamespace = "::sardonyx::onnx";
  let description = [{An op that stands for an operator with a schema.}];
  let methods = [
    StaticInterfaceMethod<[{The schema that the op was generated from.}],
      "const ::sardonyx::onnx::OpSchema &", "getSchema">,
    InterfaceMethod<[{
        Infers the result types, one for each result that is present. By default
        this asks the `OnnxInferenceDialectInterface`; without one the types are
        those that the op has. Fails with a diagnostic if the op breaks a rule.
      }],
      "::llvm::LogicalResult", "inferOnnxTypes",
      (ins "::llvm::SmallVectorImpl<::mlir::Type> &":$types), [{}], [{
        return ::sardonyx::onnx::inferTypesFromSchema($_op.getOperation(), types);
      }]>,
  ];
  let verify = [{ return ::sardonyx::onnx::verifySchema($_op); }];
}

#endif // SARDONYX_ONNX_INTERFACES
