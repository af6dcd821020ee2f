//===- Passes.td - Passes about the machine ----------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_OBJECTS_PASSES
#define SARDONYX_OBJECTS_PASSES

include "mlir/Pass/PassBase.td"

def SDXAttachTarget : Pass<"sdx-attach-target", "::mlir::ModuleOp"> {
  let summary = "Say which machine a module's code is for";
  let description = [{
    Sets `sdx.target` of the module, all of which passes know of the machine, in
    the place of what it says. `onnx-opt --target=NAME` runs it first.

    ```mlir
    module { ... }
    // becomes, with cpu=haswell,
    module attributes {sdx.target = #cpu.target<cpu = "haswell",
                                                vector_bits = 256, ...>} { ... }
    ```
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "",
           "The processor, as LLVM spells it (default: this machine's)">,
    Option<"triple", "triple", "std::string", "",
           "The machine, as aarch64-linux-gnu (default: this one)">,
    Option<"features", "features", "std::string", "",
           "What the processor has beside: +avx2,-avx512f">,
    Option<"byDefault", "default", "bool", "false",
           "Only where the module names no machine, and then #cpu.target<>: no "
           "processor, but what the passes assume of one">
  ];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect"];
}

def SDXLowerVectors : Pass<"sdx-lower-vectors", "::mlir::ModuleOp"> {
  let summary = "Write operations on vectors by those that LLVM has";
  let description = [{
    What has no counterpart in LLVM's IR (transfers, contractions, transposes,
    masks of a size) becomes operations that have one. The patterns are those of
    upstream's `convert-vector-to-llvm`, once for the whole module: they are
    many, and making them takes longer than most functions.

    ```mlir
    %m = vector.create_mask %n : vector<8xi1>
    // becomes
    %b = vector.broadcast %n32 : i32 to vector<8xi32>
    %m = arith.cmpi sgt, %b, %lanes : vector<8xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::ub::UBDialect",
                           "::mlir::vector::VectorDialect"];
}

def SDXConvertToLLVM : Pass<"sdx-convert-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert functions on memrefs and vectors to the llvm dialect";
  let description = [{
    The patterns of upstream's eight conversions (math, vector, index, ub,
    arith, memref, func, cf) in one: each operation is visited once, and no
    casts are left between them. Vectors are lowered before (`sdx-lower-vectors`).

    ```mlir
    func.func @f(%x: index) -> index {
      %y = arith.addi %x, %x : index
      return %y : index
    }
    // becomes
    llvm.func @f(%x: i64) -> i64 {
      %y = llvm.add %x, %x : i64
      llvm.return %y : i64
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // SARDONYX_OBJECTS_PASSES
