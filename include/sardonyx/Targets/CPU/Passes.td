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

#ifndef SARDONYX_TARGETS_CPU_PASSES
#define SARDONYX_TARGETS_CPU_PASSES

include "mlir/Pass/PassBase.td"

def CPULowerContractions
    : Pass<"cpu-lower-contractions", "::mlir::func::FuncOp"> {
  let summary = "Lower matrix product kernels to register-tiled loops";
  let description = [{
    A kernel around one `cpu.packed_matmul` becomes loops over panels of the
    right-hand side and blocks of rows; the accumulators of a tile are vectors
    that stay in registers through the loop over K. Elementwise operations on
    the product are applied to the accumulators before they are stored. Tiles
    at the edges are narrower or masked; any size may be dynamic. Where a panel
    is used by several tiles of rows, each of them fetches a part of the next
    panel into the L2 cache. On targets with `f32 = amx_bf16x6` large products
    of f32 become products of bf16 by the tile registers of AMX.

    ```mlir
    %m = cpu.packed_matmul ins(%a, %b) outs(%zero)
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
    "::sardonyx::cpu::CPUDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPUSelectPlans : Pass<"cpu-select-plans", "::mlir::func::FuncOp"> {
  let summary = "Choose how each kernel is computed";
  let description = [{
    Sets `cpu.plan` of kernels: the form of their loops, as their shapes, the
    layout of their operands and the machine ask for: `#cpu.conv_plan` around a
    `cpu.conv`, `#cpu.narrow_conv_plan` around a `cpu.narrow_conv`,
    `#cpu.channel_window_plan` around a `cpu.depthwise_narrow_conv` or a
    `cpu.channels_last_max_pool`, `#cpu.matmul_plan` around a `cpu.packed_matmul`, `#cpu.pool_plan`
    around a pool, `#cpu.rows_plan` where operations share an iteration
    space. Any other is loops, an operation at a time
    (`#cpu.loops<vectors = true>`), and `sdx.plan_reason` says why, as does a
    remark of the category `plans`. A plan that is there stays; where the kernel
    cannot be computed by it, that is an error.

    ```mlir
    func.func private @k0_conv(...) attributes {sdx.kernel} {
      %y = cpu.conv ins(%x, %w : ..., tensor<1x1x27x8xf32>) ...
    // becomes
    func.func private @k0_conv(...)
        attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
    ```
  }];
  let dependentDialects = ["::sardonyx::cpu::CPUDialect"];
}

def CPUDecomposePackedOps
    : Pass<"cpu-decompose-packed-ops", "::mlir::func::FuncOp"> {
  let summary = "Make loop nests of packed operations where a plan asks for it";
  let description = [{
    In kernels whose plan is `#cpu.loops`, products and convolutions on packed
    operands become an unpacking and a loop nest on what it gives, and packings
    and poolings become loop nests. Filters that were transformed for Winograd's
    algorithm are transformed back, so that the sum is direct. Then
    `cpu-lower-loops` takes the kernel.

    ```mlir
    %y = cpu.packed_matmul ins(%a, %p : tensor<?x768xf32>, tensor<2x768x32xf32>)
        outs(%zero : tensor<?x40xf32>) ...
    // becomes
    %w = linalg.generic ... outs(%e : tensor<40x768xf32>) {
      %n = linalg.index 0
      %k = linalg.index 1
      %v = tensor.extract %p[%n floordiv 32, %k, %n mod 32]
      linalg.yield %v
    }
    %y = linalg.generic ... ins(%a, %w) outs(%zero : tensor<?x40xf32>)
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect", "::mlir::affine::AffineDialect",
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def CPULowerConv : Pass<"cpu-lower-conv", "::mlir::func::FuncOp"> {
  let summary = "Lower convolution kernels to register-tiled loops";
  let description = [{
    A kernel around one `cpu.conv` becomes a parallel loop over panels of
    consecutive output positions. The inputs of a panel are gathered into a
    scratch matrix [K][width], padding and strides included, and multiplied by
    all blocks of output channels with the tiles of
    `cpu-lower-contractions`. Of stride 2 and few filters, even and
    odd rows and columns of the input are put into planes of their own first, so
    that nothing is gathered. Few output positions lie in the rows of tiles and
    channels in their lanes. Filters that are sums of bf16 are multiplied by
    tile registers. A depthwise convolution reads its input in
    place, vectorised along the innermost dimension.

    ```mlir
    %y = cpu.conv ins(%x, %w) outs(%zero) {kernel_shape = array<i64: 3, 3> ...}
    // becomes
    scf.parallel (%n, %g, %panel, %channels) = ... {
      %scratch = memref.alloc() : memref<576x32xf32>
      // pack, then for each block of 8 channels multiply and store
    }
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPUStartFromAddends
    : Pass<"cpu-start-from-addends", "::mlir::func::FuncOp"> {
  let summary = "Start sums of bytes from what is added to them";
  let description = [{
    Where a kernel adds numbers of their channel to the sums of a
    `cpu.narrow_conv` of bytes, such as a bias or what zero points ask for, the
    sums start from these. They wrap, so that the order is free.

    ```mlir
    %y = cpu.narrow_conv ins(%x, %w) outs(%zeros)
    linalg.generic ins(%y, %bias) { addi %sum, %b; ... }
    // becomes
    %start = linalg.generic ins(%bias) { yield %b }
    %y = cpu.narrow_conv ins(%x, %w) outs(%start)
    linalg.generic ins(%y, %bias) { ... }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect"];
}

def CPULowerNarrowConv : Pass<"cpu-lower-narrow-conv", "::mlir::func::FuncOp"> {
  let summary = "Lower narrow convolutions to register-tiled loops";
  let description = [{
    A kernel around one `cpu.narrow_conv` becomes loops over chunks of output
    positions, whose windows are copied to scratch memory unless they are rows of
    the input, and panels of filters; the micro-kernel of the plan multiplies
    tiles of them, and elementwise operations on the sums are applied before they
    are stored.

    ```mlir
    %y = cpu.narrow_conv ins(%x, %w) outs(%zeros)
    // becomes
    scf.parallel (%group, %chunk) = ... {
      %windows = memref.alloc() : memref<192x576xi8>
      scf.for %position = ... {... vector.load %x ... vector.store ..., %windows}
      scf.for %panel = ... {
        scf.for %row = ... {
          %sums:12 = scf.for %k = ... {
            ... llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPULowerChannelWindows
    : Pass<"cpu-lower-channel-windows", "::mlir::func::FuncOp"> {
  let summary = "Lower windows of single channels to vectors";
  let description = [{
    Kernels around one `cpu.depthwise_narrow_conv` or
    `cpu.channels_last_max_pool` become loops over lines of outputs, vectors of
    channels and a few positions at a time.

    ```mlir
    %y = cpu.channels_last_max_pool ins(%x) outs(%lowest)
    // becomes
    scf.parallel (%line) = ... {
      scf.for %channel = %c0 to %c64 step %c64 {
        scf.for %position = ... {
          %pixel = vector.load %x[...] : memref<?xi8>, vector<64xi8>
          %0 = arith.maxui %lowest, %pixel : vector<64xi8>
          ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPULowerPool : Pass<"cpu-lower-pool", "::mlir::func::FuncOp"> {
  let summary = "Lower pooling kernels to vectors";
  let description = [{
    A kernel around one `sdx.max_pool` or `sdx.average_pool` becomes a parallel
    loop over planes. For each row of the result the largest elements of the
    window's rows, or their sums, go into a line of scratch, of which each vector
    of results takes what its windows' columns see. The scratch is as long as the
    windows reach, and lowest or zero where they see nothing. Rows outside of the
    input are those at its edge, which the window sees anyway, for the largest,
    and left out of sums. Nothing is copied into a padded tensor.

    ```mlir
    %y = sdx.max_pool ins(%x) outs(%lowest) {kernel_shape = array<i64: 3, 3> ...}
    // becomes
    scf.parallel (%n, %c, %rows) = ... {
      %lines = memref.alloc() : memref<8x192xf32>
      // for each row: the largest of three rows, then of three columns
    }
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPULowerAttention : Pass<"cpu-lower-attention", "::mlir::func::FuncOp"> {
  let summary = "Lower attention kernels to loops over blocks of keys";
  let description = [{
    A kernel around an `sdx.attention` becomes a loop over tasks, each of which
    has some queries, of all heads that share keys. It passes the keys in blocks:
    they are packed in panels, scores of some rows are computed in registers
    (multiply-adds of f32), changed by the body on vectors, and become
    exponentials in memory that stays in the cache, by which values are
    multiplied. Keys that the body excludes by their number are not visited. The
    plan (`#cpu.attention_plan`) says how many queries, rows and keys. Operands
    of bf16, or of f32 that may be rounded to it (`sdx.rounded`), are multiplied
    in pairs where the target does that, by tile registers if it has them.

    ```mlir
    %r = sdx.attention ... ins(%q, %k, %v : tensor<12x128x64xf32>, ...) outs(...) {...}
    // becomes
    scf.parallel (%pair, %task) = (%c0, %c0) to (%c12, %c1) step (%c1, %c1) {
      %memory = memref.alloc() {alignment = 64 : i64} : memref<...xi8>
      scf.for %key = %c0 to %c128 step %c128 {
        ... vector.shuffle ... vector.fma ... math.exp ... vector.fma ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPUChooseConvForm
    : Pass<"cpu-choose-conv-form", "::mlir::func::FuncOp"> {
  let summary = "Choose how each convolution is computed";
  let description = [{
    Runs on the host program, before constants are hoisted, and changes how the
    weights of a convolution are packed:

    - A convolution of 3x3 without dilations or groups, with enough channels and
      positions, goes by Winograd's algorithm: it and the packing of its weights
      get `winograd` in their `filters`. F(4x4, 3x3) takes a quarter of the
      multiplications, 36 values of K a channel, and its rounding errors are
      about twice those of the direct form; F(2x2, 3x3), for pictures too small
      for that, takes 4 of 9, and 16 values. With strides of 2 they take 9 of 16
      and 25 of 36 of the multiplications, and `stride` in `filters` tells the
      packing. Weights of pictures with no more
      tiles than a register of 512 bits has lanes, and of enough filters, come
      in blocks of a vector of filters; with vectors of 256 bits the others come
      in blocks of a tile's six.
    - A convolution with so few output positions that they would leave vectors
      half empty gets weights in blocks of a vector of channels.

    Where f32 is to be exact no convolution goes by Winograd's algorithm. With
    `numerics=f32` those of fewer than 64 channels go by F(2x2, 3x3), for of
    shorter sums the rounding errors of F(4x4, 3x3) are more than twice those of
    the direct form. With `numerics=fast` strides of 2 are left to products of
    bf16 where the target has them, which are faster than what the algorithm
    saves.

    ```mlir
    %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) ... -> tensor<1x8x576x8xf32>
    %y = cpu.conv ins(%x, %p) ...
    // becomes
    %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) ...
        {filters = #cpu.filters<f32, rows = 8, winograd = 4>}
        -> tensor<1x8x2304x8xf32>
    %y = cpu.conv ins(%x, %p) ...
        {filters = #cpu.filters<f32, rows = 8, winograd = 4>}
    ```
  }];
  let options = [
    Option<"numerics", "numerics", "::sardonyx::Numerics",
           "::sardonyx::Numerics::F32", "How exact f32 is",
           [{::sardonyx::getNumericsValues()}]>
  ];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def CPULowerPacking : Pass<"cpu-lower-packing", "::mlir::func::FuncOp"> {
  let summary = "Lower kernels that pack operands to loops over vectors";
  let description = [{
    A kernel of one `cpu.pack_rhs` or `cpu.pack_conv_weights` becomes vector
    copies, or transposes of square tiles in registers where rows turn into
    columns.

    ```mlir
    %p = cpu.pack_rhs ins(%b : tensor<768x3072xf32>) outs(%e)
    // becomes
    scf.parallel (%panel) = (%c0) to (%c96) step (%c1) {
      scf.for %k = %c0 to %c768 step %c1 {
        %v = vector.load %b[%k, %column] : ..., vector<32xf32>
        vector.store %v, %out[%panel, %k, %c0] : ..., vector<32xf32>
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPULowerRows : Pass<"cpu-lower-rows", "::mlir::func::FuncOp"> {
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
    "::sardonyx::cpu::CPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def CPULowerLoops : Pass<"cpu-lower-loops", "::mlir::func::FuncOp"> {
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
    "::sardonyx::cpu::CPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def CPUApproximateMath
    : Pass<"cpu-approximate-math", "::mlir::func::FuncOp"> {
  let summary = "Expand math functions on vectors of f32 to arithmetic";
  let description = [{
    exp, expm1, log, log1p, tanh, erf, asin, acos and atan on vectors become a
    range reduction and a polynomial; f16 and bf16 go through f32. So do sin,
    cos, tan, powf and remainders where all lanes have operands of usual size;
    where one has not, these call the library. Other functions and other types
    are left to the scalar math library. A math.fma is a multiply-add of one
    instruction or two, as the processor has it.

    ```mlir
    %e = math.exp %x : vector<16xf32>
    // becomes
    %n = vector.fma ... ; arith.subf ... ; arith.shli ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::cpu::CPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

include "sardonyx/Targets/CPU/LayoutPasses.td"

#endif // SARDONYX_TARGETS_CPU_PASSES
