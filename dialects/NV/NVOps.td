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

def NV_Pointer
    : TypeConstraint<CPred<"::llvm::isa<::mlir::LLVM::LLVMPointerType>($_self)">,
                     "pointer", "::mlir::LLVM::LLVMPointerType">,
      BuildableType<"::mlir::LLVM::LLVMPointerType::get("
                    "$_builder.getContext())">;

def NV_TensorMapOp : Op<NV_Dialect, "tensor_map", [Pure]> {
  let summary = "What copies of boxes of a tensor go by";
  let description = [{
    The `source` as a tensor of these `sizes`, of which the innermost comes
    first and whose elements follow each other in memory; a copy (TMA) brings a
    `box` of it to shared memory, whose rows are swizzled by so many bytes, 0
    being none, or one from there to it. What lies outside of the tensor is 0,
    and is not written. With `tf32` numbers of f32
    are rounded on the way. Sizes are at least 1, and all but the last times an
    element's bytes multiples of 16. The host makes it; a kernel has its
    address, that of a parameter.

    With corners the source is images with channels last, and a box as many
    channels, of as many pixels that follow each other, row by row and image by
    image, where windows begin (im2col): `steps` apart in an image from `lower`
    on, up to `upper` behind its end. A copy is of what lies some offsets behind
    these pixels.

    ```mlir
    %map = nv.tensor_map %x sizes(%k, %m) box [64, 128] swizzle 128
        : memref<?x512xf16, #gpu.address_space<global>>
    %images = nv.tensor_map %y sizes(%c, %w, %h, %n) box [64, 128] swizzle 128
        lower [-1, -1] upper [-1, -1] steps [1, 2, 2, 1]
        : memref<?x56x56x64xf16, #gpu.address_space<global>>
    ```
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<Index>:$sizes,
                       DenseI64ArrayAttr:$box, I64Attr:$swizzle,
                       UnitAttr:$tf32,
                       OptionalAttr<DenseI64ArrayAttr>:$lower,
                       OptionalAttr<DenseI64ArrayAttr>:$upper,
                       OptionalAttr<DenseI64ArrayAttr>:$steps);
  let results = (outs NV_Pointer:$map);
  let assemblyFormat = [{
    $source `sizes` `(` $sizes `)` `box` $box `swizzle` $swizzle
    (`tf32` $tf32^)? (`lower` $lower^)? (`upper` $upper^)? (`steps` $steps^)?
    attr-dict `:` type($source)
  }];
  let extraClassDeclaration = [{
    /// Whether boxes are of pixels that follow each other.
    bool isImage() { return getLower().has_value(); }
    /// The largest number that a corner can be from 0 in an image of so many
    /// dimensions, and an offset.
    static int64_t mostCorner(int64_t spatial) {
      return spatial == 1 ? 32767 : spatial == 2 ? 127 : 15;
    }
    static int64_t mostOffset(int64_t spatial) {
      return 2 * mostCorner(spatial) + 1;
    }
    static constexpr int64_t kMostStep = 8;
  }];
  let hasVerifier = 1;
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
