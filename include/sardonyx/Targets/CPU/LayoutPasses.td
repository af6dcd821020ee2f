//===- LayoutPasses.td - Layouts of operands ---------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How operands of products and convolutions lie in memory, and which types of
// numbers they have there.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_CPU_LAYOUTPASSES
#define SARDONYX_TARGETS_CPU_LAYOUTPASSES

include "mlir/Pass/PassBase.td"

def CPUKeepConvsDirect : Pass<"cpu-keep-convs-direct", "::mlir::func::FuncOp"> {
  let summary = "Mark convolutions whose filters ask for direct sums";
  let description = [{
    Winograd's algorithm loses more digits than others where constant filters of
    3x3 are much like means of what they read, or where their channels cancel.
    Such convolutions get `exact`.

    ```mlir
    %y = sdx.conv ins(%x, %ones : ..., tensor<64x64x3x3xf32>) ...
    // becomes
    %y = sdx.conv ins(%x, %ones : ..., tensor<64x64x3x3xf32>) ... {exact}
    ```
  }];
}

def CPURoundOperands : Pass<"cpu-round-operands", "::mlir::ModuleOp"> {
  let summary = "Round operands of products to 16 bits where that is faster";
  let description = [{
    With `precision=bf16`, on machines that multiply bf16, operands of products by
    weights are rounded to bf16 where they are made, before they are reshaped or
    transposed, and so are those of convolutions where there are tile registers.
    Who else takes the value takes it rounded, so that it is in memory once,
    unless it is a result of the model. Sums stay f32. Operands of products of
    what is computed, such as those of attention, are rounded where they are made
    if that is possible; else the product says that its kernel may round them
    (`sdx.rounded`).

    With `precision=f16`, on machines that convert f16, weights of products of
    few rows or of an open number are rounded to f16, unless tile registers take
    many rows of f32. The other operand and sums stay f32.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>) outs(...)
    // becomes
    %s = linalg.generic ins(%a : tensor<?x64xf32>) ... truncf -> tensor<?x64xbf16>
    // ... the same of %b
    %r = sdx.matmul ins(%s, %u : tensor<?x64xbf16>, tensor<64x32xbf16>) outs(...)
    ```
  }];
  let options = [
    Option<"precision", "precision", "::sardonyx::Precision",
           "::sardonyx::Precision::F32", "What operands may be rounded to",
           [{::sardonyx::getPrecisionValues()}]>
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CPUAssignLayouts : Pass<"cpu-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Make regions with channels last around narrow convolutions";
  let description = [{
    Convolutions of 8-bit integers become `cpu.narrow_conv` and
    `cpu.depthwise_narrow_conv`, where the machine multiplies bytes, and those of
    bf16 `cpu.narrow_conv` where it has tile registers. What follows them, operations on elements, slices, concatenations, poolings of bytes, is
    computed with channels last as well; transposes are left where such a region
    begins and ends. Signed inputs and unsigned weights change their sign on the
    way.

    ```mlir
    %z = sdx.conv ins(%u, %v : tensor<1x64x56x56xi8>, tensor<64x64x3x3xi8>)
        outs(%zeros : tensor<1x64x56x56xi32>) {..., input_unsigned}
    // becomes
    %x = linalg.transpose ins(%u) ... permutation = [0, 2, 3, 1]
    %w = ... // [2,144,128]
    %y = cpu.narrow_conv ins(%x, %w) outs(...) {...}
    %z = linalg.transpose ins(%y) ... permutation = [0, 3, 1, 2]
    ```
  }];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def CPUSplitTaps : Pass<"cpu-split-taps", "::mlir::func::FuncOp"> {
  let summary = "Wide dilations as a sum of convolutions by single taps";
  let description = [{
    A dilation that is nearly as wide as the input has most taps see pads at
    most positions. Each tap becomes a convolution of its own, over the
    positions at which it sees input, that is added onto those of the result,
    where that saves a good part of all products.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<1x64x8x8xf32>, tensor<64x64x3x3xf32>)
        outs(%zero) {dilations = array<i64: 6, 6>, ...}
    // becomes, for the tap of the upper left corner
    %p = tensor.extract_slice %x[0, 0, 0, 0] [1, 64, 2, 2]
    %t = tensor.extract_slice %w[0, 0, 0, 0] [64, 64, 1, 1]
    %s = tensor.extract_slice %sum[0, 0, 6, 6] [1, 64, 2, 2]
    %r = sdx.conv ins(%p, %t) outs(%s)
    %next = tensor.insert_slice %r into %sum[0, 0, 6, 6] [1, 64, 2, 2]
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def CPUSplitDepth : Pass<"cpu-split-depth", "::mlir::func::FuncOp"> {
  let summary = "Convolutions over three dimensions as such over two";
  let description = [{
    Slices of a convolution with 3 x 3 taps in a plane are convolutions over two
    dimensions, for which there is Winograd's algorithm: channels are those of
    all planes that a slice sees, which lie behind each other once depth and
    channels have been exchanged. What is done with the elements of the result
    is done slice by slice, too.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<1x64x16x56x56xf32>, tensor<64x64x3x3x3xf32>)
    // becomes
    %t = linalg.transpose ins(%x) permutation = [0, 2, 1, 3, 4]
    %p = tensor.insert_slice %t into %pads[0, 1, 0, 0, 0] [1, 16, 64, 56, 56]
    %y = scf.for %i = %c0 to %c16 step %c1 iter_args(%to = %init) {
      %s = tensor.extract_slice %p[0, %i, 0, 0, 0] [1, 3, 64, 56, 56]
      %c = tensor.collapse_shape %s // [1,192,56,56]
      %r = sdx.conv ins(%c, %v) outs(...) // %v: [64,192,3,3]
      tensor.insert_slice %r into %to[0, 0, %i, 0, 0] [1, 64, 1, 56, 56]
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CPUSplitDilations : Pass<"cpu-split-dilations", "::mlir::func::FuncOp"> {
  let summary = "Dilated convolutions as plain ones of their phases";
  let description = [{
    Results that lie a dilation apart see inputs that lie as far apart: they are
    a plain convolution of these. Where phases of 3 x 3 taps are large enough
    for Winograd's algorithm, all of them lie beside each other in one image,
    with pads between; results that see two of them are left out.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>)
        outs(%zero) {dilations = array<i64: 2, 2>, pads_begin = array<i64: 2, 2>, ...}
    // becomes
    %p = tensor.insert_slice %x into %zeros[0, 0, 0, 0] // [1,64,30,30]
    %t = linalg.transpose ins(%p as [1,64,15,2,15,2]) permutation = [0, 1, 3, 2, 5, 4]
    %r = sdx.conv ins(%t, %w) outs(%zeros) {dilations = array<i64: 1, 1>, ...}
    %b = linalg.transpose ins(%r as [1,64,2,15,2,15]) permutation = [0, 1, 3, 2, 5, 4]
    %y = tensor.extract_slice %b[0, 0, 0, 0] [1, 64, 28, 28]
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CPUPackConvs : Pass<"cpu-pack-convs", "::mlir::ModuleOp"> {
  let summary = "Pack the weights of convolutions";
  let description = [{
    Each `sdx.conv` of f32 becomes a `cpu.conv` by weights that
    `cpu.pack_conv_weights` puts in blocks of as many output channels as the
    register tile has rows. Convolutions of other types become loop nests.

    ```mlir
    %y = sdx.conv ins(%x, %w : ..., tensor<64x64x3x3xf32>) ...
    // becomes
    %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) ...
        -> tensor<1x8x576x8xf32>
    %y = cpu.conv ins(%x, %p) ... {kernel_shape = array<i64: 3, 3>, ...}
    ```
  }];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
}

def CPUPackDequantMatmuls
    : Pass<"cpu-pack-dequant-matmuls", "::mlir::ModuleOp"> {
  let summary = "Pack weights of 2, 4 or 8 bits";
  let description = [{
    Each `sdx.dequant_matmul` becomes a `cpu.packed_matmul` with scales: its
    integers, scales and zero points are put in panels of columns.

    ```mlir
    %t = sdx.dequant_matmul
        ins(%a, %w, %x : tensor<?x768xf32>, tensor<3072x24x16xi8>,
            tensor<3072x24xf32>) outs(%zero) {bits = 4 : i64, block = 32 : i64}
    // becomes
    %t = cpu.packed_matmul
        ins(%a, %p, %s : tensor<?x768xf32>, tensor<96x768x16xi8>,
            tensor<96x24x1x32xf32>) outs(%zero) {block = 32 : i64}
    ```
  }];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def CPUPackContractions : Pass<"cpu-pack-contractions", "::mlir::ModuleOp"> {
  let summary = "Turn contractions into packed matrix products";
  let description = [{
    `sdx.matmul` of f32 become `cpu.packed_matmul` on a right-hand side packed by
    `cpu.pack_rhs`; a transpose that gathers the rows of an attention's heads is
    folded into the packing. What is computed is packed, or transposed, right
    after it is there. Products of unsigned with signed 8-bit integers are packed
    by fours of k; those of bf16 onto f32 by twos of k, where the right-hand side
    is a weight and the target wants it, and are else made of f32. Products of
    other types become loop nests.

    Unless f32 is to be exact, weights of few rows, where memory decides how long
    a product takes, are kept in fewer bits, and products by weights of even size
    may add halves of them (`strassen`). With `numerics=fast` rounding may take
    more of the results, and the filters of convolutions become sums of two bf16
    where the target's tile registers are faster by them.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x40xf32>)
        outs(%zero : tensor<?x40xf32>) -> tensor<?x40xf32>
    // becomes
    %e = tensor.empty() : tensor<2x768x32xf32>
    %p = cpu.pack_rhs ins(%b : tensor<768x40xf32>)
        outs(%e : tensor<2x768x32xf32>) -> tensor<2x768x32xf32>
    %r = cpu.packed_matmul
        ins(%a, %p : tensor<?x768xf32>, tensor<2x768x32xf32>)
        outs(%zero : tensor<?x40xf32>) -> tensor<?x40xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect"];
  let options = [
    Option<"numerics", "numerics", "::sardonyx::Numerics",
           "::sardonyx::Numerics::F32", "How exact f32 is",
           [{::sardonyx::getNumericsValues()}]>,
    // Fewer bytes may stay in the L2 cache, where they count less than
    // instructions.
    Option<"minCompressedBytes", "min-compressed-bytes", "int64_t", "1 << 20",
           "Bytes of weights from which on they are kept in fewer bits">];
}

def CPUShareInitPackingKernels : Pass<"cpu-share-init-packing-kernels", "::mlir::ModuleOp"> {
  let summary = "Let kernels that pack weights take all sizes";
  let description = [{
    Kernels that only `@init` calls, and that pack weights, transpose or fill them
    or compute on their elements, get buffers of open sizes, and numbers that
    these computations use as arguments, so that `sdx-dedup-kernels` leaves one of
    each kind. The host program is bufferized.

    ```mlir
    sdx.call @k0_pack_conv_weights(%w : memref<64x16x1x1xf32>)
        outs(%p : memref<1x8x16x8xf32>)
    // becomes
    %a = memref.cast %w : memref<64x16x1x1xf32> to memref<?x?x?x?xf32>
    %b = memref.cast %p : memref<1x8x16x8xf32> to memref<?x?x?x8xf32>
    sdx.call @k0_pack_conv_weights(%a : memref<?x?x?x?xf32>)
        outs(%b : memref<?x?x?x8xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // SARDONYX_TARGETS_CPU_LAYOUTPASSES
