//===- Passes.td - Passes that ask the onnx library -------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BRIDGE_PASSES
#define SARDONYX_BRIDGE_PASSES

include "mlir/Pass/PassBase.td"

def OnnxExpandFunctions : Pass<"onnx-expand-functions"> {
  let summary = "Replace operators by the function bodies that ONNX defines";
  let description = [{
    ONNX defines many operators by functions of simpler ones; some of these
    depend on types and attributes. This pass puts the functions in place of the
    operators, again and again until none is left that should be expanded, and
    brings the bodies' operators to their latest forms.

    Only those named in `ops` are expanded, or, if none is named, all that have a
    function; those named in `except` never are, and with `unlowered` no op that
    the conversion to linalg takes as it is.

    ```mlir
    %y = onnx.Celu(%x) {alpha = 2.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %a = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %0 = onnx.Div(%x, %a) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = onnx.Elu(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %y = onnx.Mul(%a, %1) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let options = [
    ListOption<"ops", "ops", "std::string",
               "Operators to expand (onnx.Celu); all that have a body if empty">,
    ListOption<"except", "except", "std::string", "Operators to keep">,
    Option<"unlowered", "unlowered", "bool", "false",
           "Keep operators that a conversion takes as they are">,
    Option<"maxOps", "max-ops", "unsigned", "100000",
           "Operators that one run may expand">
  ];
  let dependentDialects = ["::sardonyx::onnx::ONNXDialect"];
}

#endif // SARDONYX_BRIDGE_PASSES
