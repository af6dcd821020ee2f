//===- NVTarget.td - The device that code is for -----------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_NV_TARGET
#define SARDONYX_NV_TARGET

include "dialects/NV/NVBase.td"
include "dialects/SDX/SDXInterfaces.td"

include "mlir/IR/AttrTypeBase.td"

def NV_TargetAttr : AttrDef<NV_Dialect, "Target", [
    DeclareAttrInterfaceMethods<SDX_TargetAttrInterface,
                                ["getFusionLimits", "getMemorySpace",
                                 "hasAttention"]>]> {
  let mnemonic = "target";
  let summary = "The device that code is for";
  let description = [{
    All that passes know of a GPU. `sm` is its compute capability times ten,
    `feature` the letter of instructions that only this capability has ("a" of
    sm_90a, where the tensor cores take operands from shared memory). What is 0
    follows from `sm` by the table of NVTarget.cpp; `getTarget` fills all of it
    in, so that a printed module says what its code was made for.

    ```mlir
    module attributes {sdx.target = #nv.target<sm = 80>}
    module attributes {sdx.target = #nv.target<
        sm = 90, feature = "a", ptx = 80, shared_bytes = 232448,
        multiprocessors = 132, l2_mib = 50>}
    ```
  }];
  let parameters = (ins
    "unsigned":$sm,
    StringRefParameter<"", [{""}]>:$feature,
    // The version of PTX times ten: the lowest with the instructions, since an
    // older driver refuses a newer one.
    DefaultValuedParameter<"unsigned", "0">:$ptx,
    // 32-bit registers of a multiprocessor.
    DefaultValuedParameter<"unsigned", "0">:$registers,
    // Bytes of shared memory that a block can have.
    DefaultValuedParameter<"unsigned", "0">:$shared_bytes,
    DefaultValuedParameter<"unsigned", "0">:$multiprocessors,
    DefaultValuedParameter<"unsigned", "0">:$l2_mib
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The device of `sm`, "sm_90a" being {90, "a"}, all known of it filled in.
    static TargetAttr getKnown(::mlir::MLIRContext *context, unsigned sm,
                               ::llvm::StringRef feature);

    /// What LLVM calls it: "sm_90a".
    std::string getChip() const;
    unsigned getPtxVersion() const;
    unsigned countRegisters() const;
    unsigned getSharedBytesOfBlock() const;
    unsigned countMultiprocessors() const;
    unsigned getL2MiB() const;
    /// Whether products of f16, bf16, tf32 and bytes by mma.sync are there.
    bool hasTensorCores() const { return getSm() >= 80; }
    /// Whether a kernel may begin before the one before it has ended, and wait
    /// for that itself (griddepcontrol).
    bool hasEarlyStarts() const { return getSm() >= 90; }
    /// Whether some blocks run at the same time and read each other's shared
    /// memory (clusters).
    bool hasClusters() const { return getSm() >= 90; }
    /// Whether warpgroups multiply what lies in shared memory (wgmma).
    bool hasWgmma() const { return getSm() == 90 && getFeature() == "a"; }
  }];
}

#endif // SARDONYX_NV_TARGET
