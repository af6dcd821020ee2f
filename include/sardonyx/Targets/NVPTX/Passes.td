//===- Passes.td - Kernels for GPUs of NVIDIA ---------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_PASSES
#define SARDONYX_TARGETS_NVPTX_PASSES

include "sardonyx/Targets/NVPTX/LayoutPasses.td"
include "sardonyx/Targets/NVPTX/MovementPasses.td"

include "mlir/Pass/PassBase.td"

def NVSelectPlans : Pass<"nv-select-plans", "::mlir::func::FuncOp"> {
  let summary = "Choose how each kernel is computed";
  let description = [{
    Sets `nv.plan` of kernels around a product, a convolution or attention: the
    tiles that its shape, its types and the device ask for, or, where rows are few, how many
    threads read a row (`#nv.few_rows_plan`). A plan that is there stays;
    where the kernel cannot be computed by it, that is an error. Any kernel can
    be `#nv.loops`.

    ```mlir
    func.func private @k0_matmul(...) attributes {sdx.kernel} {
      %r = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) ...
    // becomes
    func.func private @k0_matmul(...) attributes {sdx.kernel,
        nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 64, ...>} {
    ```
  }];
  let dependentDialects = ["::sardonyx::nv::NVDialect"];
}

def NVSetThreadCount : Pass<"nv-set-thread-count", "::mlir::ModuleOp"> {
  let summary = "Cut loops over ranges for the threads of a device";
  let description = [{
    Loops that are cut into as many ranges as there are threads, as counts of
    what a NonZero finds, are cut into 1024.

    ```mlir
    %threads = sdx.thread_count : index
    // becomes
    %threads = arith.constant 1024 : index
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def NVLowerMatmul : Pass<"nv-lower-matmul", "::mlir::func::FuncOp"> {
  let summary = "Lower matrix products to tiles of blocks";
  let description = [{
    A kernel around an `sdx.matmul` becomes a loop over tiles of the result, each
    of which a block computes: tiles of the operands go to shared memory, several
    at a time (cp.async), the sums are in registers, by multiply-adds or by
    mma.sync, and what follows the product is applied to them. Where the plan says
    `wgmma` the hardware copies the tiles (`nv.tensor_map`), by the word of one
    warpgroup of the block, and the others multiply them where they lie, and
    have it copy results to the device's memory where their rows are multiples
    of 16 bytes. There are no more blocks than run at a time: each goes from tile
    to tile. Whatever cannot follow a product so is left to `nv-lower-loops`.
    Where rows are few, warps read the right-hand side past shared memory; where
    their number is open there is code for both, and the host starts what is
    right for it.

    What reduces rows of the result is computed by another loop over blocks, which
    reads the sums from memory. Where the plan has a `cluster` its blocks have the
    sums of whole rows in their shared memory, and each reduces some of the rows:
    the loop is one, with `nv.cluster`.

    ```mlir
    %r = sdx.matmul ins(%a, %b : tensor<?x64xf16>, tensor<64x32xf16>) outs(%zeros)
    // becomes
    scf.parallel (%block) = (%c0) to (%tiles) step (%c1) {
      %shared = nv.shared_memory : memref<65536xi8, #gpu.address_space<workgroup>>
      nvvm.cp.async.shared.global ...
      %sums:64 = scf.for %k = %c0 to %steps step %c1 iter_args(...) {
        ... nvvm.mma.sync ...
    } {nv.step = "matmul", nv.threads = 128 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def NVLowerDequantMatmul
    : Pass<"nv-lower-dequant-matmul", "::mlir::func::FuncOp"> {
  let summary = "Lower products by packed weights to warps and tiles";
  let description = [{
    A kernel around an `sdx.dequant_matmul` reads its weights as they are packed,
    16 bytes at a time, and unpacks them in registers. Of up to 8 rows a warp
    computes four columns, by rows that lie in shared memory, with sums of f32;
    warps share columns along K where these are few. Of more rows a block
    computes a tile as `nv-lower-matmul` has it do, with weights that become
    numbers of the left side's type on their way to shared memory. Where the
    number of rows is open there is code for all, and the host starts what is
    right for it.

    ```mlir
    %r = sdx.dequant_matmul ins(%x, %w, %s : tensor<1x768xf16>, tensor<3072x24x16xi8>, ...
    // becomes
    scf.parallel (%block) = (%c0) to (%c96) step (%c1) {
      %four = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      ...
      %0 = arith.andi %word, %mask : i32
      %1 = arith.ori %0, %magic : i32
      %2 = arith.bitcast %1 : i32 to f32
      ...
    } {nv.step = "rows", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerConv : Pass<"nv-lower-conv", "::mlir::func::FuncOp"> {
  let summary = "Lower convolutions to products of tiles";
  let description = [{
    A kernel around an `sdx.conv` becomes products of tiles as `nv-lower-matmul`
    makes them, for each image and group: of the filters by the windows of the
    image, which are gathered when a tile of them goes to shared memory (an
    implicit GEMM). What lies in the pads is 0 there.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<?x64x56x56xf32>, tensor<64x64x3x3xf32>) ...
    // becomes
    scf.parallel (%block) = (%c0) to (%tiles) step (%c1) {
      %inside = arith.cmpi ult, %row, %height : index
      ...
      nvvm.cp.async.shared.global %to, %from, 4, cache = ca, %bytes
      ...
    } {nv.step = "conv", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerAttention : Pass<"nv-lower-attention", "::mlir::func::FuncOp"> {
  let summary = "Lower attention to tiles of blocks";
  let description = [{
    A kernel around an `sdx.attention` becomes a loop over tiles of queries, each
    of which a block has with all heads that share their keys. It goes over tiles
    of keys and values, which go to shared memory ahead (cp.async): scores and
    probabilities stay in registers, and the softmax is computed as scores come.
    f16 and bf16 are multiplied by mma.sync, f32 by multiply-adds. By warpgroups
    (compute capability 9.0) tiles are copied by TMA and multiplied by wgmma;
    where sizes are open the host takes that form for many scores. Keys that the
    body excludes by a bound are not visited. Where queries are few, blocks share
    the keys, and a second loop adds up what they have.

    ```mlir
    %r = sdx.attention ... ins(%q, %k, %v : tensor<12x128x64xf16>, ...) outs(...) {...}
    // becomes
    scf.parallel (%block) = (%c0) to (%tiles) step (%c1) {
      %shared = nv.shared_memory : memref<46080xi8, #gpu.address_space<workgroup>>
      nvvm.cp.async.shared.global ...
      %state:36 = scf.for %tile = %c0 to %count step %c1 iter_args(...) {
        ... nvvm.mma.sync ...
        ... gpu.shuffle xor ...
    } {nv.step = "attention", nv.threads = 128 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def NVLowerWindows : Pass<"nv-lower-windows", "::mlir::func::FuncOp"> {
  let summary = "Lower convolutions and pools to strips of outputs";
  let description = [{
    A kernel around an `sdx.conv` that no tiles are for, as where a group has few
    filters, or around an `sdx.max_pool` becomes a loop over strips of up to four
    outputs below each other, of up to four filters. A thread has one, its
    neighbour the one beside it. It reads each element that its windows see once,
    or what changes nothing where that lies in the pads. Windows of more than 64
    taps are loops.

    ```mlir
    %y = sdx.conv ins(%x, %w : tensor<1x32x56x56xf16>, tensor<32x1x3x3xf16>) ...
    // becomes
    scf.parallel (%block) = (%c0) to (%c98) step (%c1) {
      %inside = arith.cmpi ult, %row, %c56 : index
      ...
      %value = llvm.load %from : !llvm.ptr<1> -> f16
      %sum = math.fma %wide, %weight, %0 : f32
      ...
    } {nv.step = "conv", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerRows : Pass<"nv-lower-rows", "::mlir::func::FuncOp"> {
  let summary = "Lower reductions of rows to warps and blocks";
  let description = [{
    A kernel of reductions over trailing dimensions, with elementwise operations
    before, between and after them (softmax, normalisations), becomes a loop over
    rows. A warp has a row of at most 1024 elements, a block a longer one, and a
    part of a warp, down to a thread, one of which a thread would have less than
    four; sums are combined by shuffles, and through shared memory. Where a thread
    has few elements of a row it keeps them in registers. Reductions that are no
    single operation are left to `nv-lower-loops`.

    ```mlir
    %m = linalg.generic {... ["parallel", "reduction"]} ins(%x) outs(%low) {maxnumf}
    // becomes
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      ...
      %other, %valid = gpu.shuffle xor %most, %c16, %c32 : f32
      %more = arith.maxnumf %most, %other : f32
    } {nv.step = "rows", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerElementwise
    : Pass<"nv-lower-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Lower elementwise kernels to threads with several elements";
  let description = [{
    In a kernel of elementwise operations a thread computes neighbours of all
    results, as many as 16 bytes of the widest elements hold, where rows are a
    multiple of that, so that memory is accessed 16 bytes at a time. Reductions,
    results of several shapes, and several operations on open shapes are left to
    other passes.

    ```mlir
    %r = linalg.generic {... ["parallel", "parallel"]} ins(%x : tensor<8x64xf32>) ...
    // becomes
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      ...
      scf.if %inside {
        %a = memref.load %x[%i, %j]
        %b = memref.load %x[%i, %j1]
        ...
    } {nv.step = "elementwise", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerLoops : Pass<"nv-lower-loops", "::mlir::func::FuncOp"> {
  let summary = "Lower any kernel to loops whose iterations are threads";
  let description = [{
    Takes whatever kernel is left and makes parallel loops of it, each of which
    is to be started on the device with a thread for each iteration: one for each
    linalg operation over its parallel dimensions, with sequential loops for its
    reductions inside, whose sums are values, and one for each loop over tasks
    (scf.forall). What else reads or writes the device's memory becomes a loop of
    one iteration, and what later loops need of it goes through the device's
    memory. Sizes and scalar arguments are computed by the host. `nv.step` says
    what a loop computes.

    A task that searches (`sdx.any`) is a warp's, whose threads do the same but
    test an index each.

    Temporaries of a kernel are memref.alloc, of a thread memref.alloca where
    they are small and their size is known, and otherwise pieces of a buffer that
    is allocated before the loop.

    ```mlir
    %s = linalg.generic {... ["parallel", "reduction"]} ins(%x) outs(%zero) {addf}
    // becomes
    scf.parallel (%i) = (%c0) to (%m) step (%c1) {
      %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
        %v = memref.load %x[%i, %k]
        %a = arith.addf %acc, %v : f32
        scf.yield %a : f32
      }
      memref.store %sum, %y[%i]
    } {nv.step = "reduce"}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVComputeSlices : Pass<"nv-compute-slices", "::mlir::ModuleOp"> {
  let summary = "Put small tensors together by elements";
  let description = [{
    A tensor of known size, not a large one, that is put together of slices
    becomes one operation, which asks of each element which part it is in. What
    computes on elements of a part and what does so with the whole go into it, if
    nothing else needs them.

    ```mlir
    %0 = tensor.insert_slice %a into %empty[0, 0] [4, 32] [1, 1] : ...
    %1 = tensor.insert_slice %b into %0[0, 32] [4, 32] [1, 1] : ...
    // becomes
    %1 = linalg.generic {... ["parallel", "parallel"]} outs(%empty : tensor<4x64xf32>) {
      %j = linalg.index 1 : index
      %k = arith.subi %j, %c32 : index
      %second = arith.cmpi ult, %k, %c32 : index
      %v = scf.if %second -> f32 {
        %w = tensor.extract %b[%i, %k] : tensor<4x32xf32>
        ...
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def NVMergeLaunches : Pass<"nv-merge-launches", "::mlir::ModuleOp"> {
  let summary = "Start independent kernels together";
  let description = [{
    Calls in `@main` of kernels none of which uses what another one writes become
    the call of one kernel, where nothing between them uses that memory either.
    Its blocks are those of all, one kernel's after another's: of the same kernel
    they choose between arguments, of different ones, which have blocks of the
    same size and few of them, between branches. Steps of kernels that have
    several are merged one by one.

    ```mlir
    sdx.call @k3_matmul(%x, %q : ...) outs(%a : ...)
    sdx.call @k3_matmul(%x, %k : ...) outs(%b : ...)
    // becomes
    sdx.call @k3_matmul_x2(%x, %q, %k : ...) outs(%a, %b : ...)
    func.func private @k3_matmul_x2(...) attributes {sdx.kernel} {
      scf.parallel (%block) = (%c0) to (%c192) step (%c1) {
        %first = arith.cmpi slt, %block, %c96 : index
        %w = arith.select %first, %q, %k : memref<768x768xf16, ...>
        ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVOutlineKernels : Pass<"nv-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "Make kernels of the device of parallel loops";
  let description = [{
    Each parallel loop in the body of a function with `sdx.kernel` becomes a
    kernel in the module `@device`, and an `sdx.launch` that starts it with a
    thread for each iteration, in blocks of 256. A parameter is the address of
    the first element of a buffer, one of its open sizes and strides, or a
    scalar; an `nv.tensor_map` is a parameter of 128 bytes. Constants are computed
    in the kernel. A kernel that checks gets the
    run's failure record.

    ```mlir
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %v = memref.load %x[%i] : memref<?xf32, #gpu.address_space<global>>
      ...
    // becomes
    sdx.launch "k0_elementwise" blocks(%blocks, %c1, %c1) threads [256, 1, 1]
        (%x, %n, %y, ... : ...)
    gpu.module @device {
      gpu.func @k0_elementwise(%x: !llvm.ptr<1>, %n: index, ...) kernel {
        %block = gpu.block_id x
        %thread = gpu.thread_id x
        ...
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"
  ];
}

def NVExpandMath : Pass<"nv-expand-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Expand math functions to arithmetic";
  let description = [{
    Functions that PTX has no exact instruction for become range reductions and
    polynomials, as the CPU's are; f16 and bf16 are computed in f32, and f32 in f64
    where it has no expansion of its own. What is left
    is an instruction: square roots, absolute values, rounding, multiply-adds.

    ```mlir
    %e = math.exp %x : f32
    // becomes
    %n = math.fma ... ; arith.subf ... ; arith.shli ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def NVConvertToNVVM : Pass<"nv-convert-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Convert kernels to the dialects llvm and nvvm";
  let description = [{
    One conversion with the patterns of gpu, memref, arith, math, vector, scf, cf
    and affine. A check that fails sets the first word of the failure record from
    0 to 1; the thread that did writes the number of the sentence, a position in
    `nv.messages` of the module, and the values, and each thread that failed
    ends. A function that is no instruction is an error at its operation.

    ```mlir
    sdx.check %ok, "node 'g' (Gather): index {0} is out of range" (%i)
    // becomes
    llvm.cond_br %ok, ^go_on, ^failed
    ^failed:
      %first = llvm.cmpxchg %record, %c0, %c1 monotonic monotonic : ...
      ...
      nvvm.exit
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::affine::AffineDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def NVVerify : Pass<"nv-verify", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Check kernels before code is made of them";
  let description = [{
    Kernels call nothing, their parameters take up at most 4096 bytes, what a
    thread has of its own at most 4096, and the shared memory that they declare
    is at most 48 KiB. Anything else is an error at the operation.
  }];
}

#endif // SARDONYX_TARGETS_NVPTX_PASSES
