//===- NVPlan.td - How kernels are computed ---------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NV_PLAN
#define SARDONYX_NV_PLAN

include "dialects/NV/NVBase.td"

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def NV_ProductForm : I32EnumAttr<"ProductForm", "what multiplies", [
    // Multiply-adds.
    I32EnumAttrCase<"Fma", 0, "fma">,
    // mma.sync: the tensor cores, a warp at a time.
    I32EnumAttrCase<"Mma", 1, "mma">,
    // wgmma: the same, a warpgroup at a time, of what lies in shared memory.
    I32EnumAttrCase<"Wgmma", 2, "wgmma">]> {
  let cppNamespace = "::sardonyx::nv";
  let genSpecializedAttr = 0;
}

def NV_MatmulPlanAttr : AttrDef<NV_Dialect, "MatmulPlan"> {
  let mnemonic = "matmul_plan";
  let summary = "The tiles of a matrix product";
  let description = [{
    A block computes `tile_m` x `tile_n` sums, `tile_k` products further at each
    step; a thread (`fma`), a warp (`mma`) or a warpgroup of four warps (`wgmma`)
    of it has `part_m` x `part_n` of them. `stages` pairs of tiles of the
    operands are in shared memory; with `wgmma` a further warpgroup has them
    copied there. With `split` > 1 so many blocks share the products along K of a tile, and their
    sums are added up, in this order, by a kernel of their own.

    `cluster_m` x `cluster_n` blocks are a cluster: they run at the same time and
    use each other's shared memory. With `wgmma` they are two whose tiles lie below
    or beside each other. Both need the same tile of the right-hand side, or of the
    left-hand side: each has one half of it copied for both (multicast). With `mma`
    `cluster_n` blocks have the sums of whole rows, those of all `split` parts. They
    compute what reduces the rows, and read each other's sums where these lie.

    ```mlir
    #nv.matmul_plan<form = mma, tile_m = 128, tile_n = 128,
        tile_k = 64, part_m = 64, part_n = 64, stages = 3>
    #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 256,
        tile_k = 64, part_m = 64, part_n = 256, stages = 4, cluster_m = 2>
    ```
  }];
  let parameters = (ins
    EnumParameter<NV_ProductForm>:$form,
    "int64_t":$tile_m, "int64_t":$tile_n, "int64_t":$tile_k,
    "int64_t":$part_m, "int64_t":$part_n, "int64_t":$stages,
    DefaultValuedParameter<"int64_t", "1">:$split,
    DefaultValuedParameter<"int64_t", "1">:$cluster_m,
    DefaultValuedParameter<"int64_t", "1">:$cluster_n
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Blocks of a cluster.
    int64_t countCluster() const { return getClusterM() * getClusterN(); }
    /// Whether the blocks of a cluster have the sums of whole rows.
    bool hasWholeRows() const { return isMma() && countCluster() > 1; }
    /// Whether they have tiles copied for each other.
    bool sharesTiles() const { return isWgmma() && countCluster() > 1; }
    bool isMma() const { return getForm() == ProductForm::Mma; }
    bool isWgmma() const { return getForm() == ProductForm::Wgmma; }
    /// Threads of a block that multiply.
    int64_t countWorkers() const {
      return getTileM() / getPartM() * (getTileN() / getPartN()) *
             (isWgmma() ? kWarpgroup : isMma() ? 32 : 1);
    }
    /// Warpgroups of a block that multiply.
    int64_t countGroups() const { return countWorkers() / kWarpgroup; }
    /// Threads of a block.
    int64_t countThreads() const {
      return countWorkers() + (isWgmma() ? kWarpgroup : 0);
    }
    static constexpr int64_t kWarpgroup = 128;
    /// Blocks of a cluster that each device of capability 9.0 or more runs.
    static constexpr int64_t kMostOfCluster = 8;
  }];
}

def NV_FewRowsPlanAttr : AttrDef<NV_Dialect, "FewRowsPlan"> {
  let mnemonic = "few_rows_plan";
  let summary = "How a product of few rows reads its right-hand side";
  let description = [{
    A block has columns of the result, all rows of them. `lanes` threads of a
    warp, 4 to 32, read 16 bytes each of a row of the right-hand side, the others
    those of other rows.

    ```mlir
    #nv.few_rows_plan<lanes = 8>
    ```
  }];
  let parameters = (ins "int64_t":$lanes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NV_AttentionPlanAttr : AttrDef<NV_Dialect, "AttentionPlan"> {
  let mnemonic = "attention_plan";
  let summary = "The tiles of attention";
  let description = [{
    A block has so many `queries` and goes over the keys by so many at a time, by
    multiply-adds (`fma`) or by the tensor cores (`mma`). With `split` > 1 so many
    blocks share the keys, and a kernel of its own adds up what they have; 0
    stands for as many as leave no multiprocessor without work, which the host
    counts where sizes are open.

    ```mlir
    #nv.attention_plan<form = mma, queries = 64, keys = 64>
    ```
  }];
  let parameters = (ins
    EnumParameter<NV_ProductForm>:$form,
    "int64_t":$queries, "int64_t":$keys,
    DefaultValuedParameter<"int64_t", "1">:$split
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool isFma() const { return getForm() == ProductForm::Fma; }
    bool isMma() const { return getForm() == ProductForm::Mma; }
    /// The most blocks that share keys.
    static constexpr int64_t kMostSplits = 32;
  }];
}

def NV_LoopsAttr : AttrDef<NV_Dialect, "Loops"> {
  let mnemonic = "loops";
  let summary = "A kernel is plain loops, one operation after the other";
  let description = [{
    Any kernel can be computed so: a thread has an element of a result, and what
    lies between two operations is in memory. That is slow, and shares no code
    with the other forms, so it is what their results are compared with.

    ```mlir
    func.func private @k0_matmul(...) attributes {sdx.kernel, nv.plan = #nv.loops}
    ```
  }];
}

#endif // SARDONYX_NV_PLAN
