//===- Passes.td - Passes that leave a dialect for others --*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CONVERSION_PASSES
#define SARDONYX_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertONNXToLinalg : Pass<"convert-onnx-to-linalg", "mlir::ModuleOp"> {
  let summary = "Lower the onnx dialect to linalg on tensors";
  let description = [{
    Every onnx operation becomes linalg, tensor, arith, math and scf operations
    on builtin tensors of known rank. Booleans are stored as i8 (0 or 1),
    unsigned integers as signless ones. The functions' arguments and results
    keep their attributes and get `onnx.type`, the type they had.

    Integer tensors of at most 16 elements that are computed from shapes and
    constants become scalar arithmetic on `tensor.from_elements`. Sizes that may
    disagree at run time are guarded by `sdx.check`.

    What has no lowering is reported in one error that names every such
    operation, its node, and the reason.

    ```mlir
    %r = "onnx.Relu"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    ```
    becomes
    ```mlir
    %d = tensor.dim %x, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%d) : tensor<?x4xf32>
    %r = linalg.generic {...} ins(%x) outs(%e) {
      %less = arith.cmpf olt, %in, %zero : f32
      %max = arith.select %less, %zero, %in : f32
      linalg.yield %max : f32
    } -> tensor<?x4xf32>
    ```
  }];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::func::FuncDialect", "mlir::linalg::LinalgDialect",
    "mlir::math::MathDialect", "mlir::scf::SCFDialect",
    "mlir::tensor::TensorDialect", "sardonyx::sdx::SDXDialect"
  ];
}

#endif // SARDONYX_CONVERSION_PASSES
