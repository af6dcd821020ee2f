//===- SDXAttention.td - Attention as one operation --------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_SDX_ATTENTION
#define SARDONYX_SDX_ATTENTION

include "dialects/SDX/SDXBase.td"
include "dialects/SDX/SDXInterfaces.td"

include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def SDX_AttentionTensor : TypeConstraint<
    RankedTensorOf<[F16, BF16, F32]>.predicate,
    "tensor of f16, bf16 or f32", "::mlir::RankedTensorType">;

def SDX_AttentionKeys : TypeConstraint<
    RankedTensorOf<[F16, BF16, F32, I8]>.predicate,
    "tensor of f16, bf16, f32 or i8", "::mlir::RankedTensorType">;

def SDX_AttentionOp : Op<SDX_Dialect, "attention", [
    Pure, DestinationStyleOpInterface,
    SingleBlockImplicitTerminator<"::sardonyx::sdx::YieldOp">,
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

    Query, keys and values are of one type of floats; or the query is of f32, and
    keys and values are signed bytes, which count as the numbers that they are.

    All sums, and the softmax, are of f32, and each is rounded once, at most to
    the types of values and of the result.

    ```mlir
    %r = sdx.attention {indexing_maps = [
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
      sdx.yield %sum : f32
    } -> tensor<12x128x64xf16>
    ```
  }];
  let arguments = (ins SDX_AttentionTensor:$query, SDX_AttentionKeys:$key,
                       SDX_AttentionKeys:$value,
                       Variadic<AnyRankedTensor>:$extras,
                       SDX_AttentionTensor:$init,
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
    /// Whether keys and values are bytes.
    bool isOfBytes() { return getKey().getType().getElementType().isInteger(8); }
    unsigned getNumLoops() { return getInitMap().getNumDims(); }
    /// The size of each loop, open where no operand knows it.
    ::llvm::SmallVector<int64_t> getLoopSizes();
    /// Whether keys or values differ along an outer loop; otherwise its queries
    /// share them.
    bool isOfKeys(unsigned loop) {
      return getMap(1).isFunctionOfDim(loop) || getMap(2).isFunctionOfDim(loop);
    }
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

def SDX_YieldOp : Op<SDX_Dialect, "yield", [
    Pure, Terminator, ReturnLike, HasParent<"::sardonyx::sdx::AttentionOp">]> {
  let summary = "The result of a body";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{}]>];
}

#endif // SARDONYX_SDX_ATTENTION
