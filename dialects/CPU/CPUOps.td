//===- CPUOps.td - Dense operations on packed operands -----------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the CPU target makes of the neutral operations of the sdx dialect.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_OPS
#define SARDONYX_CPU_OPS

include "dialects/CPU/CPUChannelsLast.td"
include "dialects/CPU/CPULayout.td"
include "dialects/SDX/SDXDps.td"

class CPU_DpsOp<string mnemonic, list<Trait> traits = []>
    : SDX_DpsOpOf<CPU_Dialect, mnemonic, traits>;

def CPU_ProductShaped : TypeConstraint<
    Or<[RankedTensorOf<[F32, F16, BF16, I8, I16, I32, I64]>.predicate,
        MemRefOf<[F32, F16, BF16, I8, I16, I32, I64]>.predicate]>,
    "tensor or memref of f32, f16, bf16, i8, i16, i32 or i64", "::mlir::ShapedType">;

def CPU_ConvWeights : TypeConstraint<
    Or<[RankedTensorOf<[F32, BF16]>.predicate,
        MemRefOf<[F32, BF16]>.predicate]>,
    "tensor or memref of f32 or bf16", "::mlir::ShapedType">;

def CPU_PackedMatmulOp : CPU_DpsOp<"packed_matmul", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Matrix product with a packed right-hand side";
  let description = [{
    `init[b, m, n] += sum_k lhs[b, m, k] * rhs[b, n floordiv Nt, k, n mod Nt]`

    `lhs` is [M,K] or [B,M,K]. `rhs` is packed in panels of Nt columns as
    `packing` says: [No,K,Nt], shared by all batches, or [B,No,K,Nt]. `init` is
    [M,N] or [B,M,N] with N <= No * Nt; panel columns past N are zero. The
    product is added onto `init`. By the elements of `packing`:

    - `f32`: all three are of f32.
    - `i8`: `lhs` is of unsigned and `rhs` of signed 8-bit integers and `init` of
      i32, in which sums wrap; `i16`: the same integers, widened to 16 bits;
      `f16`: `rhs` is of f16, `lhs` and `init` of f32;
      `bf16`: `lhs` and `rhs` are of bf16 and `init` of f32, and subnormal numbers
      may count as zero. G = 4 bytes, 2 i16 or 2 bf16 lie together, as the
      instructions for such products want them: `rhs` is
      [No,ceil(K/G),Nt*G], and its element [p, q, G * c + j] is that of
      k = G * q + j and column p * Nt + c, zero for k past K.
    - `u2`, `u4`, `u8`: `rhs` is of unsigned integers u, whose blocks of `block`
      values of k share a scale and a zero point:
      `scales[p, k floordiv block, 0, c] * (u - scales[p, k floordiv block, 1, c])`,
      where `scales` is [No,ceil(K/block),2,Nt] and K is static; or it is
      [No,ceil(K/block),1,Nt], and zero points are the middle of the integers,
      2^(bits-1). Scales are of f32, f16 or bf16. With `whole_zeros` zero points are whole numbers from 0 to 2^bits - 1.
      Bytes of four values of k lie together: byte
      [p, q, 4 * c + j] of `rhs` [No,ceil(K/4),4*Nt/P] holds the P = 8 / bits
      integers of k = 4 * q + j, number i, from the lowest bits on, that of column
      c + Nt/P * i. Columns past N have the scale zero.
    - `f4`, `f8e4m3`, `f8e5m2`: the same with floats of 4 or 8 bits in the place
      of u less its zero point; `scales` is [No,ceil(K/block),1,Nt].
    - `w24`, `w21`: integers are signed: `rhs` is [No,K,Nt*3] of i8, or
      [No,ceil(K/3),Nt] of i64, as `cpu.pack_rhs` makes it, `scales` is
      [No,1,1,Nt], and `block` is K.

    `strassen` = d says that the right-hand side, of f32, may go by Strassen's
    algorithm: K is a multiple of d, and in each range of d values of k those of
    its halves that lie d/2 apart have about the same size, as have the columns
    that lie (No floordiv 2) * Nt apart. Rows are not known.

    ```mlir
    %r = cpu.packed_matmul
        ins(%a, %b : tensor<?x768xf32>, tensor<24x768x32xf32>)
        outs(%zero : tensor<?x768xf32>) {packing = #cpu.packing<f32, panel = 32>}
        -> tensor<?x768xf32>
    %s = cpu.packed_matmul
        ins(%u, %v : tensor<?x768xi8>, tensor<24x192x128xi8>)
        outs(%zeros : tensor<?x768xi32>) {packing = #cpu.packing<i8, panel = 32>}
        -> tensor<?x768xi32>
    %t = cpu.packed_matmul
        ins(%a, %w, %x : tensor<?x768xf32>, tensor<24x192x64xi8>,
            tensor<24x24x2x32xf32>)
        outs(%zero : tensor<?x768xf32>)
        {block = 32 : i64, whole_zeros, packing = #cpu.packing<u4, panel = 32>}
        -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins CPU_ProductShaped:$lhs, CPU_ProductShaped:$rhs,
                       Optional<SDX_OptionalNumberShaped>:$scales, CPU_ProductShaped:$init,
                       CPU_PackingAttr:$packing,
                       OptionalAttr<I64Attr>:$block, UnitAttr:$whole_zeros,
                       OptionalAttr<I64Attr>:$strassen);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $lhs `,` $rhs (`,` $scales^)? `:` type($lhs) `,` type($rhs)
    (`,` type($scales)^)? `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                                 "::mlir::Value":$init,
                                 "::sardonyx::cpu::PackingAttr":$packing)>,
                  OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                                 "::mlir::Value":$scales, "int64_t":$block,
                                 "::mlir::Value":$init,
                                 "::sardonyx::cpu::PackingAttr":$packing,
                                 CArg<"bool", "false">:$wholeZeros)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// Values of k that are multiplied at once.
    int64_t getDepthGroup() { return getPacking().getDepthGroup(); }
    /// Columns in a panel of the right-hand side.
    int64_t getPanelWidth() { return getPacking().getPanel(); }
    /// Whether zero points are given with the scales.
    bool hasZeroPoints() { return getScales().getType().getDimSize(2) == 2; }
    /// Whether three numbers of the right-hand side are in eight bytes.
    bool isW21() {
      return getPacking().getElement() == PackedElement::W21;
    }
    /// Whether it is of f32 that were made shorter.
    bool isCompressed() { return getPacking().isCompressed(); }
    bool isBatched() { return getLhs().getType().getRank() == 3; }
    bool isRhsBatched() { return getRhs().getType().getRank() == 4; }
  }];
}

def CPU_PackRhsOp : CPU_DpsOp<"pack_rhs", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isPacking"]>]> {
  let summary = "Pack a right-hand side into panels of columns";
  let description = [{
    [K,N] or [B,K,N] (with `transposed`: [N,K] or [B,N,K]) to [No,K,Nt] or
    [B,No,K,Nt], No = ceil(N / Nt), in panels as `packing` says, of `f32`, `w24`
    or `w21`. Columns past N are zero. `init` is overwritten.

    Signed bytes become `i8` or `i16`, [No,ceil(K/G),Nt*G] or
    [B,No,ceil(K/G),Nt*G] (see `cpu.packed_matmul`). Values of k past K are zero,
    columns past N hold what may be any numbers.

    [C,K,H,N] (with `transposed`: [C,N,H,K]), the heads of an attention beside
    each other in each row, is a batch of C * H matrices: their rows are not
    gathered first.

    With `scales` [No,1,1,Nt], which `w24` and `w21` have, numbers become the
    integers nearest to number / scale. Those of 24 bits lie in three bytes, from
    the lowest on: `init` is [No,K,Nt*3] of i8. Of 21 bits, where `init` is
    [No,ceil(K/3),Nt] of i64, an element holds three: u in its bits 0 to 20, w in 22 to 42, v in 43 to 63; bit
    21 is zero. With Nt = 4 Q, element [p, q, Q * a + i] has of panel p

    - u and v: k = 3 q + a floordiv 2 of the columns (a mod 2) 2 Q + 2 i and the
      next,
    - w: k = 3 q + 2 of the column (a floordiv 2) 2 Q + 2 i + a mod 2,

    so that shifts of whole registers bring each number to the top of a lane.
    What is below it there, the upper bits of another number, belongs to it: v is
    nearest to number / scale - upper(w), and w to number / scale - upper(u),
    where upper(x) is x modulo 2^21 with the lower 10 and 11 bits cut off, over
    2^21 and 2^22. So a zero becomes one only nearly.

    ```mlir
    %p = cpu.pack_rhs ins(%b : tensor<768x3072xf32>)
        outs(%e : tensor<96x768x32xf32>) {packing = #cpu.packing<f32, panel = 32>}
        -> tensor<96x768x32xf32>
    %q = cpu.pack_rhs
        ins(%b, %s : tensor<768x3072xf32>, tensor<96x1x1x32xf32>)
        outs(%f : tensor<96x768x96xi8>) {packing = #cpu.packing<w24, panel = 32>}
        -> tensor<96x768x96xi8>
    %h = cpu.pack_rhs transposed ins(%keys : tensor<2x100x12x64xf32>)
        outs(%i : tensor<24x4x64x32xf32>)
        {packing = #cpu.packing<f32, panel = 32>} -> tensor<24x4x64x32xf32>
    %r = cpu.pack_rhs
        ins(%b, %s : tensor<768x3072xf32>, tensor<96x1x1x32xf32>)
        outs(%g : tensor<96x256x32xi64>) {packing = #cpu.packing<w21, panel = 32>}
        -> tensor<96x256x32xi64>
    %i = cpu.pack_rhs transposed ins(%bytes : tensor<12x?x64xi8>)
        outs(%j : tensor<12x?x16x128xi8>)
        {packing = #cpu.packing<i8, panel = 32>} -> tensor<12x?x16x128xi8>
    ```
  }];
  let arguments = (ins CPU_ProductShaped:$source,
                       Optional<SDX_OptionalF32Shaped>:$scales,
                       CPU_ProductShaped:$init, UnitAttr:$transposed,
                       CPU_PackingAttr:$packing);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    (`transposed` $transposed^)? `ins` `(` $source (`,` $scales^)? `:`
    type($source) (`,` type($scales)^)? `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$source,
                                 "::mlir::Value":$scales,
                                 "::mlir::Value":$init,
                                 "bool":$transposed,
                                 "::sardonyx::cpu::PackingAttr":$packing)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// Whether three of its numbers become eight bytes.
    bool makesW21() {
      return getPacking().getElement() == PackedElement::W21;
    }
    /// Whether it packs signed bytes.
    bool isOfBytes() { return getPacking().isOfBytes(); }
    /// Columns in a panel.
    int64_t getPanelWidth() { return getPacking().getPanel(); }
    /// Whether the rows of a batch's matrices lie beside each other.
    bool isInterleaved() { return getSource().getType().getRank() == 4; }
    /// The positions of N and K among the source's dimensions.
    int64_t getColumnDim() { return getTransposed() ? getRowDim() : getLastDim(); }
    int64_t getDepthDim() { return getTransposed() ? getLastDim() : getRowDim(); }
    int64_t getLastDim() { return getSource().getType().getRank() - 1; }
    int64_t getRowDim() { return isInterleaved() ? 1 : getLastDim() - 1; }
  }];
}

def CPU_ConvOp : CPU_DpsOp<"conv", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Convolution with packed weights";
  let description = [{
    A cross-correlation over one to three spatial dimensions. `input` is
    [N,C,S...], `weights` is packed as `filters` says, [G,Ob,K,Rt] (see
    `cpu.pack_conv_weights`) with K = C/G * product(kernel_shape) in the order
    (channel, k0, k1, ...).
    `init` is [N,OC,O...] with OC/G <= Ob * Rt. Positions in the pads are
    implicit zeros. The product is added onto `init`.

    `exact` forbids algorithms that compute sums from other products, and round
    more: where all numbers are whole and their sums exact in f32, or where much
    of a sum cancels.

    Filters that were transformed for Winograd's algorithm F(m x m, 3 x 3) are
    multiplied by it: K counts (m + 2)^2 values a channel, channels innermost.
    Kernels are 3x3 then, without dilations and groups, and both strides 1 or
    both 2.

    Weights of `bf16x2` are [G,Ob,S,2*32*32] of bf16: numbers are sums of two (see
    `cpu.pack_conv_weights`).

    ```mlir
    %y = cpu.conv ins(%x, %w : tensor<?x64x56x56xf32>, tensor<1x8x576x8xf32>)
        outs(%zero : tensor<?x64x56x56xf32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
         dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
         pads_end = array<i64: 1, 1>, group = 1 : i64,
         filters = #cpu.filters<f32, rows = 8>} -> tensor<?x64x56x56xf32>
    ```
  }];
  let arguments = (ins SDX_F32Shaped:$input, CPU_ConvWeights:$weights,
                       SDX_F32Shaped:$init, CPU_FiltersAttr:$filters,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, I64Attr:$group,
                       UnitAttr:$exact);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `,` $weights `:` type($input) `,` type($weights) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::mlir::Value":$weights,
                                 "::mlir::Value":$init,
                                 "::sardonyx::cpu::FiltersAttr":$filters,
                                 "::llvm::ArrayRef<int64_t>":$kernelShape,
                                 "::llvm::ArrayRef<int64_t>":$strides,
                                 "::llvm::ArrayRef<int64_t>":$dilations,
                                 "::llvm::ArrayRef<int64_t>":$padsBegin,
                                 "::llvm::ArrayRef<int64_t>":$padsEnd,
                                 "int64_t":$group,
                                 CArg<"bool", "false">:$exact)>];
  let extraClassDeclaration = [{
    /// Winograd's algorithm, if it goes by that; null otherwise.
    const ::sardonyx::cpu::Winograd *getAlgorithm() {
      return getFilters().getAlgorithm();
    }
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
    /// Output channels in a block of the packed weights.
    int64_t getBlockRows() { return getFilters().getRows(); }
    /// Whether weights are sums of bf16.
    bool hasSplitWeights() { return getFilters().isSplit(); }
  }];
}

def CPU_PackConvWeightsOp : CPU_DpsOp<"pack_conv_weights", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["replacesWeights"]>]> {
  let summary = "Pack convolution weights into blocks of output channels";
  let description = [{
    [OC,C/G,k...] to [G,Ob,K,Rt]: element (g, ob, k, r) is that of output
    channel g * OC/G + ob * Rt + r, and zero past the group's channels. K runs
    over (channel, k0, k1, ...). `init` is overwritten, and says by its shape how
    many groups there are.

    `filters` says how many are in a block, and whether they are transformed for
    Winograd's algorithm.

    Where they become `bf16x2`, `init` is [G,Ob,S,2*32*32] of bf16: a block has 32 filters, and
    step s of a filter the 32 channels from s / t * 32 on, zeros past the last,
    of value s % t of the kernel, which has t. First come all that is
    next to the numbers of a block and step, [filter, channel], then what is
    next to the rest.

    ```mlir
    %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>)
        outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>}
        -> tensor<1x8x576x8xf32>
    ```
  }];
  let arguments = (ins SDX_F32Shaped:$source, CPU_ConvWeights:$init,
                       CPU_FiltersAttr:$filters);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $source `:` type($source) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$source,
                                 "::mlir::Value":$init,
                                 "::sardonyx::cpu::FiltersAttr":$filters)>];
  let extraClassDeclaration = [{
    /// How many groups there are; dynamic where that is not known.
    int64_t getGroup() { return getInit().getType().getDimSize(0); }
    /// Winograd's algorithm, if it goes by that; null otherwise.
    const ::sardonyx::cpu::Winograd *getAlgorithm() {
      return getFilters().getAlgorithm();
    }
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getBlockRows() { return getFilters().getRows(); }
    /// Whether weights become sums of bf16.
    bool splits() { return getFilters().isSplit(); }
  }];
}

#endif // SARDONYX_CPU_OPS
