//===- SDXAttrs.td - Attributes of the sdx dialect ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_ATTRS
#define SARDONYX_SDX_ATTRS

include "dialects/SDX/SDXBase.td"

include "mlir/Dialect/SCF/IR/DeviceMappingInterface.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def SDX_TaskAttr
    : AttrDef<SDX_Dialect, "Task",
              [DeclareAttrInterfaceMethods<DeviceMappingAttrInterface>]> {
  let mnemonic = "task";
  let summary = "The mapping of a loop that is a kernel";
  let description = [{
    The iterations of an `scf.forall` that is mapped to tasks are programs on
    elements that run in any order, and the loop is a kernel. Without a mapping
    upstream's patterns replace a loop of one iteration by its body, which would
    then compute on the host.

    ```mlir
    %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<8xf32>) {
      ...
    } {mapping = [#sdx.task]}
    ```
  }];
}

def SDX_ObservationKinds
    : I32BitEnum<"ObservationKinds", "what is kept of a value", [
        I32BitEnumCaseBit<"Range", 0, "range">,
        I32BitEnumCaseBit<"Moments", 1, "moments">,
        I32BitEnumCaseBit<"Bits", 2, "bits">,
        I32BitEnumCaseBit<"Channels", 3, "channels">,
        I32BitEnumCaseBit<"Gram", 4, "gram">]> {
  let cppNamespace = "::sardonyx::sdx";
  let separator = "|";
}

def SDX_ObservationKindsAttr
    : EnumAttr<SDX_Dialect, SDX_ObservationKinds, "kinds"> {
  let summary = "What is kept of a value";
  let description = [{
    The numbers of the bits are those of `sardonyx/Runtime/Observation.h`.

    ```mlir
    #sdx.kinds<range|bits>
    ```
  }];
  let assemblyFormat = "`<` $value `>`";
}

#endif // SARDONYX_SDX_ATTRS
