//===- NVBase.td - The nv dialect --------------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NV_BASE
#define SARDONYX_NV_BASE

include "mlir/IR/OpBase.td"

def NV_Dialect : Dialect {
  let name = "nv";
  let cppNamespace = "::sardonyx::nv";
  let summary = "GPUs of NVIDIA's";
  let description = [{
    What the NVPTX target knows of a device, `#nv.target`.

    Discardable attributes of this dialect:
    - on a loop whose iterations are threads of a kernel: `nv.step`, a word for
      what it computes, which the kernel's name ends in;
    - on such a loop whose iterations are blocks: `nv.threads`, how many threads
      a block has, which all run the loop's body, and `nv.blocks`, how many
      blocks a multiprocessor is to have at once, which limits registers, and
      `nv.cluster`, how many blocks that follow each other see each other's
      shared memory; each is 1 if it isn't there;
    - on an argument of a kernel: `nv.failure_record`, the memory where a check
      that fails says so;
    - on a module of kernels: `nv.messages`, the sentences of their checks, an
      array of {text, kind};
    - on a kernel: `nv.node`, the nodes that it computes, and `nv.shared`, the
      bytes of shared memory that it is started with.
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"
  ];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttrs();
  }];
}

#endif // SARDONYX_NV_BASE
