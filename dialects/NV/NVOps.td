//===- NVOps.td - All of the nv dialect --------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NV_OPS
#define SARDONYX_NV_OPS

include "dialects/NV/NVPlan.td"
include "dialects/NV/NVTarget.td"

include "mlir/Interfaces/SideEffectInterfaces.td"

def NV_SharedMemoryOp : Op<NV_Dialect, "shared_memory"> {
  let summary = "Shared memory of a block";
  let description = [{
    Bytes that all threads of the block see, aligned to 128, and that nobody else
    has: each operation has its own. It stands in a loop whose iterations are
    blocks (`nv.threads`).

    ```mlir
    %bytes = nv.shared_memory : memref<65536xi8, #gpu.address_space<workgroup>>
    ```
  }];
  let results = (outs AnyStaticShapeMemRef:$bytes);
  let assemblyFormat = "attr-dict `:` type($bytes)";
  let hasVerifier = 1;
}

#endif // SARDONYX_NV_OPS
