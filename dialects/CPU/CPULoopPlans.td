//===- CPULoopPlans.td - How kernels without products are computed -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_LOOP_PLANS
#define SARDONYX_CPU_LOOP_PLANS

include "dialects/CPU/CPUBase.td"

include "mlir/IR/AttrTypeBase.td"

def CPU_LoopsAttr : AttrDef<CPU_Dialect, "Loops"> {
  let mnemonic = "loops";
  let summary = "A kernel is plain loops, one operation after the other";
  let description = [{
    Any kernel can be computed so: packed operands are unpacked, each operation
    is a loop nest over scalars, and what lies between two operations is in
    memory. That is slow, and shares no code with the other forms, so it is what
    their results are compared with. With `vectors` an operation is loops over
    vectors where its form allows it; `cpu-select-plans` gives it to kernels that
    have no form of their own.

    ```mlir
    func.func private @k0_conv(...) attributes {sdx.kernel, cpu.plan = #cpu.loops}
    func.func private @k1_gather(...)
        attributes {sdx.kernel, cpu.plan = #cpu.loops<vectors = true>}
    ```
  }];
  let parameters = (ins DefaultValuedParameter<"bool", "false">:$vectors);
  let assemblyFormat = "(`<` `vectors` `=` $vectors^ `>`)?";
}

#endif // SARDONYX_CPU_LOOP_PLANS
