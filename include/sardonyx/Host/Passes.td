//===- Passes.td - The host program's code ----------------*- tablegen -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the host program to functions that the runtime can call, and calls of
// the runtime: the same for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_HOST_PASSES
#define SARDONYX_HOST_PASSES

include "mlir/Pass/PassBase.td"

def SDXBufferizeHost : Pass<"sdx-bufferize-host", "::mlir::ModuleOp"> {
  let summary = "Bufferize the host functions";
  let description = [{
    Tensor arguments of host functions become read-only memrefs, results are
    written to `sdx.output_buffer`s, the rest goes through one-shot
    bufferization. Kernels write straight into the outputs where they can.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %r = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
          -> tensor<4xf32>
      return %r : tensor<4xf32>
    // becomes
    func.func @main(%x: memref<4xf32>) {
      %out = sdx.output_buffer 0 () : memref<4xf32>
      sdx.call @k0(%x : memref<4xf32>) outs(%out : memref<4xf32>)
      return
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXPlaceBuffers : Pass<"sdx-place-buffers", "::mlir::ModuleOp"> {
  let summary = "Place buffers in the host's or a device's memory";
  let description = [{
    Where the machine of kernels has memory of its own (`getMemorySpace` of
    `sdx.target`), what they read and write lies there, and copies are put where
    the host's operations need it, or where kernels need what the host writes.
    Inputs, constants and what `@init` gives have a place, too: one that is
    needed in both becomes two arguments.

    ```mlir
    func.func @main(%x: memref<4xf32> {sdx.input = 0}) {
      %a = memref.alloc() : memref<4xf32>
      sdx.call @k0(%x : memref<4xf32>) outs(%a : memref<4xf32>)
      %n = memref.load %a[%c0] : memref<4xf32>
    // becomes
    func.func @main(%x: memref<4xf32, #gpu.address_space<global>> {sdx.input = 0}) {
      %a = memref.alloc() : memref<4xf32, #gpu.address_space<global>>
      sdx.call @k0(%x : ...) outs(%a : ...)
      %h = memref.alloc() : memref<4xf32>
      memref.copy %a, %h : ...
      %n = memref.load %h[%c0] : memref<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def SDXOutlineDeviceCopies
    : Pass<"sdx-outline-device-copies", "::mlir::ModuleOp"> {
  let summary = "Make kernels of strided copies in a device's memory";
  let description = [{
    A copy within the memory of a device that is not of neighbouring elements
    becomes a call of a kernel, the same for all copies of one rank and element
    type.

    ```mlir
    memref.copy %a, %b : memref<4x8xf32, strided<[16, 1]>, #gpu.address_space<global>>
        to memref<4x8xf32, #gpu.address_space<global>>
    // becomes
    sdx.call @copy_2d_f32(%c : memref<?x?xf32, strided<[?, ?], offset: ?>, ...>)
        outs(%d : memref<?x?xf32, strided<[?, ?], offset: ?>, ...>)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect",
                           "::sardonyx::sdx::SDXDialect"];
}

def SDXPlanMemory : Pass<"sdx-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Place the host's buffers";
  let description = [{
    Buffers of static size get an offset in the arena of their memory space, by
    lifetime (greedy by size, aligned to 64 bytes, to 256 in a device's memory). Buffers of dynamic size are freed
    after their last use. A buffer that leaves the loop iteration or branch that made it is left
    to the end of the run.

    ```mlir
    %a = memref.alloc() : memref<16xf32>
    // becomes
    %arena = sdx.arena : memref<64xi8>
    %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
    ```
  }];
  let dependentDialects = ["::sardonyx::sdx::SDXDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::arith::ArithDialect"];
}

def SDXInstrumentHost : Pass<"sdx-instrument-host", "::mlir::ModuleOp"> {
  let summary = "Have the host program record its steps";
  let description = [{
    Each call of a kernel and each copy of `@main` is put between a look at the
    clock and a record that also tells its floating-point operations and the
    bytes of its operands, both computed from sizes where these are open. The
    module's `sdx.profile` tells the kernel, its form and its nodes for each
    record.

    ```mlir
    sdx.call @k3_matmul(%a, %w : memref<?x768xf32>, memref<24x768x32xf32>)
        outs(%c : memref<?x768xf32>)
    // becomes
    %begin = sdx.clock : i64
    sdx.call @k3_matmul(%a, %w : memref<?x768xf32>, memref<24x768x32xf32>)
        outs(%c : memref<?x768xf32>)
    sdx.record 0 from %begin flops %flops bytes %bytes
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def SDXLowerHostViews : Pass<"sdx-lower-host-views", "::mlir::func::FuncOp"> {
  let summary = "Write expanding views as sizes and strides";
  let description = [{
    `memref.expand_shape` becomes a `memref.reinterpret_cast`. Upstream's
    expansion of strided metadata takes no two open sizes in one group, which
    the shapes of a model often have: it ends the process.

    ```mlir
    %v = memref.expand_shape %m [[0, 1]] output_shape [%b, %s]
        : memref<?xf32> into memref<?x?xf32>
    // becomes
    %v = memref.reinterpret_cast %m to offset: [0], sizes: [%b, %s],
        strides: [%s, 1] : memref<?xf32> to memref<?x?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

def SDXLowerHostParallel
    : Pass<"sdx-lower-host-parallel", "::mlir::ModuleOp"> {
  let summary = "Outline parallel loops for the runtime's thread pool";
  let description = [{
    The body of each outermost `scf.parallel` becomes a function over a range
    of the linearised iterations, and the loop a call that
    `sdx-finalize-host` gives to `sdx_rt_parallel_for`. The grain, the least
    number of iterations worth a thread, follows from a static estimate of the
    body's work. Inner parallel loops become sequential. `sdx.thread_count`
    becomes a call of `sdx_rt_threads`.

    ```mlir
    scf.parallel (%i) = (%c0) to (%n) step (%c1) { ... }
    // becomes
    call @sdx_parallel_for_k_par0(%n, %grain, %a, %b) : ...
    func.func private @k_par0(%begin: index, %end: index, %a: ..., %b: ...)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def SDXLowerDeviceOps : Pass<"sdx-lower-device-ops", "::mlir::ModuleOp"> {
  let summary = "Lower launches and memory of a device to runtime calls";
  let description = [{
    `sdx.launch` becomes a call of `sdx_rt_launch`, allocations in a device's
    memory calls of `sdx_rt_device_alloc`, `sdx.failure_record` one of
    `sdx_rt_device_failure`. From here on types don't tell where memory is:
    `sdx.arena` and `sdx.output_buffer` of the device get `sdx.on_device`.

    ```mlir
    sdx.launch "k0" blocks(%n, %c1, %c1) threads [256, 1, 1] (%a : ...)
    // becomes
    llvm.call @sdx_rt_launch(%kernel, %size, %count, %args)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect"
  ];
}

def SDXLowerHostOps : Pass<"sdx-lower-host-ops", "::mlir::ModuleOp"> {
  let summary = "Lower calls, checks and memory requests to runtime calls";
  let description = [{
    `sdx.call` becomes a call of the kernel, `sdx.check` one of `sdx_rt_check`
    (in kernels a branch around `sdx_rt_check_failed`), `sdx.arena` and `sdx.output_buffer` calls of the
    runtime. Records the types of the entry points' arguments for
    `sdx-finalize-host`.

    ```mlir
    sdx.call @k(%a) outs(%b) : ...
    // becomes
    func.call @k(%a, %b) : (memref<?xf32>, memref<?xf32>) -> ()
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::sardonyx::sdx::SDXDialect"
  ];
}

def SDXLowerHostCopies : Pass<"sdx-lower-host-copies", "::mlir::ModuleOp"> {
  let summary = "Lower copies";
  let description = [{
    `memref.copy` between contiguous buffers becomes `memcpy`, also of rows that
    a target leaves to it in kernels, any other a call of `sdx_rt_copy`. Sizes and
    strides are written to one place in the function's frame, which all copies
    share: a model may have thousands.

    ```mlir
    memref.copy %a, %b : memref<4x2xf32, strided<[8, 1]>> to memref<4x2xf32>
    // becomes
    llvm.call @sdx_rt_copy(%bytes, %rank, %from, %to, %layout)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

def SDXPollHostLoops : Pass<"sdx-poll-host-loops", "::mlir::ModuleOp"> {
  let summary = "Let a run be ended in its loops";
  let description = [{
    The host program's loops, and those loops of kernels whose trips take long,
    call `sdx_rt_poll` at the beginning of a trip, which leaves the run where
    something wants it ended: of each trip where one takes long, of one in so
    many where it does not. An `scf.while` of the host program, which
    an ONNX Loop becomes, counts its trips for it and gives its node's name.

    ```mlir
    scf.for %i = %c0 to %n step %c1 { ... }
    // becomes
    scf.for %i = %c0 to %n step %c1 {
      llvm.call @sdx_rt_poll(%zero, %null) : (i64, !llvm.ptr) -> ()
      ...
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SDXMergeSimilarBodies
    : Pass<"sdx-merge-similar-bodies", "::mlir::ModuleOp"> {
  let summary = "Share the code of parallel loops that differ in integers only";
  let description = [{
    Bodies of parallel loops that are the same operations but for integers
    become one that takes these integers: layers of a network that differ in a
    number of channels or windows are compiled once. Only integers that may as
    well come from a register are taken: bounds of loops, and what stands
    outside of the innermost loops.

    ```mlir
    llvm.call @sdx_parallel_for_k0_par0(%n, %grain, %a)
    llvm.call @sdx_parallel_for_k1_par0(%n, %grain, %a)
    // become
    llvm.call @sdx_parallel_for_k0_par0(%n, %grain, %a, %c192)
    llvm.call @sdx_parallel_for_k0_par0(%n, %grain, %a, %c96)
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SDXMergeSimilarLoops
    : Pass<"sdx-merge-similar-loops", "::mlir::ModuleOp"> {
  let summary = "Share the code of loops that several parallel loops have";
  let description = [{
    Loops, with loops in them, of bodies of parallel loops that are the same
    operations but for integers (as `sdx-merge-similar-bodies` compares them)
    become functions: kernels that differ in what they do with their results, or
    in the last rows, have the rest compiled once. A function takes what the
    loop reads from outside; addresses and integers that follow from others are
    computed there anew.

    ```mlir
    llvm.func internal @k0_par0(%begin: i64, %end: i64, %a: !llvm.ptr) {
      ...
      llvm.call @k0_par0_loop(%a, %begin, %c64) : (!llvm.ptr, i64, i64) -> ()
    ```
  }];
  let options = [
    Option<"minOps", "min-ops", "unsigned", "100",
           "The fewest operations of a loop that are worth a call">
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def SDXFinalizeHost : Pass<"sdx-finalize-host", "::mlir::ModuleOp"> {
  let summary = "Complete a module of the llvm dialect with entry points";
  let description = [{
    Gives `sdx_parallel_for_NAME` its body, a call of `sdx_rt_parallel_for`
    with the captured values in a structure on the stack; makes the entry
    points `sdx_main(args)` and `sdx_init(args)`; and sends allocations to the
    runtime.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // SARDONYX_HOST_PASSES
