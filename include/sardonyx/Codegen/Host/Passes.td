//===- Passes.td - The host program's code ----------------*- tablegen -*-===//
//
// From the host program to functions that the runtime can call, and calls of
// the runtime: the same for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_CODEGEN_HOST_PASSES
#define SARDONYX_CODEGEN_HOST_PASSES

include "mlir/Pass/PassBase.td"

def LowerHostOpsPass : Pass<"sdx-host-lower-ops", "::mlir::ModuleOp"> {
  let summary = "Lower calls, checks and memory requests to runtime calls";
  let description = [{
    `sdx.call` becomes a call of the kernel, `sdx.check` one of `sdx_rt_check`
    (in kernels a branch around `sdx_rt_check_failed`), `sdx.arena` and `sdx.output_buffer` calls of the
    runtime. Records the types of the entry points' arguments for
    `sdx-host-finalize`.

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

def LowerCopiesPass : Pass<"sdx-host-lower-copies", "::mlir::ModuleOp"> {
  let summary = "Lower the host program's copies";
  let description = [{
    `memref.copy` between contiguous buffers becomes `memcpy`, any other a call
    of `sdx_rt_copy`. Sizes and strides are written to one place in the
    function's frame, which all copies share: a model may have thousands.

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

def PollLoopsPass : Pass<"sdx-host-poll-loops", "::mlir::ModuleOp"> {
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

def FinalizeLLVMPass : Pass<"sdx-host-finalize", "::mlir::ModuleOp"> {
  let summary = "Complete a module of the llvm dialect with entry points";
  let description = [{
    Gives `sdx_parallel_for_NAME` its body, a call of `sdx_rt_parallel_for`
    with the captured values in a structure on the stack; makes the entry
    points `sdx_main(args)` and `sdx_init(args)`; and sends allocations to the
    runtime.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // SARDONYX_CODEGEN_HOST_PASSES
