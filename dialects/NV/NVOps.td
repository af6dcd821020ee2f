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

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
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

def NV_AttentionTensor : TypeConstraint<
    RankedTensorOf<[F16, BF16, F32]>.predicate,
    "tensor of f16, bf16 or f32", "::mlir::RankedTensorType">;

def NV_AttentionOp : Op<NV_Dialect, "attention", [
    Pure, DestinationStyleOpInterface,
    SingleBlockImplicitTerminator<"::sardonyx::nv::YieldOp">,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                              ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<SDX_DenseOpInterface,
                              ["isRoot", "isContraction", "countFlops"]>]> {
  let summary = "Scores of queries and keys, their softmax, and sums of values";
  let description = [{
    For each position of the loops before the last three, which are those over
    keys n, depth d and columns e:

    `score[n] = modify(sum_d query[d] * key[n, d], element of each extra, indices)`
    `result[e] = sum_n softmax(score)[n] * value[n, e]`

    `indexing_maps` say for the query, the keys, the values, each of the extras
    and the init which loops its dimensions are; a dimension may also be the
    constant 0. Heads that share keys are a loop that the maps of the keys and
    the values leave out. The last dimension of query and keys is d, of values
    and init e. The body modifies a score: its arguments are the score, in f32,
    an element of each extra, and the indices of all loops but the last two. A
    query whose scores are all -inf has NaN, as its softmax does.

    All sums, and the softmax, are of f32, and each is rounded once, at most to
    the types of values and of the result.

    ```mlir
    %r = nv.attention {indexing_maps = [
        affine_map<(h, m, n, d, e) -> (h, m, d)>, affine_map<(h, m, n, d, e) -> (h, n, d)>,
        affine_map<(h, m, n, d, e) -> (h, n, e)>, affine_map<(h, m, n, d, e) -> (m, n)>,
        affine_map<(h, m, n, d, e) -> (h, m, e)>]}
        ins(%q, %k, %v, %mask : tensor<12x128x64xf16>, tensor<12x128x64xf16>,
            tensor<12x128x64xf16>, tensor<128x128xf16>)
        outs(%init : tensor<12x128x64xf16>) {
    ^bb0(%score: f32, %added: f16, %h: index, %m: index, %n: index):
      %wide = arith.extf %added : f16 to f32
      %scaled = arith.mulf %score, %c0_125 : f32
      %sum = arith.addf %scaled, %wide : f32
      nv.yield %sum : f32
    } -> tensor<12x128x64xf16>
    ```
  }];
  let arguments = (ins NV_AttentionTensor:$query, NV_AttentionTensor:$key,
                       NV_AttentionTensor:$value,
                       Variadic<AnyRankedTensor>:$extras,
                       NV_AttentionTensor:$init,
                       AffineMapArrayAttr:$indexing_maps);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    attr-dict
    `ins` `(` $query `,` $key `,` $value (`,` $extras^)? `:` type($query) `,`
    type($key) `,` type($value) (`,` type($extras)^)? `)`
    `outs` `(` $init `:` type($init) `)` $body `->` type($result)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    /// The map of operand number `operand`.
    ::mlir::AffineMap getMap(unsigned operand) {
      return ::mlir::cast<::mlir::AffineMapAttr>(getIndexingMaps()[operand])
          .getValue();
    }
    ::mlir::AffineMap getInitMap() { return getMap(getIndexingMaps().size() - 1); }
    unsigned getNumLoops() { return getInitMap().getNumDims(); }
    /// The loops before those over keys, depth and columns.
    unsigned getNumOuterLoops() { return getNumLoops() - 3; }
    unsigned getKeyLoop() { return getNumLoops() - 3; }
    unsigned getDepthLoop() { return getNumLoops() - 2; }
    unsigned getColumnLoop() { return getNumLoops() - 1; }
    ::mlir::Value getScore() { return getBody().front().getArgument(0); }
    /// The arguments of the body that are elements of the extras.
    ::mlir::ValueRange getElements() {
      return getBody().front().getArguments().slice(1, getExtras().size());
    }
    /// Those that are indices.
    ::mlir::ValueRange getIndices() {
      return getBody().front().getArguments().drop_front(1 + getExtras().size());
    }
    /// What the body yields.
    ::mlir::Value getModified() {
      return getBody().front().getTerminator()->getOperand(0);
    }
  }];
}

def NV_YieldOp : Op<NV_Dialect, "yield", [
    Pure, Terminator, ReturnLike, HasParent<"::sardonyx::nv::AttentionOp">]> {
  let summary = "The result of a body";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{}]>];
}

class NV_DenseOp<string mnemonic, list<Trait> traits = []>
    : Op<NV_Dialect, mnemonic, !listconcat([
        Pure, DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>,
        DeclareOpInterfaceMethods<SDX_DenseOpInterface,
                                  ["isRoot", "isContraction", "describeForm",
                                   "getKernelName", "countFlops"]>], traits)> {
  let hasVerifier = 1;
}

def NV_NumberTensor : TypeConstraint<
    RankedTensorOf<[AnyFloat, AnySignlessInteger]>.predicate,
    "tensor of floats or integers", "::mlir::RankedTensorType">;

def NV_ConvOp : NV_DenseOp<"conv"> {
  let summary = "Convolution with channels last";
  let description = [{
    What `sdx.conv` is, of an `input` [N,S...,C], `weights` [OC,k...,C/group] and
    an `init` [N,O...,OC]: the products of an output follow each other along the
    channels, tap by tap.

    ```mlir
    %y = nv.conv ins(%x, %w : tensor<?x56x56x64xf16>, tensor<64x3x3x64xf16>)
        outs(%zero : tensor<?x56x56x64xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
         pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
         group = 1 : i64} -> tensor<?x56x56x64xf32>
    ```
  }];
  let arguments = (ins NV_NumberTensor:$input, NV_NumberTensor:$weights,
                       NV_NumberTensor:$init,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations,
                       DenseI64ArrayAttr:$pads_begin,
                       DenseI64ArrayAttr:$pads_end, I64Attr:$group);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `ins` `(` $input `,` $weights `:` type($input) `,` type($weights) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
    /// The kernel's sizes, all known.
    ::llvm::ArrayRef<int64_t> getKernelShape() {
      return getWeights().getType().getShape().drop_front().drop_back();
    }
  }];
}

def NV_MaxPoolOp : NV_DenseOp<"max_pool"> {
  let summary = "Largest elements of windows, with channels last";
  let description = [{
    What `sdx.max_pool` is, of an `input` [N,S...,C] and an `init` [N,O...,C].

    ```mlir
    %y = nv.max_pool ins(%x : tensor<?x112x112x64xf32>)
        outs(%lowest : tensor<?x56x56x64xf32>)
        {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
         pads_begin = array<i64: 1, 1>} -> tensor<?x56x56x64xf32>
    ```
  }];
  let arguments = (ins NV_NumberTensor:$input, NV_NumberTensor:$init,
                       DenseI64ArrayAttr:$kernel_shape,
                       DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$pads_begin);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `ins` `(` $input `:` type($input) `)`
    `outs` `(` $init `:` type($init) `)` attr-dict `->` type($result)
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
    int64_t getNumSpatialDims() { return getInput().getType().getRank() - 2; }
  }];
}

#endif // SARDONYX_NV_OPS
