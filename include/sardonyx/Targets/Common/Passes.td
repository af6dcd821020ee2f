//===- Passes.td - Targets' common passes --------------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What looks at code that a target has made, whichever it is.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_COMMON_PASSES
#define SARDONYX_TARGETS_COMMON_PASSES

include "mlir/Pass/PassBase.td"

def SDXVerifyIndices : Pass<"sdx-verify-indices", "::mlir::ModuleOp"> {
  let summary = "Tell which accesses no check or loop bound keeps in bounds";
  let description = [{
    For each load and store of kernels and of the host program looks for a proof
    that its lanes lie in the memref: from bounds of loops, masks, clamps,
    conditions, and `sdx.check`. A kernel is looked at with the sizes that the
    host program passes, once for each combination. Anything without a proof is
    a remark: a missing check, or an index that only data bounds.

    ```mlir
    %v = memref.load %m[%i] : memref<?xf32>
    // gives, if %i is the counter of a loop up to another buffer's size,
    remark: nothing keeps this load within 'memref<?xf32>': the index of
    dimension 0 may be too large
    ```
  }];
  let options = [
    Option<"fail", "fail", "bool", "false",
           "Accesses without a proof are errors">
  ];
}

def SDXCheckBounds : Pass<"sdx-check-bounds", "::mlir::func::FuncOp"> {
  let summary = "Check each index before memory is accessed there";
  let description = [{
    A debugging option. Before each load and store, scalar or vector, of a
    kernel or of the host program stands a check that all lanes which the mask
    lets through lie in the memref; the access is made only if they do. Views,
    copies and the sizes that a kernel's arguments promise are checked as well.
    A check that fails ends the run with a sentence that names the node.

    ```mlir
    %v = memref.load %m[%i] : memref<?xf32>
    // becomes
    %n = memref.dim %m, %c0 : memref<?xf32>
    %ok = arith.cmpi ult, %i, %n : index
    sdx.check %ok, "node 'y': reads outside of a buffer of ?xf32 (...)"
    %v = scf.if %ok -> (f32) {
      %0 = memref.load %m[%i] : memref<?xf32>
      scf.yield %0 : f32
    } else {
      scf.yield %zero : f32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::sardonyx::sdx::SDXDialect"
  ];
}

def SDXVerifyCodegen : Pass<"sdx-verify-codegen", "::mlir::func::FuncOp"> {
  let summary = "Check that a function is ready for the llvm dialect";
  let description = [{
    The contract of the code generators: no tensors, no linalg or sdx
    operation, no parallel loop that reduces and no allocation in an innermost
    loop may be left. Anything found is an error with its location. A parallel
    loop may lie in another: `sdx-lower-host-parallel` makes it sequential.

    ```mlir
    %0 = tensor.empty() : tensor<4xf32>
    // gives
    error: 'tensor.empty' op still works on tensors after code generation
    ```
  }];
}

#endif // SARDONYX_TARGETS_COMMON_PASSES
