//===- SDXOps.td - Kernel-level operations -----------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dense operations that no linalg operation is, and what a host program needs
// to call kernels. docs: Rationale.md in this folder.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_OPS
#define SARDONYX_SDX_OPS

include "dialects/SDX/SDXAttention.td"
include "dialects/SDX/SDXAttrs.td"
include "dialects/SDX/SDXBase.td"
include "dialects/SDX/SDXDps.td"

include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"

class SDX_Op<string mnemonic, list<Trait> traits = []>
    : Op<SDX_Dialect, mnemonic, traits>;

class SDX_DpsOp<string mnemonic, list<Trait> traits = []>
    : SDX_DpsOpOf<SDX_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Dense operations
//===----------------------------------------------------------------------===//

def SDX_MatmulOp : SDX_DpsOp<"matmul", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Matrix product";
  let description = [{
    `init[b, m, n] += sum_k lhs[b, m, k] * rhs[b, k, n]`

    `lhs` is [M,K] or [B,M,K]; `rhs` is [K,N], shared by all batches, or
    [B,K,N]; with `transposed` it is [N,K] or [B,N,K]; `init` is [M,N] or
    [B,M,N]. Operands are of any element types: floats are extended to the type
    of `init`, integers as well, by zeros with `lhs_unsigned` or `rhs_unsigned`
    and by their sign without. Sums of integers wrap.

    How the operands lie in memory, and by which algorithm and instructions the
    product is computed, is the target's decision.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x3072xf32>)
        outs(%zero : tensor<?x3072xf32>) -> tensor<?x3072xf32>
    %s = sdx.matmul
        ins(%u, %v : tensor<?x768xi8>, tensor<3072x768xi8>)
        outs(%zeros : tensor<?x3072xi32>) {lhs_unsigned, transposed}
        -> tensor<?x3072xi32>
    ```
  }];
  let arguments = (ins SDX_NumberShaped:$lhs, SDX_NumberShaped:$rhs,
                       SDX_NumberShaped:$init, UnitAttr:$transposed,
                       UnitAttr:$lhs_unsigned, UnitAttr:$rhs_unsigned);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $lhs `,` $rhs `:` type($lhs) `,` type($rhs) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                                 "::mlir::Value":$init,
                                 CArg<"bool", "false">:$transposed)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    bool isBatched() { return getLhs().getType().getRank() == 3; }
    bool isRhsBatched() { return getRhs().getType().getRank() == 3; }
    /// The positions of N and K among the right-hand side's dimensions.
    int64_t getColumnDim() {
      return getRhs().getType().getRank() - (getTransposed() ? 2 : 1);
    }
    int64_t getDepthDim() {
      return getRhs().getType().getRank() - (getTransposed() ? 1 : 2);
    }
  }];
}

def SDX_DequantMatmulOp : SDX_DpsOp<"dequant_matmul", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Matrix product with weights quantised by blocks";
  let description = [{
    `init[m, n] += sum_k lhs[m, k] * scales[n, k floordiv block] *
    (weights[n, k] - zero_points[n, k floordiv block])`

    `lhs` is [M,K], of f32, f16 or bf16, and `init` [M,N] of f32. The weights are unsigned integers of
    `bits` = 2, 4 or 8 bits, those of a block of `block` values along K beside
    each other in bytes, the first in the lowest bits: `weights` is
    [N,ceil(K/block),block*bits/8] of i8. `scales` is [N,ceil(K/block)] of
    floats. `zero_points` is of the same shape and of floats, or of integers of
    `bits` bits that lie in bytes like the weights', [N,ceil(blocks*bits/8)] of
    i8; without it zero points are 2^(bits-1).

    With `element` the weights are floats of that type, f4E2M1FN, f8E4M3FN or
    f8E5M2, in the place of integers, and have no zero points. f8E4M3FN is taken
    to have no NaN: its code counts as 480. Where they have eight bits `lhs` may
    be such floats, too, as i8; those of f8E4M3FN have a NaN.

    ```mlir
    %t = sdx.dequant_matmul
        ins(%a, %w, %x : tensor<?x768xf32>, tensor<3072x24x16xi8>,
            tensor<3072x24xf32>)
        outs(%zero : tensor<?x3072xf32>) {bits = 4 : i64, block = 32 : i64}
        -> tensor<?x3072xf32>
    ```
  }];
  let arguments = (ins SDX_NumberShaped:$lhs, SDX_NumberShaped:$weights,
                       SDX_NumberShaped:$scales,
                       Optional<SDX_OptionalNumberShaped>:$zero_points,
                       SDX_NumberShaped:$init, I64Attr:$bits, I64Attr:$block,
                       OptionalAttr<TypeAttr>:$element);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $lhs `,` $weights `,` $scales (`,` $zero_points^)? `:` type($lhs)
    `,` type($weights) `,` type($scales) (`,` type($zero_points)^)? `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs,
                                 "::mlir::Value":$weights,
                                 "::mlir::Value":$scales,
                                 "::mlir::Value":$zeroPoints,
                                 "::mlir::Value":$init, "int64_t":$bits,
                                 "int64_t":$block,
                                 CArg<"::mlir::Type", "{}">:$element)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getColumns() { return getWeights().getType().getDimSize(0); }
    int64_t getDepth() { return getLhs().getType().getDimSize(1); }
  }];
}

def SDX_ConvOp : SDX_DpsOp<"conv", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "isContraction", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Convolution";
  let description = [{
    A cross-correlation over one to three spatial dimensions. `input` is
    [N,C,S...], `weights` is [OC,C/group,k...], `init` is [N,OC,O...]. Positions
    in the pads hold `padding`, zero by itself. The product is added onto `init`.
    Operands are of any element types: floats are extended to the type of `init`,
    integers as well, by zeros with `input_unsigned` or `weights_unsigned` and by
    their sign without. Sums of integers wrap.

    `exact` forbids algorithms that compute sums from other products, and round
    more: where all numbers are whole and their sums exact in f32, or where much
    of a sum cancels.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<?x64x56x56xf32>, tensor<64x64x3x3xf32>)
        outs(%zero : tensor<?x64x56x56xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
         pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
         group = 1 : i64} -> tensor<?x64x56x56xf32>
    %z = sdx.conv ins(%u, %v : tensor<?x64x56x56xi8>, tensor<64x64x3x3xi8>)
        outs(%zeros : tensor<?x64x56x56xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
         pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
         group = 1 : i64, input_unsigned, padding = 128 : i64}
        -> tensor<?x64x56x56xi32>
    ```
  }];
  let arguments = (ins SDX_NumberShaped:$input, SDX_NumberShaped:$weights,
                       SDX_NumberShaped:$init,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, I64Attr:$group,
                       UnitAttr:$exact, UnitAttr:$input_unsigned,
                       UnitAttr:$weights_unsigned,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$padding);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `,` $weights `:` type($input) `,` type($weights) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::mlir::Value":$weights,
                                 "::mlir::Value":$init,
                                 "::llvm::ArrayRef<int64_t>":$strides,
                                 "::llvm::ArrayRef<int64_t>":$dilations,
                                 "::llvm::ArrayRef<int64_t>":$padsBegin,
                                 "::llvm::ArrayRef<int64_t>":$padsEnd,
                                 "int64_t":$group,
                                 CArg<"bool", "false">:$exact)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
    /// The kernel's sizes, all known.
    ::llvm::ArrayRef<int64_t> getKernelShape() {
      return getWeights().getType().getShape().drop_front(2);
    }
    /// Whether both operands are of 8-bit integers and sums of 32-bit ones.
    bool isOfBytes();
  }];
}

def SDX_MaxPoolOp : SDX_DpsOp<"max_pool", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Largest elements of windows";
  let description = [{
    Element (n, c, o...) of the result is the largest of `init` there and of
    input (n, c, o * stride + k - pad ...), for all k below the kernel's size
    that lie in the input. NaN if one of them is. Input and `init` are
    [N,C,H,W] of f32 or of bytes, unsigned with `is_unsigned`; each window sees
    some of the input.

    ```mlir
    %y = sdx.max_pool ins(%x : tensor<?x64x112x112xf32>)
        outs(%lowest : tensor<?x64x56x56xf32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
         pads_begin = array<i64: 1, 1>} -> tensor<?x64x56x56xf32>
    ```
  }];
  let arguments = (ins SDX_NumberShaped:$input, SDX_NumberShaped:$init,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads_begin, UnitAttr:$is_unsigned);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::mlir::Value":$init,
                                 "::llvm::ArrayRef<int64_t>":$kernelShape,
                                 "::llvm::ArrayRef<int64_t>":$strides,
                                 "::llvm::ArrayRef<int64_t>":$padsBegin)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
  }];
}

def SDX_AveragePoolOp : SDX_DpsOp<"average_pool", [
    DeclareOpInterfaceMethods<SDX_DenseOpInterface, ["isRoot", "getKernelName", "describeForm", "countFlops"]>]> {
  let summary = "Means of windows";
  let description = [{
    Element (n, c, o...) of the result is the mean of input
    (n, c, o * stride + k - pad ...) for all k below the kernel's size that lie
    in the input; with `count_include_pad`, the sum of these divided by the
    kernel's number of elements. Input and result are [N,C,H,W] of f32, and each
    window sees some of the input. `init` is not read.

    ```mlir
    %y = sdx.average_pool ins(%x : tensor<?x64x35x35xf32>)
        outs(%e : tensor<?x64x35x35xf32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
         pads_begin = array<i64: 1, 1>} -> tensor<?x64x35x35xf32>
    ```
  }];
  let arguments = (ins SDX_NumberShaped:$input, SDX_NumberShaped:$init,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads_begin,
                       UnitAttr:$count_include_pad);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict (`->` type($result)^)?
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input,
                                 "::mlir::Value":$init,
                                 "::llvm::ArrayRef<int64_t>":$kernelShape,
                                 "::llvm::ArrayRef<int64_t>":$strides,
                                 "::llvm::ArrayRef<int64_t>":$padsBegin,
                                 "bool":$countIncludePad)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
  }];
}

//===----------------------------------------------------------------------===//
// The host program
//===----------------------------------------------------------------------===//

def SDX_CallOp : SDX_DpsOp<"call", [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call a kernel";
  let description = [{
    Runs a kernel (a function with `sdx.kernel`) on `ins` and writes all of its
    results over `outs`. It reads those whose positions `updates` lists: their
    results are what they held, but for elements that the kernel changes. It
    does not read the others. The kernel's arguments are memrefs of identity
    layout for `ins` that are tensors or memrefs, scalars for the others, then
    one memref for each of `outs`.

    ```mlir
    %r = sdx.call @k3(%a, %n : tensor<?x768xf32>, index)
        outs(%e : tensor<?x768xf32>) -> tensor<?x768xf32>
    %s = sdx.call @k4(%i : tensor<3xi64>) outs(%r : tensor<?x768xf32>)
        {updates = array<i64: 0>} -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$ins,
                       Variadic<AnyShaped>:$outs,
                       OptionalAttr<DenseI64ArrayAttr>:$updates);
  let results = (outs Variadic<AnyRankedTensor>:$result_tensors);
  let assemblyFormat = [{
    $callee `(` ($ins^ `:` type($ins))? `)`
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict (`->` type($result_tensors)^)?
  }];
  let builders = [OpBuilder<(ins "::llvm::StringRef":$callee,
                                 "::mlir::ValueRange":$inputs,
                                 "::mlir::ValueRange":$outputs,
                                 CArg<"::llvm::ArrayRef<int64_t>",
                                      "{}">:$updates)>];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
    /// Whether the kernel reads what `outs[index]` holds.
    bool updatesOut(int64_t index) {
      auto updates = getUpdates();
      return updates && ::llvm::is_contained(*updates, index);
    }
  }];
}

def SDX_RuntimeCallOp : SDX_DpsOp<"runtime_call", [AttrSizedOperandSegments]> {
  let summary = "Call a function of the runtime";
  let description = [{
    Has the runtime's function `callee` (RuntimeABI.h) compute `outs`, which it
    does not read, from `ins`: tensors, and scalars of i64 or index. It may fail
    the run, with a sentence that names the node of its location. What it gives for equal
    operands is equal, and unused results need no call, unless it is `stateful`.
    Handles (of strings and lists) are those of the run that calls: no call
    moves to `@init`.

    ```mlir
    %n = sdx.runtime_call "sdx_rt_list_length" (%list : tensor<i64>)
        outs(%e : tensor<i64>) -> tensor<i64>
    ```
  }];
  let arguments = (ins StrAttr:$callee,
                       Variadic<AnyTypeOf<[AnyShaped, I64, Index]>>:$ins,
                       Variadic<AnyShaped>:$outs, UnitAttr:$stateful);
  let results = (outs Variadic<AnyRankedTensor>:$result_tensors);
  let assemblyFormat = [{
    (`stateful` $stateful^)? $callee `(` ($ins^ `:` type($ins))? `)`
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    (`->` type($result_tensors)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
  }];
}

/// What a failed check means to the caller. The numbers are those of
/// RuntimeABI.h.
def SDX_FailureKind : I64EnumAttr<"FailureKind", "what a failure means", [
    I64EnumAttrCase<"Failed", 0, "failed">,
    I64EnumAttrCase<"InvalidArgument", 1, "invalid_argument">,
    I64EnumAttrCase<"Unsupported", 2, "unsupported">,
    I64EnumAttrCase<"OtherRank", 3, "other_rank">]> {
  let cppNamespace = "::sardonyx::sdx";
}

def SDX_ThreadCountOp : SDX_Op<"thread_count", [Pure]> {
  let summary = "How many threads the run may use";
  let description = [{
    At least one. For loops whose iterations have a beginning of their own, so
    that there should be no more of them than there are threads.

    ```mlir
    %n = sdx.thread_count : index
    ```
  }];
  let results = (outs Index:$count);
  let assemblyFormat = "attr-dict `:` type($count)";
}

def SDX_CheckOp : SDX_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "Fail the run with a sentence unless a condition holds";
  let description = [{
    `{0}` to `{3}` in the sentence stand for the values (at most four).

    ```mlir
    sdx.check %same, "node 'add' (Add): sizes {0} and {1} cannot be broadcast"
        (%m, %n)
    sdx.check %off, "node 'd' (Dropout): training mode is not supported"
        as unsupported
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message,
                       Variadic<Index>:$values,
                       DefaultValuedAttr<SDX_FailureKind,
                           "::sardonyx::sdx::FailureKind::Failed">:$kind);
  let assemblyFormat = [{
    $condition `,` $message (`(` $values^ `)`)? (`as` $kind^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$condition,
                                 "::mlir::StringAttr":$message)>];
  let extraClassDeclaration = [{
    /// So many values can be named in a sentence.
    static constexpr unsigned kMaxValues = 4;
  }];
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 1;
}

def SDX_OutputBufferOp : SDX_Op<"output_buffer", [MemoryEffects<[MemWrite]>]> {
  let summary = "The memory of one result of a run";
  let description = [{
    Memory for result `index` of the enclosing host function: the caller's
    buffer, or new memory that the caller gets. `sizes` are those of the
    dynamic dimensions.

    ```mlir
    %out = sdx.output_buffer 0 (%n) : memref<?x768xf32>
    ```
  }];
  let arguments = (ins I64Attr:$index, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$memory);
  let assemblyFormat = "$index `(` $sizes `)` attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def SDX_ArenaOp : SDX_Op<"arena", [Pure]> {
  let summary = "The planned memory of a run";
  let description = [{
    One block of bytes, aligned to 64, for all buffers of a memory space whose
    size and lifetime are known when compiling. Without one it is the host's
    memory.

    ```mlir
    %arena = sdx.arena : memref<1048576xi8>
    %other = sdx.arena : memref<65536xi8, #gpu.address_space<global>>
    ```
  }];
  let results = (outs AnyStaticShapeMemRef:$memory);
  let assemblyFormat = "attr-dict `:` type($memory)";
  let hasVerifier = 1;
}

def SDX_LaunchOp : SDX_Op<"launch", [AttrSizedOperandSegments,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Start a kernel on the device";
  let description = [{
    Has the device run `kernel`, one of those that the module's images have, on
    a grid of `blocks` (x, y, z; none if one of them is 0) of `threads` (x, y, z)
    threads and `shared` bytes of shared memory for each block, which comes to
    what the kernel has declared. What a run starts on its device happens in the
    order in which it is started; nobody waits here. The kernel's parameters are
    the addresses of the first elements of memrefs in device memory, and the
    scalars as they are. Before these come tensor maps, which describe memory to
    the device's own copies: vectors of the words that RuntimeABI.h tells.

    It stands in functions with `sdx.kernel`, which the host program calls: such
    a function starts one or several kernels.

    ```mlir
    sdx.launch "k3_0" blocks(%n, %c1, %c1) threads [256, 1, 1]
        (%a, %size : memref<?xf32, #gpu.address_space<global>>, index)
    sdx.launch "k4" blocks(%m, %n, %c1) threads [128, 1, 1] shared 98304
        (%a, %b, %c : ...)
    ```
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<Index>:$blocks,
                       Variadic<AnyType>:$args, DenseI64ArrayAttr:$threads,
                       DefaultValuedAttr<I64Attr, "0">:$shared);
  let assemblyFormat = [{
    $kernel `blocks` `(` $blocks `)` `threads` $threads (`shared` $shared^)?
    `(` ($args^ `:` type($args))? `)` attr-dict
  }];
  let extraClassDeclaration = [{
    /// Words of a tensor map (SDX_RT_MAP_WORDS).
    static constexpr int64_t kMapWords = 16;
    /// How many of the arguments are tensor maps.
    int64_t countMaps();
  }];
  let hasVerifier = 1;
}

def SDX_FailureRecordOp : SDX_Op<"failure_record", [Pure]> {
  let summary = "Where kernels on the device tell that a check failed";
  let description = [{
    Six words in device memory, which belong to the run: whether a check has
    failed, the number of its sentence among the messages of the module's images,
    and the four values that the sentence names. The first kernel that fails
    writes them; the host looks there when it waits for the device.

    ```mlir
    %record = sdx.failure_record : memref<6xi64, #gpu.address_space<global>>
    ```
  }];
  let results = (outs AnyStaticShapeMemRef:$record);
  let assemblyFormat = "attr-dict `:` type($record)";
  let extraClassDeclaration = [{
    /// Words of a record.
    static constexpr int64_t kWords = 6;
  }];
  let hasVerifier = 1;
}

def SDX_ClockOp : SDX_Op<"clock", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The time, in nanoseconds of a clock that never goes back";
  let description = [{
    ```mlir
    %begin = sdx.clock : i64
    ```
  }];
  let results = (outs I64:$time);
  let assemblyFormat = "attr-dict `:` type($time)";
}

def SDX_RecordOp : SDX_Op<"record", [MemoryEffects<[MemWrite]>]> {
  let summary = "Record that a step of the host program is done";
  let description = [{
    Step `site`, which began at `begin` and did `flops` floating-point
    operations on operands of `bytes` together, ends here. What a site is stands
    in the module's `sdx.profile`.

    ```mlir
    sdx.record 3 from %begin flops %f bytes %b
    ```
  }];
  let arguments = (ins I64Attr:$site, I64:$begin, I64:$flops, I64:$bytes);
  let assemblyFormat = [{
    $site `from` $begin `flops` $flops `bytes` $bytes attr-dict
  }];
}

def SDX_ObserveOp : SDX_Op<"observe", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Add a value's numbers to what is seen of a tensor";
  let description = [{
    Adds the floats of `value` to what the run keeps of the tensor of number
    `site`, which stands in the module's `sdx.observations`: of `kinds` (the
    range, moments, a histogram of their upper bits, those of channels along
    `axis`), or, with `gram`, the matrix that `value` is to a sum of matrices.
    The value goes on as if nobody saw it.

    On a buffer in a kernel it may be a tile: the first `extent[1]` numbers of
    each of the first `extent[0]` rows.

    ```mlir
    sdx.observe %t site 3 <range|bits> : tensor<1x64x56x56xf32>
    sdx.observe %t site 4 <channels> axis 1 : tensor<1x64x56x56xf32>
    sdx.observe %tile[%rows, %count] site 3 <range|bits> : memref<6x32xf32>
    ```
  }];
  let arguments = (ins AnyShaped:$value, Variadic<Index>:$extent,
                       I64Attr:$site, SDX_ObservationKindsAttr:$kinds,
                       OptionalAttr<I64Attr>:$axis);
  let assemblyFormat = [{
    $value (`[` $extent^ `]`)? `site` $site $kinds (`axis` $axis^)? attr-dict
    `:` type($value)
  }];
  let extraClassDeclaration = [{
    /// Whether it is the same whatever order the numbers have.
    bool isUnordered();
  }];
  let hasVerifier = 1;
}

#endif // SARDONYX_SDX_OPS
