//===- CPULayout.td - How packed operands lie in memory ----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_LAYOUT
#define SARDONYX_CPU_LAYOUT

include "dialects/CPU/CPUBase.td"

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def CPU_PackedElement
    : I32EnumAttr<"PackedElement", "an element of a packed matrix", [
    I32EnumAttrCase<"F32", 0, "f32">,
    // Two values along K beside each other.
    I32EnumAttrCase<"BF16", 1, "bf16">,
    // Signed, four values along K beside each other.
    I32EnumAttrCase<"I8", 2, "i8">,
    // Unsigned, 4, 2 and 1 of them in a byte, with scales for blocks along K.
    I32EnumAttrCase<"U2", 3, "u2">,
    I32EnumAttrCase<"U4", 4, "u4">,
    I32EnumAttrCase<"U8", 5, "u8">,
    // f32 that were compressed to signed integers, with a scale for each column:
    // of 24 bits in three bytes, and of 21 bits, three in eight bytes.
    I32EnumAttrCase<"W24", 6, "w24">,
    I32EnumAttrCase<"W21", 7, "w21">,
    // Signed bytes widened to 16 bits, two values along K beside each other.
    I32EnumAttrCase<"I16", 8, "i16">,
    // Floats of 4 and 8 bits, 2 and 1 of them in a byte, with scales for blocks
    // along K: f4E2M1FN, f8E4M3FN (without NaN) and f8E5M2.
    I32EnumAttrCase<"F4", 9, "f4">,
    I32EnumAttrCase<"F8E4M3", 10, "f8e4m3">,
    I32EnumAttrCase<"F8E5M2", 11, "f8e5m2">,
    // Multiplied by f32, as such.
    I32EnumAttrCase<"F16", 12, "f16">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_PackingAttr : AttrDef<CPU_Dialect, "Packing"> {
  let mnemonic = "packing";
  let summary = "How a right-hand side lies in panels of columns";
  let description = [{
    The elements of a packed right-hand side and the columns of a panel. The
    shape of the matrix follows from it, K and N (see `cpu.packed_matmul`).

    ```mlir
    #cpu.packing<f32, panel = 32>   // [No,K,32] of f32
    #cpu.packing<i8, panel = 32>    // [No,ceil(K/4),32*4] of i8
    #cpu.packing<i16, panel = 32>   // [No,ceil(K/2),32*2] of i16
    #cpu.packing<f16, panel = 32>   // [No,K,32] of f16
    #cpu.packing<u4, panel = 32>    // [No,ceil(K/4),4*32/2] of i8
    #cpu.packing<w24, panel = 32>   // [No,K,32*3] of i8
    #cpu.packing<w21, panel = 32>   // [No,ceil(K/3),32] of i64
    ```
  }];
  let parameters = (ins EnumParameter<CPU_PackedElement>:$element,
                        "int64_t":$panel);
  let assemblyFormat = "`<` $element `,` `panel` `=` $panel `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// f32 in panels of `panel` columns.
    static PackingAttr getF32(::mlir::MLIRContext *context, int64_t panel) {
      return get(context, PackedElement::F32, panel);
    }
    /// Values along K that lie beside each other, as the instructions of their
    /// products want them.
    int64_t getDepthGroup() const;
    /// The extent of the matrix along `depth` values of K.
    int64_t getPackedDepth(int64_t depth) const;
    /// Elements of a panel at one place along K.
    int64_t getRowSize() const;
    /// The type that they have in memory.
    ::mlir::Type getStoredType() const;
    /// Whether they are signed bytes, as such or widened.
    bool isOfBytes() const;
    /// Whether they are of a few bits, with scales for blocks along K.
    bool isQuantized() const;
    /// The type of those that are floats; null where they are integers.
    ::mlir::FloatType getSmallFloat() const;
    /// Whether they are f32 that were made shorter.
    bool isCompressed() const;
    /// Bits of an integer or float of a few bits.
    int64_t getBits() const;
  }];
}

def CPU_FilterElement
    : I32EnumAttr<"FilterElement", "an element of packed filters", [
    I32EnumAttrCase<"F32", 0, "f32">,
    // The sum of two bf16.
    I32EnumAttrCase<"BF16x2", 1, "bf16x2">]> {
  let cppNamespace = "::sardonyx::cpu";
  let genSpecializedAttr = 0;
}

def CPU_FiltersAttr : AttrDef<CPU_Dialect, "Filters"> {
  let mnemonic = "filters";
  let summary = "How the filters of a convolution lie in blocks";
  let description = [{
    The elements of packed filters and how many filters are in a block. With
    `winograd` = m they were transformed for Winograd's algorithm
    F(m x m, 3 x 3), m = 2 or 4, and strides of `stride`, 1 or 2. Whether the
    filters of a block lie in the lanes of vectors, and positions in the rows of a
    register tile, or the other way round, is `in_lanes`.

    ```mlir
    #cpu.filters<f32, rows = 8>                     // [G,Ob,K,8] of f32
    #cpu.filters<f32, rows = 32, in_lanes = true>   // [G,Ob,K,32] of f32
    #cpu.filters<f32, rows = 8, winograd = 4>       // [1,Ob,36*C,8] of f32
    #cpu.filters<bf16x2, rows = 32>                 // [G,Ob,S,2*32*32] of bf16
    ```
  }];
  let parameters = (ins
    EnumParameter<CPU_FilterElement>:$element, "int64_t":$rows,
    DefaultValuedParameter<"bool", "false">:$in_lanes,
    DefaultValuedParameter<"int64_t", "0">:$winograd,
    DefaultValuedParameter<"int64_t", "1">:$stride);
  let assemblyFormat = [{
    `<` $element `,` `rows` `=` $rows
    (`,` struct($in_lanes, $winograd, $stride)^)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static FiltersAttr getF32(::mlir::MLIRContext *context, int64_t rows) {
      return get(context, FilterElement::F32, rows, false, 0, 1);
    }
    /// Winograd's algorithm, if they were transformed for it; null otherwise.
    const ::sardonyx::cpu::Winograd *getAlgorithm() const;
    bool isSplit() const { return getElement() == FilterElement::BF16x2; }
  }];
}

#endif // SARDONYX_CPU_LAYOUT
