//===- Passes.td - CPU code generation --------------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From kernels on tensors to loops over vectors, which the runtime's threads
// can share.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CODEGEN_CPU_PASSES
#define SARDONYX_CODEGEN_CPU_PASSES

include "mlir/Pass/PassBase.td"

def LowerContractionsPass
    : Pass<"sdx-cpu-lower-contractions", "::mlir::func::FuncOp"> {
  let summary = "Lower matrix product kernels to register-tiled loops";
  let description = [{
    A kernel around one `sdx.packed_matmul` becomes loops over panels of the
    right-hand side and blocks of rows; the accumulators of a tile are vectors
    that stay in registers through the loop over K. Elementwise operations on
    the product are applied to the accumulators before they are stored. Tiles
    at the edges are narrower or masked; any size may be dynamic. Where a panel
    is used by several tiles of rows, each of them fetches a part of the next
    panel into the L2 cache. On targets with `f32 = amx_bf16x6` large products
    of f32 become products of bf16 by the tile registers of AMX.

    ```mlir
    %m = sdx.packed_matmul ins(%a, %b) outs(%zero)
    // becomes
    scf.parallel (%panel, %group) = ... {
      scf.for %m = ... step %c8 {
        %acc:8 = scf.for %k = %c0 to %K step %c1 iter_args(...) {
          %v = vector.load %b[%panel, %k, %c0] : ..., vector<32xf32>
          %s = memref.load %a[%m, %k] : memref<?x768xf32>
          %0 = vector.broadcast %s : f32 to vector<32xf32>
          %1 = vector.fma %0, %v, %acc0 : vector<32xf32>
          ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LowerConvPass : Pass<"sdx-cpu-lower-conv", "::mlir::func::FuncOp"> {
  let summary = "Lower convolution kernels to register-tiled loops";
  let description = [{
    A kernel around one `sdx.conv` becomes a parallel loop over panels of
    consecutive output positions. The inputs of a panel are gathered into a
    scratch matrix [K][width], padding and strides included, and multiplied by
    all blocks of output channels with the tiles of
    `sdx-cpu-lower-contractions`. Of stride 2 and few filters, even and
    odd rows and columns of the input are put into planes of their own first, so
    that nothing is gathered. Few output positions lie in the rows of tiles and
    channels in their lanes. Filters that are sums of bf16 are multiplied by
    tile registers. A depthwise convolution reads its input in
    place, vectorised along the innermost dimension.

    ```mlir
    %y = sdx.conv ins(%x, %w) outs(%zero) {kernel_shape = array<i64: 3, 3> ...}
    // becomes
    scf.parallel (%n, %g, %panel, %channels) = ... {
      %scratch = memref.alloc() : memref<576x32xf32>
      // pack, then for each block of 8 channels multiply and store
    }
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LowerPoolPass : Pass<"sdx-cpu-lower-pool", "::mlir::func::FuncOp"> {
  let summary = "Lower maximum pooling kernels to vectors";
  let description = [{
    A kernel around one `sdx.max_pool` becomes a parallel loop over planes. For
    each row of the result the largest elements of the window's rows go into a
    line of scratch, of which each vector of results takes what its windows'
    columns see. The scratch is as long as the windows reach, and lowest where
    they see nothing; rows outside of the input are those at its edge, which the
    window sees anyway. Nothing is copied into a padded tensor.

    ```mlir
    %y = sdx.max_pool ins(%x) outs(%lowest) {kernel_shape = array<i64: 3, 3> ...}
    // becomes
    scf.parallel (%n, %c, %rows) = ... {
      %line = memref.alloc() : memref<192xf32>
      // for each row: the largest of three rows, then of three columns
    }
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ChooseConvFormPass
    : Pass<"sdx-cpu-choose-conv-form", "::mlir::func::FuncOp"> {
  let summary = "Choose how each convolution is computed";
  let description = [{
    Runs on the host program, before constants are hoisted, and changes how the
    weights of a convolution are packed:

    - A convolution of 3x3 without dilations or groups, with enough channels and
      positions, goes by Winograd's algorithm: it and the packing of its weights
      get the attribute `winograd`. F(4x4, 3x3) takes a quarter of the
      multiplications, 36 values of K a channel, and its rounding errors are
      about twice those of the direct form; F(2x2, 3x3), for pictures too small
      for that, takes 4 of 9, and 16 values. With strides of 2 they take 9 of 16
      and 25 of 36 of the multiplications, and the attribute `winograd_stride`
      tells the packing. Weights of pictures with no more
      tiles than a register of 512 bits has lanes, and of enough filters, come
      in blocks of a vector of filters; with vectors of 256 bits the others come
      in blocks of a tile's six.
    - A convolution with so few output positions that they would leave vectors
      half empty gets weights in blocks of a vector of channels.

    ```mlir
    %p = sdx.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) ... -> tensor<1x8x576x8xf32>
    %y = sdx.conv ins(%x, %p) ...
    // becomes
    %p = sdx.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) ...
        {winograd = 4 : i64} -> tensor<1x8x2304x8xf32>
    %y = sdx.conv ins(%x, %p) ... {winograd = 4 : i64}
    ```
  }];
  let options = [
    Option<"winograd", "winograd", "bool", "true",
           "Use Winograd's algorithm where it is faster">,
    Option<"splits", "splits", "bool", "false",
           "Leave convolutions of stride 2 to products of bf16 where the target "
           "has them: they are faster than what Winograd's algorithm saves">,
    Option<"fewestSummed", "fewest-summed", "int64_t", "8",
           "Fewest input channels of F(4x4, 3x3): of shorter sums its rounding "
           "errors are more than twice those of the direct form">
  ];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def LowerPackingPass : Pass<"sdx-cpu-lower-packing", "::mlir::func::FuncOp"> {
  let summary = "Lower kernels that pack operands to loops over vectors";
  let description = [{
    A kernel of one `sdx.pack_rhs` or `sdx.pack_conv_weights` becomes vector
    copies, or transposes of square tiles in registers where rows turn into
    columns.

    ```mlir
    %p = sdx.pack_rhs ins(%b : tensor<768x3072xf32>) outs(%e)
    // becomes
    scf.parallel (%panel) = (%c0) to (%c96) step (%c1) {
      scf.for %k = %c0 to %c768 step %c1 {
        %v = vector.load %b[%k, %column] : ..., vector<32xf32>
        vector.store %v, %out[%panel, %k, %c0] : ..., vector<32xf32>
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def LowerRowsPass : Pass<"sdx-cpu-lower-rows", "::mlir::func::FuncOp"> {
  let summary = "Lower elementwise and row kernels to loops over vectors";
  let description = [{
    Emits loops and vector operations straight from the tensor values of a
    kernel whose operations are elementwise or reduce along rows (softmax,
    normalisation, sums). One parallel loop over the rows; for each row as many
    passes as the chain of reductions asks for, each with several vector
    accumulators. Kernels of another form are left alone.

    ```mlir
    %s = linalg.generic {... ["parallel", "reduction"]} ins(%x) outs(%zero)
    // becomes
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %acc:4 = scf.for %j = %c0 to %m step %c64 iter_args(...) {
        %v = vector.load %x[%i, %j] : memref<?x?xf32>, vector<16xf32>
        ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LowerLoopsPass : Pass<"sdx-cpu-lower-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower any kernel that still works on tensors to loops";
  let description = [{
    The way down for kernels that no other pass took: bufferises the kernel,
    then emits loops for each of its operations, over vectors where the
    operation allows it and over scalars otherwise.

    ```mlir
    %r = linalg.generic {...} ins(%t) outs(%e)
    // becomes
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %a[%i] : memref<?xf32>
      ...
      memref.store %w, %out[%i] : memref<?xf32>
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def ApproximateMathPass
    : Pass<"sdx-cpu-approximate-math", "::mlir::func::FuncOp"> {
  let summary = "Expand math functions on vectors of f32 to arithmetic";
  let description = [{
    exp, expm1, log, log1p, tanh and erf on vectors become a range reduction
    and a polynomial; f16 and bf16 go through f32. Other functions and other
    types are left to the scalar math library. A math.fma is a multiply-add of
    one instruction or two, as the processor has it.

    ```mlir
    %e = math.exp %x : vector<16xf32>
    // becomes
    %n = vector.fma ... ; arith.subf ... ; arith.shli ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::sdx::SDXDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def VerifyIndicesPass : Pass<"sdx-cpu-verify-indices", "::mlir::ModuleOp"> {
  let summary = "Tell which accesses no check or loop bound keeps in bounds";
  let description = [{
    For each load and store of kernels and of the host program looks for a proof
    that its lanes lie in the memref: from bounds of loops, masks, clamps,
    conditions, and `sdx.check`. A kernel is looked at with the sizes that the
    host program passes, once for each combination. Anything without a proof is
    a remark: a missing check, or an index that only data bounds.

    ```mlir
    %v = memref.load %m[%i] : memref<?xf32>
    // gives, if %i is the counter of a loop up to another buffer's size,
    remark: nothing keeps this load within 'memref<?xf32>': the index of
    dimension 0 may be too large
    ```
  }];
  let options = [
    Option<"fail", "fail", "bool", "false",
           "Accesses without a proof are errors">
  ];
}

def CheckBoundsPass : Pass<"sdx-cpu-check-bounds", "::mlir::func::FuncOp"> {
  let summary = "Check each index before memory is accessed there";
  let description = [{
    A debugging option. Before each load and store, scalar or vector, of a
    kernel or of the host program stands a check that all lanes which the mask
    lets through lie in the memref; the access is made only if they do. Views,
    copies and the sizes that a kernel's arguments promise are checked as well.
    A check that fails ends the run with a sentence that names the node.

    ```mlir
    %v = memref.load %m[%i] : memref<?xf32>
    // becomes
    %n = memref.dim %m, %c0 : memref<?xf32>
    %ok = arith.cmpi ult, %i, %n : index
    sdx.check %ok, "node 'y': reads outside of a buffer of ?xf32 (...)"
    %v = scf.if %ok -> (f32) {
      %0 = memref.load %m[%i] : memref<?xf32>
      scf.yield %0 : f32
    } else {
      scf.yield %zero : f32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::sardonyx::sdx::SDXDialect"
  ];
}

def VerifyCodegenPass : Pass<"sdx-verify-codegen", "::mlir::func::FuncOp"> {
  let summary = "Check that a function is ready for the llvm dialect";
  let description = [{
    The contract of the code generators: no tensors, no linalg or sdx
    operation, no parallel loop that reduces and no allocation in an innermost
    loop may be left. Anything found is an error with its location. A parallel
    loop may lie in another: `sdx-host-parallel-to-runtime` makes it sequential.

    ```mlir
    %0 = tensor.empty() : tensor<4xf32>
    // gives
    error: 'tensor.empty' op still works on tensors after code generation
    ```
  }];
}

#endif // SARDONYX_CODEGEN_CPU_PASSES
