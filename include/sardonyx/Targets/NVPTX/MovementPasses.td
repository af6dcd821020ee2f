//===- MovementPasses.td - Passes for moved and ordered elements -*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_TARGETS_NVPTX_MOVEMENTPASSES
#define SARDONYX_TARGETS_NVPTX_MOVEMENTPASSES

include "mlir/Pass/PassBase.td"

def NVLowerTranspose : Pass<"nv-lower-transpose", "::mlir::func::FuncOp"> {
  let summary = "Lower transposes to tiles in shared memory";
  let description = [{
    A kernel that is one `linalg.transpose` becomes a loop over tiles of the
    dimension that is the operand's fastest and the one that is the result's, 32
    x 32 or, of elements of one or two bytes, 64 x 64. A block reads it row by
    row of the operand and writes it row by row of the result; in shared memory
    rows have a gap. Where the fastest dimension stays, or where one of the two
    has fewer than 8 elements, a thread has neighbours of the result, 16 bytes at
    most.

    ```mlir
    %r = linalg.transpose ins(%x : tensor<512x70xf32>) outs(%e) permutation = [1, 0]
    // becomes
    scf.parallel (%block) = (%c0) to (%c48) step (%c1) {
      %shared = nv.shared_memory : memref<4224xi8, #gpu.address_space<workgroup>>
      ...
      gpu.barrier
      ...
    } {nv.step = "transpose", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def NVLowerGather : Pass<"nv-lower-gather", "::mlir::func::FuncOp"> {
  let summary = "Lower copies of pieces whose places data decide to threads";
  let description = [{
    A kernel that is a loop over tasks (scf.forall), each of which copies a piece
    of a buffer into the result, as a row of a table, becomes a loop in which a
    thread has neighbours of a piece, 16 bytes where rows are a multiple of that.
    It finds the place of its piece for itself.

    ```mlir
    %r = scf.forall (%task) in (%n) shared_outs(%out = %empty) {
      %row = tensor.extract %rows[%task]
      %piece = tensor.extract_slice %x[%row, 0] [1, 768] [1, 1]
      ... tensor.parallel_insert_slice %piece into %out[%task, 0] [1, 768] [1, 1]
    // becomes
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      ...
      %row = memref.load %rows[%task]
      %v = memref.load %x[%row, %i]
      ...
      memref.store %v, %y[%task, %i]
    } {nv.step = "gather", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def NVLowerUpdates : Pass<"nv-lower-updates", "::mlir::func::FuncOp"> {
  let summary = "Lower writes at places that data decide to threads";
  let description = [{
    A kernel that is a loop over tasks (scf.forall), each of which writes elements
    or pieces of buffers into its part of the result, in loops, becomes a loop in
    which a thread has one element, or neighbours of a piece. An element that is
    combined with the one that is there is exchanged atomically, and sums of 32
    and 64 bits are one instruction; these updates come in any order. Of others
    with one place the last is written: where at most 64 may have it a thread
    looks at the later ones, otherwise two loops before find the last one's
    number for each place; the host chooses where that is open. Combinations in
    elements of 8 bits, and whatever reads what it has written, are left to
    `nv-lower-loops`.

    ```mlir
    %r = scf.forall (%task) in (1) shared_outs(%out = %x) {
      %part = tensor.extract_slice %out[%task, 0, 0] [1, 1000, 768] [1, 1, 1]
      %last = scf.for %i = %c0 to %n step %c1 iter_args(%state = %part) {
        %row = tensor.extract %rows[%i]
        %piece = tensor.extract_slice %updates[%i, 0] [1, 768] [1, 1]
        %next = tensor.insert_slice %piece into %state[%row, 0] [1, 768] [1, 1]
    // becomes
    %owners = memref.alloc(%slots) : memref<?xi64, #gpu.address_space<global>>
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      memref.store %none, %owners[%slot]
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      llvm.atomicrmw max %owner, %i
    scf.parallel (%block) = (%c0) to (%blocks) step (%c1) {
      %owner = memref.load %owners[%slot]
      %isLast = arith.cmpi eq, %owner, %i
      scf.if %isLast {
        memref.store %v, %y[%c0, %row, %j]
    } {nv.step = "update", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def NVLowerScan : Pass<"nv-lower-scan", "::mlir::func::FuncOp"> {
  let summary = "Lower running sums and products to blocks";
  let description = [{
    A kernel that is a loop over tasks which says that it computes running sums
    (`sdx.scan`) becomes a loop over rows. A block has one, 1024 elements at a
    time: a thread sums up four, and threads their totals in shared memory. So
    sums of floats are not in the order of the loop. Where other rows lie between
    the elements of one, a thread has a row. Rows that are long and fewer than the
    device has multiprocessors are cut into parts: a loop sums the parts up, one
    scans their sums, one scans each part with what is before it.

    ```mlir
    %r = scf.forall (%row) in (%n) ... {mapping = [#sdx.task], sdx.scan = "sum"}
    // becomes
    scf.parallel (%row) = (%c0) to (%n) step (%c1) {
      %shared = nv.shared_memory : memref<2048xi8, #gpu.address_space<workgroup>>
      scf.for %first = %c0 to %length step %c1024 iter_args(%before = %zero) -> (f32) {
      ...
    } {nv.step = "scan", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def NVLowerTopK : Pass<"nv-lower-top-k", "::mlir::func::FuncOp"> {
  let summary = "Lower selections of the best of rows to blocks that sort";
  let description = [{
    A kernel that is a loop over tasks which says that it has the best elements
    of rows (`sdx.top_k`) becomes a loop over rows. A block has one, up to 4096
    elements of 64 bits in shared memory: a key and the index. It sorts them; of
    longer rows the better half stays and the next elements take the place of
    the other half. Where more than 2048 of them are wanted it sorts the row in
    the device's memory; the host chooses where that is open. Of elements of 64
    bits the index is a number of its own. Rows of less than 32 are left to
    `nv-lower-loops`.

    ```mlir
    %r:2 = scf.forall (%row) in (%n) ... {mapping = [#sdx.task], sdx.top_k = "largest"}
    // becomes
    scf.parallel (%row) = (%c0) to (%n) step (%c1) {
      %shared = nv.shared_memory : memref<16384xi8, #gpu.address_space<workgroup>>
      ...
      %least = arith.minui %first, %second : i64
      ...
    } {nv.step = "top_k", nv.threads = 256 : i64}
    ```
  }];
  let dependentDialects = [
    "::sardonyx::nv::NVDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect"
  ];
}

#endif // SARDONYX_TARGETS_NVPTX_MOVEMENTPASSES
