//===- CPUChannelsLast.td - Images with channels last ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions of narrow numbers and pools, whose images lie as [N,S...,C].
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CPU_CHANNELS_LAST
#define SARDONYX_CPU_CHANNELS_LAST

include "dialects/CPU/CPULayout.td"
include "dialects/SDX/SDXDps.td"

def CPU_ByteOrF32Shaped : TypeConstraint<
    Or<[RankedTensorOf<[I8, F32]>.predicate, MemRefOf<[I8, F32]>.predicate]>,
    "tensor or memref of i8 or f32", "::mlir::ShapedType">;

def CPU_ByteOrBf16Shaped : TypeConstraint<
    Or<[RankedTensorOf<[I8, BF16]>.predicate, MemRefOf<[I8, BF16]>.predicate]>,
    "tensor or memref of i8 or bf16", "::mlir::ShapedType">;

def CPU_NarrowShaped : TypeConstraint<
    Or<[RankedTensorOf<[I8, I16, BF16]>.predicate,
        MemRefOf<[I8, I16, BF16]>.predicate]>,
    "tensor or memref of i8, i16 or bf16", "::mlir::ShapedType">;

def CPU_SumShaped : TypeConstraint<
    Or<[RankedTensorOf<[I32, F32]>.predicate, MemRefOf<[I32, F32]>.predicate]>,
    "tensor or memref of i32 or f32", "::mlir::ShapedType">;

class CPU_ChannelsLastConvOp<string mnemonic>
    : SDX_DpsOpOf<CPU_Dialect, mnemonic, [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `,` $weights `:` type($input) `,` type($weights) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  code extraOfAll = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
    int64_t countTaps() {
      return ::mlir::ShapedType::getNumElements(getKernelShape());
    }
  }];
}

def CPU_NarrowConvOp : CPU_ChannelsLastConvOp<"narrow_conv"> {
  let summary = "Convolution of bytes or bf16 with channels last";
  let description = [{
    A cross-correlation over one to three spatial dimensions of `input`
    [N,S...,C] onto `init` [N,O...,OC]: of unsigned bytes by filters of signed
    bytes onto i32, in which sums wrap, of such bytes widened to i16, or of bf16
    by bf16 onto f32. Positions in the pads hold `padding`, which is 0 for bf16.

    A filter is K = product(kernel_shape) * C/group values in the order
    (k0, k1, ..., channel), G = 4 bytes, 2 i16 or 2 bf16 of which lie together.
    `weights` [group * No,Q,Nt*G] are the filters of each group in
    No = ceil(OC/group / Nt) panels of Nt columns, as `packing` says:
    element [g * No + p, q, G * c + j] is value k = G * q + j of filter
    p * Nt + c of group g, and zero past K or the group's filters. Q is
    ceil(K / G) or more.

    ```mlir
    %y = cpu.narrow_conv
        ins(%x, %w : tensor<?x56x56x64xi8>, tensor<2x144x128xi8>)
        outs(%zeros : tensor<?x56x56x64xi32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
         dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
         pads_end = array<i64: 1, 1>, group = 1 : i64, padding = 128 : i64,
         packing = #cpu.packing<i8, panel = 32>} -> tensor<?x56x56x64xi32>
    ```
  }];
  let arguments = (ins CPU_NarrowShaped:$input, CPU_NarrowShaped:$weights,
                       CPU_SumShaped:$init, CPU_PackingAttr:$packing,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, I64Attr:$group,
                       I64Attr:$padding);
  let extraClassDeclaration = extraOfAll # [{
    int64_t getPanelWidth() { return getPacking().getPanel(); }
    /// Channels and filters of a group; both are known.
    int64_t getGroupChannels() {
      return getInput().getType().getShape().back() / int64_t(getGroup());
    }
    int64_t getGroupFilters() {
      return getInit().getType().getShape().back() / int64_t(getGroup());
    }
    /// Values of a filter.
    int64_t getDepth() { return countTaps() * getGroupChannels(); }
  }];
}

def CPU_DepthwiseNarrowConvOp : CPU_ChannelsLastConvOp<"depthwise_narrow_conv"> {
  let summary = "Convolution of single channels with channels last";
  let description = [{
    Each channel of `input` [N,S...,C], of unsigned bytes or of bf16, is
    convolved with a filter of its own, of signed bytes or of bf16, onto `init`
    [N,O...,C] of i32 or f32. Positions in the pads hold `padding`, which is 0
    for bf16.

    A kernel has R lines of W taps, its last dimension. `weights` is
    [ceil(R / G) * W, G * C], of i8 with G = 4, of i16 with G = 2 or of bf16 with
    G = 1: element [q * W + w, G * c + j] is tap w of line G * q + j of channel
    c, and zero past the last line.

    ```mlir
    %y = cpu.depthwise_narrow_conv
        ins(%x, %w : tensor<?x56x56x144xi8>, tensor<3x576xi8>)
        outs(%zeros : tensor<?x56x56x144xi32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
         dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
         pads_end = array<i64: 1, 1>, padding = 0 : i64}
        -> tensor<?x56x56x144xi32>
    ```
  }];
  let arguments = (ins CPU_ByteOrBf16Shaped:$input, CPU_NarrowShaped:$weights,
                       CPU_SumShaped:$init,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, I64Attr:$padding);
  let extraClassDeclaration = extraOfAll # [{
    /// Lines of the kernel, and taps of a line.
    int64_t countLines() {
      return ::mlir::ShapedType::getNumElements(getKernelShape().drop_back());
    }
    int64_t getLineTaps() { return getKernelShape().back(); }
    bool isOfBytes() { return getInput().getType().getElementType().isInteger(8); }
    /// Lines whose taps lie together: those of integers in 32 bits.
    int64_t getLineGroup() {
      return isOfBytes() ? 32 / getWeights().getType().getElementTypeBitWidth()
                         : 1;
    }
  }];
}

def CPU_ChannelsLastMaxPoolOp : SDX_DpsOpOf<CPU_Dialect, "channels_last_max_pool", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Largest elements of windows with channels last";
  let description = [{
    Element (n, o..., c) of the result is the largest of `init` there and of
    input (n, o * stride + k - pad ..., c), for all k below the kernel's size
    that lie in the input; NaN if one of them is. Input [N,S...,C] and `init`
    [N,O...,C] are of f32 or of bytes, unsigned with `is_unsigned`, and each
    window sees some of the input.

    ```mlir
    %y = cpu.channels_last_max_pool ins(%x : tensor<?x112x112x64xi8>)
        outs(%lowest : tensor<?x56x56x64xi8>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
         pads_begin = array<i64: 1, 1>, is_unsigned}
        -> tensor<?x56x56x64xi8>
    ```
  }];
  let arguments = (ins CPU_ByteOrF32Shaped:$input, CPU_ByteOrF32Shaped:$init,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads_begin, UnitAttr:$is_unsigned);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
  }];
}

#endif // SARDONYX_CPU_CHANNELS_LAST
