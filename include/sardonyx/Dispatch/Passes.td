//===- Passes.td - From linalg to kernels and a host program -*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which a pipeline runs them.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_DISPATCH_PASSES
#define SARDONYX_DISPATCH_PASSES

include "mlir/Pass/PassBase.td"

def SDXCanonicalize : Pass<"sdx-canonicalize", "::mlir::ModuleOp"> {
  let summary = "Canonicalize, and fold operations on tensors without elements";
  let description = [{
    The canonicalizer learns sizes. Where one is 0, it makes slices that begin
    behind the end of their tensor and loops over indices below 0, which no
    verifier takes; here these fold at once, by the rules of sdx-fold-empty.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::affine::AffineDialect"];
}

def SDXFoldEmpty : Pass<"sdx-fold-empty", "::mlir::ModuleOp"> {
  let summary = "Fold operations on tensors without elements";
  let description = [{
    A tensor with a dimension of size 0 is an empty tensor whatever made it, and
    an operation with a loop of no iterations gives what it starts from: a
    product without depth is zero. Nothing after this pass meets either, as long
    as sizes are known.

    ```mlir
    %r = linalg.matmul ins(%a, %b : tensor<2x0xf32>, tensor<0x3xf32>)
        outs(%zero : tensor<2x3xf32>) -> tensor<2x3xf32>
    // becomes
    %zero
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::affine::AffineDialect"];
}

def SDXShareRepeated : Pass<"sdx-share-repeated", "::mlir::ModuleOp"> {
  let summary = "Multiply all rows that meet one matrix at once";
  let description = [{
    Where consecutive batches of a product have the same right-hand side,
    because a matrix was repeated for them (the keys and values of grouped
    queries), their rows become those of one batch, and nothing is repeated.

    ```mlir
    %k = linalg.broadcast ins(%b : tensor<4x64x257xf32>)
        outs(%e : tensor<4x3x64x257xf32>) dimensions = [1]
    %c = tensor.collapse_shape %k [[0, 1], [2], [3]] ...
    %r = linalg.batch_matmul
        ins(%a, %c : tensor<12x5x64xf32>, tensor<12x64x257xf32>)
        outs(%zero : tensor<12x5x257xf32>) -> tensor<12x5x257xf32>
    // becomes
    %s = linalg.batch_matmul
        ins(%d, %b : tensor<4x15x64xf32>, tensor<4x64x257xf32>)
        outs(%zeros : tensor<4x15x257xf32>) -> tensor<4x15x257xf32>
    ```
    with reshapes around it.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::affine::AffineDialect"];
}

def SDXDecomposeTensorOps : Pass<"sdx-decompose-tensor-ops", "::mlir::ModuleOp"> {
  let summary = "Rewrite tensor.pad, concat, generate and splat";
  let description = [{
    Operations of the tensor dialect that would bufferize into loops on the
    host become linalg operations (kernels later) and slices (copies).

    ```mlir
    %0 = tensor.splat %v : tensor<4xf32>
    // becomes
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.fill ins(%v : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::bufferization::BufferizationDialect"];
}

def SDXSimplifyTransposes : Pass<"sdx-simplify-transposes", "::mlir::ModuleOp"> {
  let summary = "Reduce transposes to the fewest dimensions";
  let description = [{
    Dimensions of size 1 are dropped from transposes and dimensions that stay
    neighbours are one; a transpose of what is left in order is a reshape.
    `cpu-pack-contractions` applies the same patterns.

    ```mlir
    %0 = linalg.transpose ins(%x : tensor<197x1x768xf32>)
        outs(%e : tensor<1x197x768xf32>) permutation = [1, 0, 2]
    // becomes
    %c = tensor.collapse_shape %x [[0, 1], [2]] ...
    %0 = tensor.expand_shape %c [[0, 1], [2]] ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXNormalizeContractions
    : Pass<"sdx-normalize-contractions", "::mlir::ModuleOp"> {
  let summary = "Turn contractions into matrix products";
  let description = [{
    Matrix products of f32 (named or generic, at most one batch dimension,
    operands in any order of dimensions), named ones of bf16 onto f32, and
    products of unsigned with signed 8-bit integers, written as a
    `linalg.generic`, become `sdx.matmul`. Transposes of the right-hand side are its `transposed`, where
    that is enough. Operands of f32 that were scaled are multiplied as they were
    before, and the product is scaled, which is a part of its epilogue. Products
    of floats and convolutions start from zeros; another init is added
    afterwards.

    ```mlir
    %t = linalg.transpose ins(%b : tensor<40x768xf32>) ... permutation = [1, 0]
    %r = linalg.matmul ins(%a, %t : tensor<?x768xf32>, tensor<768x40xf32>)
        outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
    // becomes
    %p = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<40x768xf32>)
        outs(%zero : tensor<?x40xf32>) {transposed} -> tensor<?x40xf32>
    %r = linalg.generic {arith.addf} ins(%p, %c) ...
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXFormAttention : Pass<"sdx-form-attention", "::mlir::ModuleOp"> {
  let summary = "Make one operation of attention";
  let description = [{
    A product of queries and keys, whatever is done to its elements, a softmax of
    its rows and a product by values become an `sdx.attention`, if nothing else
    needs the scores or the probabilities, and the target has a kernel for it
    (`hasAttention` of its attribute). Transposes and reshapes of operands
    and of the result, repeated heads, and factors of queries and keys become
    maps and part of its body. Rows of probabilities that are set to 0 become
    rows of the result that are.

    What is in f16 or bf16 between the products is not rounded any more. Keys and
    values that were made of signed bytes are read as these if the target can.

    ```mlir
    %s = sdx.matmul ins(%q, %k) {transposed}
    %t = linalg.generic ins(%s, %mask) {mulf, addf}
    // max, exp, sum, division
    %r = sdx.matmul ins(%p, %v)
    // becomes
    %r = sdx.attention {indexing_maps = [...]} ins(%q, %k, %v, %mask : ...) outs(...) {
    ^bb0(%score: f32, %added: f32, %h: index, %m: index, %n: index):
      ...
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SDXDecomposeDenseOps
    : Pass<"sdx-decompose-dense-ops", "::mlir::ModuleOp"> {
  let summary = "Turn dense sdx operations into linalg operations";
  let description = [{
    The operations of the sdx dialect that compute on elements become linalg
    operations that do the same: a loop nest each. For targets that have nothing
    better, and to tell what an operation means.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<40x768xf32>)
        outs(%zero : tensor<?x40xf32>) {transposed} -> tensor<?x40xf32>
    // becomes
    %r = linalg.generic {... ["parallel", "parallel", "reduction"]}
        ins(%a, %b ...) outs(%zero ...) {arith.mulf, arith.addf}
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXWidenIntegerConvs
    : Pass<"sdx-widen-integer-convs", "::mlir::ModuleOp"> {
  let summary = "Compute convolutions of bytes by wider numbers";
  let description = [{
    A convolution of 8-bit integers onto i32 becomes one of f32, whose channels
    are groups so small that sums are exact, or of i32. For targets that multiply
    floats faster than bytes, and for forms of convolutions without a kernel that
    takes bytes.

    ```mlir
    %z = sdx.conv ins(%u, %v : tensor<1x64x56x56xi8>, tensor<64x64x3x3xi8>)
        outs(%zeros : tensor<1x64x56x56xi32>) {..., group = 1 : i64, input_unsigned}
    // becomes
    %x = linalg.generic ins(%u) {arith.extui, arith.sitofp}
    %w = linalg.generic ins(%v) {arith.extsi, arith.sitofp}  // [4*64,16,3,3]
    %s = sdx.conv ins(%x, %w) outs(%f) {..., exact, group = 4 : i64}
    %z = linalg.generic ins(%s) {arith.fptosi, arith.addi}   // over the groups
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXHoistConstants : Pass<"sdx-hoist-constants", "::mlir::ModuleOp"> {
  let summary = "Split @main_graph into @init and @main";
  let description = [{
    What depends on constants only (packed weights, folded scales, ...) is
    computed once, by `@init`; its results are arguments of `@main` with
    `sdx.persistent = i`. Large constants become arguments with
    `sdx.constant`. Scalars, fills, empty tensors and views are not hoisted
    for themselves. No constant is read.

    ```mlir
    func.func @main_graph(%x: tensor<?x768xf32>) -> tensor<?x40xf32> {
      %w = arith.constant dense_resource<w> : tensor<768x40xf32>
      %p = cpu.pack_rhs ins(%w ...)
      %r = cpu.packed_matmul ins(%x, %p ...)
    // becomes
    func.func @init(%w: tensor<768x40xf32> {sdx.constant = ...})
        -> tensor<2x768x32xf32> {
      %p = cpu.pack_rhs ins(%w ...)
    func.func @main(%x: tensor<?x768xf32> {sdx.input = 0 : i64},
        %p: tensor<2x768x32xf32> {sdx.persistent = 0 : i64})
        -> tensor<?x40xf32> {
      %r = cpu.packed_matmul ins(%x, %p ...)
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXMergeEqual : Pass<"sdx-merge-equal", "::mlir::ModuleOp"> {
  let summary = "Leave one of operations that compute the same";
  let description = [{
    What `cse` does, in time that does not grow with the square of the number of
    `linalg.generic`s that read the same tensors and differ in their bodies.

    ```mlir
    %0 = linalg.generic {math.exp} ins(%x) ...
    %1 = linalg.generic {math.exp} ins(%x) ...
    // becomes
    %0 = linalg.generic {math.exp} ins(%x) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def SDXFuseElementwise : Pass<"sdx-fuse-elementwise", "::mlir::ModuleOp"> {
  let summary = "Fuse elementwise operations and move reshapes out of chains";
  let description = [{
    Elementwise producers with one use are fused into their elementwise
    consumers, but for those that make bytes of a product that is added to a
    later one: the first kernel leaves bytes. Fills and splat constants become
    scalars in the body. Reshapes between operations move below them where that
    keeps a chain on one domain (the bias of a [B,S,N] matrix product is added
    on [B*S,N]).
    Reductions and contractions stay apart: kernels group them later.

    ```mlir
    %0 = linalg.generic {math.exp} ins(%x) ...
    %1 = linalg.generic {arith.addf} ins(%0, %one) ...
    // becomes
    %1 = linalg.generic {math.exp, arith.addf 1.0} ins(%x) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXFoldRequantization
    : Pass<"sdx-fold-requantization", "::mlir::ModuleOp"> {
  let summary = "Compute on floats that are whole numbers as they are";
  let description = [{
    A float that was rounded to a whole number, made a byte and a float again is
    the rounded float where its bounds say that no bit is lost; a zero point
    that is added and subtracted goes, too. It is rounded by the addition of a
    number that leaves no bits for a fraction. Bytes that stay bytes say whether
    they saturate, since bounds may become arguments of kernels
    (`sdx.saturating`).

    ```mlir
    %r = math.roundeven %clamped            // -3 to 252
    %i = arith.fptosi %r : f32 to i32
    %z = arith.addi %i, %c3 : i32
    %q = arith.trunci %z : i32 to i8
    %f = arith.uitofp %q : i8 to f32
    %d = arith.subf %f, %three : f32
    // becomes, with %far = 1.5 * 2^23
    %s = arith.addf %clamped, %far : f32
    %d = arith.subf %s, %far : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def SDXLinearizeQuantizedSums
    : Pass<"sdx-linearize-quantized-sums", "::mlir::ModuleOp"> {
  let summary = "Add quantised numbers by two multiply-adds";
  let description = [{
    What QuantizeLinear rounds may be a sum of multiples of two whole numbers of
    8 bits: bytes, or floats that sdx-fold-requantization left. Two multiply-adds
    take its place if all 65,536 pairs become the same integers. Neighbours of
    their numbers are tried, since each rounds other pairs in another way; where
    none is right, as where many sums are half way between two integers, all
    stays as it was.

    ```mlir
    %0 = arith.uitofp %a : i8 to f32
    %1 = arith.mulf %0, %sa : f32
    %2 = arith.uitofp %b : i8 to f32
    %3 = arith.mulf %2, %sb : f32
    %4 = arith.addf %1, %3 : f32
    %5 = arith.divf %4, %sy : f32        // bounded, and rounded
    // becomes
    %0 = arith.uitofp %a : i8 to f32
    %2 = arith.uitofp %b : i8 to f32
    %3 = math.fma %2, %b, %c : f32
    %5 = math.fma %0, %a, %3 : f32
    ```
  }];
  let dependentDialects = ["::mlir::math::MathDialect"];
}

def SDXFormDispatches : Pass<"sdx-form-dispatches", "::mlir::ModuleOp"> {
  let summary = "Cut compute operations into kernels";
  let description = [{
    Groups the linalg and dense sdx operations of every block of the host
    functions and outlines each group into a kernel: a function on memrefs that
    `sdx.call` calls. A group is one product or convolution with its
    elementwise epilogue; row operations (reductions over trailing dimensions
    with elementwise ones between); elementwise operations on one domain; or a
    single other operation. A program on elements (`scf.forall` mapped to
    `#sdx.task`) updates the tensor that it starts from, if nothing else reads
    it; otherwise the kernel copies that.

    ```mlir
    %m = cpu.packed_matmul ins(%x, %p ...) outs(%zero ...)
    %r = linalg.generic {relu} ins(%m ...) ...
    // becomes
    %r = sdx.call @k0_matmul(%x, %p : ...) outs(%e : ...) -> ...
    // and
    func.func private @k0_matmul(%x: memref<?x768xf32>,
        %p: memref<2x768x32xf32>, %out: memref<?x40xf32>)
        attributes {sdx.kernel} { ... }
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXDedupKernels : Pass<"sdx-dedup-kernels", "::mlir::ModuleOp"> {
  let summary = "Keep one of several equal kernels";
  let description = [{
    Kernels with the same type and body are one: calls of the others are
    redirected to the first.

    ```mlir
    sdx.call @k0_matmul(...) ...
    sdx.call @k7_matmul(...) ...   // equal to @k0_matmul
    // becomes
    sdx.call @k0_matmul(...) ...
    sdx.call @k0_matmul(...) ...
    ```
  }];
}

def SDXLowerObservations
    : Pass<"sdx-lower-observations", "::mlir::ModuleOp"> {
  let summary = "Have the runtime see the values that no kernel does";
  let description = [{
    Observations that `sdx-form-dispatches` made part of no kernel, as their
    values are inputs or constants, are made by rows or element by element, or
    channels are told apart, become calls of the runtime, which goes through the
    whole tensor on all threads right after it is made.

    ```mlir
    sdx.observe %t site 3 <range|bits> : tensor<4x8xf32>
    // becomes
    sdx.runtime_call stateful "sdx_rt_observe_tensor" (%site, %what, %axis, %t : i64, i64, i64, tensor<4x8xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::sardonyx::sdx::SDXDialect"];
}

def SDXParameterizeKernels
    : Pass<"sdx-parameterize-kernels", "::mlir::ModuleOp"> {
  let summary = "Make arguments of the numbers in which kernels differ";
  let description = [{
    Kernels with a dense operation that are equal but for numbers, such as the
    scales of quantised tensors, take these as arguments, so that
    `sdx-dedup-kernels` leaves one of each kind. Numbers that operations add,
    multiply, compare or select are meant: others decide how code is made. An
    argument that divides is `sdx.normal`: it and its reciprocal are normal.

    ```mlir
    sdx.call @k0_narrow_conv(%x, %w : ...) ...   // multiplies by 0.25
    sdx.call @k7_narrow_conv(%y, %v : ...) ...   // multiplies by 0.5
    // becomes
    sdx.call @k0_narrow_conv(%x, %w, %cst : ..., f32) ...
    sdx.call @k7_narrow_conv(%y, %v, %cst_0 : ..., f32) ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def SDXVerifyDispatch : Pass<"sdx-verify-dispatch", "::mlir::ModuleOp"> {
  let summary = "Check that host functions only call kernels";
  let description = [{
    The contract at the end of the phase:
    - no linalg or dense sdx operation and no parallel loop is left outside
      kernels;
    - the host computes on no elements: it reads and writes an element
      (`tensor.extract`, `tensor.insert`, `memref.load`, `memref.store`) only at
      a constant position, as it does for sizes, conditions, counts and indices
      of views. A loop that goes through elements has positions that are not
      constant. The loops of ONNX's Loop, Scan and recurrent operators stay on
      the host: their bodies call kernels and copy slices;
    - every argument of a host function says where it comes from;
    - with `bufferized` no tensor is left on the host.

    The host may pass whole tensors on: to functions of the runtime
    (`sdx.runtime_call`: strings, sequences, maps, images, custom nodes), and to
    copies.

    ```mlir
    scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<?xf32>) {
      %e = tensor.extract %t[%i] : tensor<?xf32>   // refused
      ...
    }
    %k = tensor.extract %count[%c0] : tensor<1xi64>   // a size
    ```
  }];
  let options = [Option<"bufferized", "bufferized", "bool", "false",
                        "Also require that no tensor is left on the host">];
}

#endif // SARDONYX_DISPATCH_PASSES
