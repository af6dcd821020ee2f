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

#endif // SARDONYX_OBJECTS_PASSES
