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

def CPU_RowsPlanAttr : AttrDef<CPU_Dialect, "RowsPlan"> {
  let mnemonic = "rows_plan";
  let summary = "How an elementwise or row kernel is computed";
  let description = [{
    The operations of a kernel share one iteration space, whose dimensions count
    from 0 on after neighbours that all accesses walk in step have become one.

    - `lane` lies along vectors of `lanes` elements, `unroll` of which the loop
      along it computes at a time. Without it (-1) code is scalar.
    - `transposed`: loads that are contiguous along this dimension, not along
      `lane`, are squares of `lanes` x `lanes` transposed in registers; or
      stores or loads are contiguous along this dimension, of at most 8
      positions, and vectors of all of these are interleaved; -1: none.
    - `chunk`: so many positions along `lane` are a task for a thread, where
      `lane` is no dimension of a row; 0: all of them.
    - `prefetch`: the first loop over a row fetches what the next row reads and
      writes into the L1 cache; for rows whose elements lie along `lane`.
    - `rows`: so many neighbouring rows are computed side by side, so that the
      sums of one are added up while those of another wait.

    ```mlir
    func.func private @k0_softmax(...) attributes {
        sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1>}
    ```
  }];
  let parameters = (ins "int64_t":$lanes, "int64_t":$unroll,
                        DefaultValuedParameter<"int64_t", "-1">:$lane,
                        DefaultValuedParameter<"int64_t", "-1">:$transposed,
                        DefaultValuedParameter<"int64_t", "0">:$chunk,
                        DefaultValuedParameter<"bool", "false">:$prefetch,
                        DefaultValuedParameter<"int64_t", "1">:$rows);
  let assemblyFormat = "`<` struct(params) `>`";
}

def CPU_PoolPlanAttr : AttrDef<CPU_Dialect, "PoolPlan"> {
  let mnemonic = "pool_plan";
  let summary = "How the kernel of a maximum pooling is computed";
  let description = [{
    `columns` of the input are compared at a time, `width` results are a vector,
    and `rows` rows of results are a task for a thread.

    ```mlir
    func.func private @k0_max_pool(...) attributes {sdx.kernel,
        cpu.plan = #cpu.pool_plan<columns = 32, width = 16, rows = 56>}
    ```
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$width, "int64_t":$rows);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // SARDONYX_CPU_LOOP_PLANS
