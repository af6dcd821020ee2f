//===- Passes.td - Passes that run code -------------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SESSION_PASSES
#define SARDONYX_SESSION_PASSES

include "mlir/Pass/PassBase.td"

def OnnxMaterializeConstants
    : Pass<"onnx-materialize-constants", "::mlir::ModuleOp"> {
  let summary = "Compute what follows from constants";
  let description = [{
    Compiles the operators that have nothing but constants to work on, runs them,
    and puts constants in their place. DequantizeLinear stays, since its
    operands are smaller than what it makes, and so does what is much larger than
    the constants that it is made of (Expand, ConstantOfShape).

    ```mlir
    %w = onnx.Constant() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %1 = onnx.Mul(%w, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = onnx.Add(%x, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // becomes
    %1 = onnx.Constant() {value = dense<[1.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %2 = onnx.Add(%x, %1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

#endif // SARDONYX_SESSION_PASSES
