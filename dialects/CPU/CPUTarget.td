//===- CPUTarget.td - The machine that code is for ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_TARGET
#define SARDONYX_CPU_TARGET

include "dialects/CPU/CPUBase.td"

include "dialects/SDX/SDXInterfaces.td"

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class CPU_TargetEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_F32Product : CPU_TargetEnum<"F32Product", "how f32 are multiplied", [
    I32EnumAttrCase<"Fma", 0, "fma">,
    // tdpbf16ps on f32 that are sums of three bf16, where there is enough to do.
    I32EnumAttrCase<"AmxBf16x6", 1, "amx_bf16x6">]>;

def CPU_Int8Product
    : CPU_TargetEnum<"Int8Product", "how 8-bit integers are multiplied", [
    // Products of 32-bit integers.
    I32EnumAttrCase<"Generic", 0, "generic">,
    // Products of 16-bit integers, added in pairs: vpmaddwd.
    I32EnumAttrCase<"Maddwd", 1, "maddwd">,
    // Four products of bytes, added onto 32 bits: vpdpbusd.
    I32EnumAttrCase<"Vnni", 2, "vnni">,
    // The same, and registers of 16 rows of 64 bytes: tdpbusd.
    I32EnumAttrCase<"Amx", 3, "amx">]>;

def CPU_Bf16Product
    : CPU_TargetEnum<"Bf16Product", "how bf16 are multiplied", [
    // Multiply-adds of f32.
    I32EnumAttrCase<"Generic", 0, "generic">,
    // Two products, added onto f32: vdpbf16ps.
    I32EnumAttrCase<"Dot", 1, "dot">,
    // The same, and registers of 16 rows of 32 numbers: tdpbf16ps.
    I32EnumAttrCase<"Amx", 2, "amx">]>;

def CPU_TargetTraits : I32BitEnumAttr<"TargetTraits", "what a processor does", [
    I32BitEnumAttrCaseNone<"None", "none">,
    // An instruction puts the bytes of a register in any order (x86: SSSE3).
    I32BitEnumAttrCaseBit<"ShufflesBytes", 0, "shuffles_bytes">,
    // A core reads its L3 cache so fast that f32 there come sooner in four bytes
    // than vectors of 256 bits unpack three.
    I32BitEnumAttrCaseBit<"FastL3", 1, "fast_l3">,
    // A store under a mask takes many cycles.
    I32BitEnumAttrCaseBit<"SlowMaskedStores", 2, "slow_masked_stores">,
    // Prefetches bring lines faster into the first cache than into the second.
    I32BitEnumAttrCaseBit<"FastL1Prefetch", 3, "fast_l1_prefetch">,
    // A multiply-add is one instruction, which rounds once.
    I32BitEnumAttrCaseBit<"FusedMultiplyAdd", 4, "fused_multiply_add">,
    // An instruction picks bytes of two registers in any order (x86:
    // AVX512_VBMI).
    I32BitEnumAttrCaseBit<"PermutesBytes", 5, "permutes_bytes">,
    // Instructions round f32 to integers of 32 bits, halves to even.
    I32BitEnumAttrCaseBit<"RoundsToInteger", 6, "rounds_to_integer">,
    // Instructions make one register of integers of half of their width of two,
    // with saturation (x86: packssdw, packuswb).
    I32BitEnumAttrCaseBit<"SaturatesBytes", 7, "saturates_bytes">,
    // Instructions make f32 of a register of f16.
    I32BitEnumAttrCaseBit<"ConvertsHalves", 8, "converts_halves">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
  let separator = "|";
}

def CPU_TargetAttr : AttrDef<CPU_Dialect, "Target", [
    DeclareAttrInterfaceMethods<SDX_TargetAttrInterface, ["hasAttention"]>]> {
  let mnemonic = "target";
  let summary = "The machine that code is for";
  let description = [{
    All that passes know of a processor: what LLVM is told (`triple`, `cpu`,
    `features`), and what decides which code is made. `getTargetAttr()` of
    Objects/Facts.h fills it in by the processor's name and features, never from
    the machine at hand, so that code for a processor is the same wherever it is
    made. Printed with a module, it makes the code of that module the same
    wherever compiling goes on.

    ```mlir
    module attributes {sdx.target = #cpu.target<
        triple = "x86_64-unknown-linux-gnu", cpu = "haswell",
        vector_bits = 256, l2_kib = 256, int8 = maddwd, traits = shuffles_bytes>}
    ```

    Without it passes assume what `#cpu.target<>` says.
  }];
  let parameters = (ins
    // As LLVM spells them; empty: not known.
    StringRefParameter<"", [{""}]>:$triple,
    StringRefParameter<"", [{""}]>:$cpu,
    StringRefParameter<"", [{""}]>:$features,
    // Width of the vector registers in bits: 512 (all of AVX-512), 256, 128.
    DefaultValuedParameter<"unsigned", "512">:$vector_bits,
    // How many there are; 0: 32 of 512 bits, else 16, as on x86.
    DefaultValuedParameter<"unsigned", "0">:$vector_registers,
    // Sizes of a core's caches in KiB.
    DefaultValuedParameter<"unsigned", "32">:$l1_kib,
    DefaultValuedParameter<"unsigned", "1024">:$l2_kib,
    DefaultValuedParameter<"::sardonyx::cpu::F32Product",
                           "::sardonyx::cpu::F32Product::Fma">:$f32,
    DefaultValuedParameter<"::sardonyx::cpu::Int8Product",
                           "::sardonyx::cpu::Int8Product::Generic">:$int8,
    DefaultValuedParameter<"::sardonyx::cpu::Bf16Product",
                           "::sardonyx::cpu::Bf16Product::Generic">:$bf16,
    DefaultValuedParameter<"::sardonyx::cpu::TargetTraits",
                           "::sardonyx::cpu::TargetTraits::ShufflesBytes">:$traits
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What passes assume of a module that names no machine.
    static TargetAttr getDefault(::mlir::MLIRContext *context);

    bool has(TargetTraits trait) const {
      return bitEnumContainsAll(getTraits(), trait);
    }
    /// How many f32 a vector register holds.
    int64_t getLanes() const { return getVectorBits() / 32; }
    /// How many vector registers there are.
    unsigned countVectorRegisters() const;
    int64_t getL2Bytes() const { return int64_t(getL2Kib()) * 1024; }
    /// Bytes of inputs that the first cache holds beside the weights of a tile.
    int64_t getBytesBesideTile() const;
    /// Bytes of a panel of transformed inputs that stay near while all filters
    /// are multiplied by it.
    int64_t getBytesOfPanel() const { return 768 * 1024; }
    /// Bytes of weights that a loop finds in the last cache at its next turn,
    /// and that come from there faster than they unpack; 0 for none.
    int64_t getBytesOfFastL3() const;
    /// Whether the first cache has room for lines that are fetched long before
    /// they are used.
    bool hasRoomyL1() const;

    /// The same with `product` for f32.
    TargetAttr withF32Product(F32Product product) const;
    /// The same without tile registers.
    TargetAttr withoutTiles() const;
  }];
}

#endif // SARDONYX_CPU_TARGET
