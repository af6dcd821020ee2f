// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-lower-host-ops | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @sdx_message_0("dimension 0 has size {0}, too small\00")
// CHECK-DAG: llvm.func @sdx_rt_check(i64, !llvm.ptr, i64, i64, i64, i64, i64)
// CHECK-DAG: llvm.func @sdx_rt_output(i64, i64, !llvm.ptr) -> !llvm.ptr
// CHECK-DAG: llvm.func @sdx_rt_arena(i64) -> !llvm.ptr
func.func private @k(%a: memref<?x3xf32>, %out: memref<?x3xf32>) attributes {sdx.kernel} {
  return
}

// CHECK-LABEL: func.func @main(%arg0: !llvm.ptr)
// CHECK:         llvm.alloca
// CHECK-NOT:     scf.if
// CHECK:         %[[OK:.*]] = arith.extui
// CHECK-DAG:     %[[KIND:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG:     %[[VALUE:.*]] = arith.index_cast
// CHECK:         llvm.call @sdx_rt_check(%[[OK]], %{{.*}}, %[[KIND]], %[[VALUE]],
// CHECK:         llvm.call @sdx_rt_output
// CHECK:         %[[OUT:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x3xf32>
// CHECK:         llvm.call @sdx_rt_arena
// An argument is loaded where it is read.
// CHECK:         %[[RECORD:.*]] = llvm.load {{.*}} -> !llvm.ptr
// CHECK:         llvm.load {{.*}} -> !llvm.ptr
// CHECK:         %[[A:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<?x3xf32>
// CHECK:         call @k(%[[A]], %[[OUT]])
func.func @main(%a: memref<?x3xf32> {sdx.input = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %d = memref.dim %a, %c0 : memref<?x3xf32>
  %ok = arith.cmpi sgt, %d, %c2 : index
  sdx.check %ok, "dimension 0 has size {0}, too small" (%d) as unsupported
  %out = sdx.output_buffer 0 (%d) : memref<?x3xf32>
  %arena = sdx.arena : memref<64xi8>
  %v = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  memref.dealloc %v : memref<16xf32>
  sdx.call @k(%a : memref<?x3xf32>) outs(%out : memref<?x3xf32>)
  return
}

// -----

// A kernel assumes that its buffers begin where their pointers point to: of a
// piece of a buffer that is the address.
// CHECK-LABEL: func.func @piece
// CHECK:         %[[V:.*]] = memref.subview
// CHECK:         %[[WORDS:.*]] = builtin.unrealized_conversion_cast %[[V]] : memref<4xf32, strided<[1], offset: ?>> to !llvm.struct
// CHECK:         %[[BASE:.*]] = llvm.extractvalue %[[WORDS]][1]
// CHECK:         %[[OFFSET:.*]] = llvm.extractvalue %[[WORDS]][2]
// CHECK:         %[[ADDRESS:.*]] = llvm.getelementptr %[[BASE]][%[[OFFSET]]]
// CHECK:         llvm.insertvalue %[[ADDRESS]], %{{.*}}[1]
// CHECK:         %[[P:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<4xf32>
// CHECK:         call @k(%[[P]]) : (memref<4xf32>) -> ()
func.func private @k(%out: memref<4xf32>) attributes {sdx.kernel} {
  return
}
func.func @piece(%a: memref<8xf32>, %i: index) {
  %v = memref.subview %a[%i] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>
  sdx.call @k() outs(%v : memref<4xf32, strided<[1], offset: ?>>)
  return
}

// -----

// expected-error @below {{has argument 0 of type 'index'; an entry point takes buffers of identity layout only}}
func.func @main(%n: index) {
  return
}

// -----

// In a kernel only a check that fails calls.
// CHECK-LABEL: func.func private @k(
// CHECK:         %[[BAD:.*]] = arith.xori
// CHECK:         scf.if %[[BAD]] {
// CHECK:           llvm.call @sdx_rt_check_failed(
func.func private @k(%i: index) attributes {sdx.kernel} {
  %c8 = arith.constant 8 : index
  %ok = arith.cmpi ult, %i, %c8 : index
  sdx.check %ok, "index {0} is out of bounds" (%i)
  return
}

// -----

// So it is in a loop of the host program.
// CHECK-LABEL: func.func @main(
// CHECK:         scf.for
// CHECK:           %[[BAD:.*]] = arith.xori
// CHECK:           scf.if %[[BAD]] {
// CHECK:             llvm.call @sdx_rt_check_failed(
func.func @main(%a: memref<?xindex> {sdx.input = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %a[%i] : memref<?xindex>
    %ok = arith.cmpi ult, %v, %c8 : index
    sdx.check %ok, "index {0} is out of bounds" (%v)
  }
  return
}

// -----

// The words of a call of the runtime: the node, then each tensor's address, rank
// and sizes, each number as it is. All calls share the largest place.
// CHECK-DAG: llvm.mlir.global internal constant @sdx_origin_{{.*}}("node 'n'\00")
// CHECK-DAG: llvm.func @sdx_rt_string_split_parts(!llvm.ptr)
// CHECK-LABEL: func.func @words
// CHECK:         %[[COUNT:.*]] = llvm.mlir.constant(7 : i64)
// CHECK:         %[[PLACE:.*]] = llvm.alloca %[[COUNT]] x i64
// CHECK:         llvm.ptrtoint
// CHECK:         memref.extract_aligned_pointer_as_index
// CHECK-COUNT-7: llvm.store
// CHECK:         llvm.call @sdx_rt_string_split_parts(%[[PLACE]])
// CHECK:         llvm.call @sdx_rt_list_length(%[[PLACE]])
func.func @words(%x: memref<?xi64>, %n: i64, %y: memref<i64>) {
  sdx.runtime_call "sdx_rt_string_split_parts" (%x, %n : memref<?xi64>, i64) outs(%y : memref<i64>) {} loc(fused<"node 'n'">["n"])
  sdx.runtime_call "sdx_rt_list_length" (%y : memref<i64>) outs(%y : memref<i64>)
  return
}

// -----

// A tile of a kernel: the site, kinds beside the number of bf16, and rows of 32;
// then a whole buffer as one row.
// CHECK-LABEL: func.func private @observed(
// CHECK-DAG:     %[[SITE:.*]] = llvm.mlir.constant(3 : i64)
// CHECK-DAG:     %[[WHAT:.*]] = llvm.mlir.constant(517 : i64)
// CHECK-DAG:     %[[ROWS:.*]] = arith.index_cast %arg2 : index to i64
// CHECK-DAG:     %[[COUNT:.*]] = arith.index_cast %arg3 : index to i64
// CHECK:         llvm.call @sdx_rt_observe(%[[SITE]], %[[WHAT]], %{{.*}}, %[[ROWS]], %{{.*}}, %[[COUNT]])
// CHECK:         %[[ALL:.*]] = arith.muli
// CHECK:         llvm.call @sdx_rt_observe(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ALL]])
func.func private @observed(%tile: memref<6x32xbf16>, %whole: memref<?xf32>, %rows: index, %count: index) attributes {sdx.kernel} {
  sdx.observe %tile[%rows, %count] site 3 <range|bits> : memref<6x32xbf16>
  sdx.observe %whole site 4 <range> : memref<?xf32>
  return
}
