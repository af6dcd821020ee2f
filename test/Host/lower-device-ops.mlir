// RUN: onnx-opt %s -split-input-file -sdx-lower-device-ops | FileCheck %s

// A function that starts a kernel: sizes of the grid and parameters are words.

// CHECK-DAG: llvm.func @sdx_rt_device_failure() -> !llvm.ptr
// CHECK-DAG: llvm.func @sdx_rt_launch(i64, !llvm.ptr, i64, !llvm.ptr)
module attributes {sdx.images = [{target = "nvidia", bytes = "",
    kernels = [{name = "k0", node = "", arguments = 1, shared = 0},
               {name = "k1", node = "", arguments = 4, shared = 0}]}]} {
  // CHECK-LABEL: func private @start(
  // CHECK-SAME: %[[A:.*]]: memref<?xf32>, %[[S:.*]]: f32)
  // CHECK: %[[ARGS:.*]] = llvm.alloca %{{.*}} x i64
  // CHECK: %[[SIZE:.*]] = llvm.alloca %{{.*}} x i64
  // CHECK: %[[RECORD:.*]] = llvm.call @sdx_rt_device_failure
  // The bytes of a word that no parameter has are zero.
  // CHECK: %[[BITS:.*]] = arith.bitcast %[[S]] : f32 to i32
  // CHECK: %[[WORD:.*]] = arith.extui %[[BITS]] : i32 to i64
  // CHECK: llvm.store %[[WORD]]
  // CHECK: memref.extract_aligned_pointer_as_index
  // CHECK: %[[KERNEL:.*]] = llvm.mlir.constant(1 : i64)
  // CHECK-NEXT: %[[COUNT:.*]] = llvm.mlir.constant(4 : i64)
  // CHECK-NEXT: llvm.call @sdx_rt_launch(%[[KERNEL]], %[[SIZE]], %[[COUNT]], %[[ARGS]])
  func.func private @start(%a: memref<?xf32, #gpu.address_space<global>>, %s: f32)
      attributes {sdx.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %a, %c0 : memref<?xf32, #gpu.address_space<global>>
    %record = sdx.failure_record : memref<6xi64, #gpu.address_space<global>>
    sdx.launch "k1" blocks(%n, %c1, %c1) threads [256, 1, 1]
        (%a, %n, %s, %record : memref<?xf32, #gpu.address_space<global>>, index,
         f32, memref<6xi64, #gpu.address_space<global>>)
    return
  }
}

// -----

// Memory of the device that the host program asks for.

// CHECK-LABEL: func @main
// CHECK: sdx.arena {sdx.on_device} : memref<256xi8>
// CHECK: sdx.output_buffer 0() {sdx.on_device} : memref<4xf32>
// CHECK: sdx.arena : memref<64xi8>
// CHECK: sdx.check
// CHECK: %[[MEMORY:.*]] = llvm.call @sdx_rt_device_alloc(%{{.*}}, %{{.*}}) : (i64, !llvm.ptr) -> !llvm.ptr
// CHECK: llvm.call @sdx_rt_device_free
func.func @main(%n: index) {
  %arena = sdx.arena : memref<256xi8, #gpu.address_space<global>>
  %out = sdx.output_buffer 0() : memref<4xf32, #gpu.address_space<global>>
  %host = sdx.arena : memref<64xi8>
  %a = memref.alloc(%n) : memref<?xf32, #gpu.address_space<global>>
  memref.dealloc %a : memref<?xf32, #gpu.address_space<global>>
  return
}

// -----

// A tensor map is as many words, which come first, and the sizes tell of it.

// CHECK-LABEL: func private @map(
// CHECK-SAME: %[[A:.*]]: i64, %[[S:.*]]: i32)
module attributes {sdx.images = [{target = "nvidia", bytes = "",
    kernels = [{name = "k0", node = "", arguments = 2, shared = 0}]}]} {
  func.func private @map(%a: i64, %s: i32) attributes {sdx.kernel} {
    %c1 = arith.constant 1 : index
    // CHECK: llvm.mlir.constant(0 : i64)
    // CHECK-NEXT: %[[MAPS:.*]] = llvm.mlir.constant(1 : i64)
    // CHECK: %[[SIZE:.*]] = llvm.getelementptr %{{.*}}[7]
    // CHECK-NEXT: llvm.store %[[MAPS]], %[[SIZE]]
    // CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[ARGS:.*]][0]
    // CHECK-NEXT: llvm.store %[[A]], %[[FIRST]]
    // CHECK-COUNT-15: llvm.store %{{.*}}
    // CHECK: %[[WORD:.*]] = arith.extui %[[S]]
    // CHECK: %[[LAST:.*]] = llvm.getelementptr %[[ARGS]][16]
    // CHECK-NEXT: llvm.store %[[WORD]], %[[LAST]]
    // CHECK: llvm.mlir.constant(17 : i64)
    %words = vector.from_elements %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a : vector<16xi64>
    sdx.launch "k0" blocks(%c1, %c1, %c1) threads [256, 1, 1]
        (%words, %s : vector<16xi64>, i32)
    return
  }
}
