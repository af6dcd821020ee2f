//===- LayoutPasses.td - How operands lie for GPUs of NVIDIA -*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_LAYOUTPASSES
#define SARDONYX_TARGETS_NVPTX_LAYOUTPASSES

include "mlir/Pass/PassBase.td"

def NVPreparePools : Pass<"nv-prepare-pools", "::mlir::ModuleOp"> {
  let summary = "Make convolutions of sums over windows";
  let description = [{
    A sum over windows of an image, as an average pool has one, becomes a
    convolution of each channel by weights of 1. Where the image has been padded
    with zeros before, they are the convolution's pads.

    ```mlir
    %p = tensor.insert_slice %x into %zeros[0, 0, 1, 1] [1, 16, 30, 30] [1, 1, 1, 1]
    %s = linalg.generic {... #window ...} ins(%p, %kernel) outs(%zero) {addf}
    // becomes
    %s = sdx.conv ins(%x, %ones : tensor<1x16x30x30xf32>, tensor<16x1x3x3xf32>)
        outs(%zero : tensor<1x16x15x15xf32>) {group = 16 : i64, ...}
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::arith::ArithDialect"];
}

def NVRoundOperands : Pass<"nv-round-operands", "::mlir::ModuleOp"> {
  let summary = "Round operands of products to what tensor cores take";
  let description = [{
    Operands of products and convolutions of f32 that have tiles are rounded to
    f16 or bf16 and back, where they are made, before they are reshaped or
    transposed. Who else takes the value takes it rounded, so that it is in
    memory once, unless it is a result of the model. With tf32 and bf16x3
    operands stay as they are, and the operation gets `nv.tf32` or `nv.bf16x3`,
    which allows its kernel to round them, or to take each as the sum of two
    bf16.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>) outs(...)
    // becomes, with precision=f16,
    %s = linalg.generic ins(%a : tensor<?x64xf32>) ... truncf -> tensor<?x64xf16>
    %t = linalg.generic ins(%s : tensor<?x64xf16>) ... extf -> tensor<?x64xf32>
    // ... the same of %b
    %r = sdx.matmul ins(%t, %v : tensor<?x64xf32>, tensor<64x32xf32>) outs(...)
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

def NVPrepareProducts : Pass<"nv-prepare-products", "::mlir::ModuleOp"> {
  let summary = "Bring products into forms that have kernels";
  let description = [{
    Products of f16 and bf16 that were turned into f32 are taken as they were,
    the right-hand side of products of bytes is transposed, so that its elements
    follow each other along K, as are weights of f32 that warpgroups multiply
    in fewer bits, and products without tiles become linalg. All
    convolutions and pools stay, and so do products by packed weights, unless
    blocks of these are no whole words. A product by weights, of known sizes,
    whose result is read as slices of whole columns only, as queries, keys and
    values are, becomes one product for each slice.

    ```mlir
    %a = linalg.generic ins(%x : tensor<?x64xf16>) ... extf -> tensor<?x64xf32>
    %b = linalg.generic ins(%w : tensor<64x32xf16>) ... extf
    %r = sdx.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>) outs(...)
    // becomes
    %r = sdx.matmul ins(%x, %w : tensor<?x64xf16>, tensor<64x32xf16>) outs(...)
    ```
  }];
  let dependentDialects = ["::sardonyx::nv::NVDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NVAssignLayouts : Pass<"nv-assign-layouts", "::mlir::ModuleOp"> {
  let summary = "Put channels last where tensor cores convolve";
  let description = [{
    A convolution for tensor cores becomes an `nv.conv`, whose operands have
    channels last: what is multiplied lies in pieces of 16 bytes. So do the
    elementwise operations, slices, pools and other convolutions that read its
    result, up to those that have no such form: images are transposed where a
    region of such operations begins or ends. Channels are filled up with zeros
    to whole pieces.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<1x64x56x56xf16>, tensor<64x64x3x3xf16>) ...
    %r = linalg.generic ins(%y) ... maximumf
    // becomes
    %t = linalg.transpose ins(%x : tensor<1x64x56x56xf16>) ... permutation = [0, 2, 3, 1]
    %v = linalg.transpose ins(%w : tensor<64x64x3x3xf16>) ... permutation = [0, 2, 3, 1]
    %y = nv.conv ins(%t, %v : tensor<1x56x56x64xf16>, tensor<64x3x3x64xf16>) ...
    %s = linalg.generic ins(%y : tensor<1x56x56x64xf32>) ... maximumf
    %r = linalg.transpose ins(%s : tensor<1x56x56x64xf32>) ... permutation = [0, 3, 1, 2]
    ```
  }];
  let dependentDialects = ["::sardonyx::nv::NVDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::affine::AffineDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def NVFuseIntoProducts : Pass<"nv-fuse-into-products", "::mlir::ModuleOp"> {
  let summary = "Compute more in kernels of few rows than the product";
  let description = [{
    A kernel around a product of few rows takes in what would be started for
    itself before it: another product of the same rows, the result of which
    nothing else reads, and the reductions of rows that make its left-hand side,
    if only such products read them. Each of these then computes the rows. A
    kernel that reduces rows of a product whose sums blocks will share becomes
    one with it, in which it adds these up, and so does one behind a product
    whose blocks will be in clusters that have whole rows. Kernels of several
    products of the same rows get `nv.together`, their number.

    What alone reads the result of a product of few rows becomes one with it,
    too, where an element hangs on its own column and one that a block has
    beside it, as after a rotary embedding, and where the product's elements are
    the first or the last ones along a dimension of a larger result, as in a
    cache.

    ```mlir
    %n = sdx.call @k0_rows(%x, %scale : ...) outs(...) -> tensor<1x1024xf16>
    %g = sdx.call @k1_matmul(%n, %v : ...) outs(...) -> tensor<1x2816xf32>
    %u = sdx.call @k2_matmul(%n, %w, %g : ...) outs(...) -> tensor<1x2816xf16>
    // becomes
    %u = sdx.call @k0_rows_k1_matmul_k2_matmul(%x, %scale, %v, %w : ...)
        outs(...) -> tensor<1x2816xf16>
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // SARDONYX_TARGETS_NVPTX_LAYOUTPASSES
