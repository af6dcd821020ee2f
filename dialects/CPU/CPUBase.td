//===- CPUBase.td - The cpu dialect ------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_BASE
#define SARDONYX_CPU_BASE

include "mlir/IR/OpBase.td"

def CPU_Dialect : Dialect {
  let name = "cpu";
  let cppNamespace = "::sardonyx::cpu";
  let summary = "Processors, and dense operations on operands packed for them";
  let description = [{
    What the CPU target knows of a machine, `#cpu.target`, and what its layout
    passes make of dense operations: products and convolutions whose operands lie
    as the register-tiled micro-kernels read them, and the packings that put them
    there.

    Discardable attributes of this dialect:
    - on a kernel: `cpu.plan`, a plan such as `#cpu.conv_plan<im2col>`: how it is
      computed.
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect"];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttrs();
  }];
}

#endif // SARDONYX_CPU_BASE
