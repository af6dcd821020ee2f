// RUN: onnx-opt %s -split-input-file -sdx-lower-host-copies -canonicalize | FileCheck %s

// CHECK: llvm.func @sdx_rt_copy(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func.func @strided(
// One place for the sizes and strides of all copies.
// CHECK-DAG:     %[[COUNT:.*]] = llvm.mlir.constant(6 : i64)
// CHECK:         %[[LAYOUT:.*]] = llvm.alloca %[[COUNT]] x i64
// CHECK-NOT:     llvm.alloca
// CHECK-COUNT-6: llvm.store
// CHECK:         llvm.call @sdx_rt_copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LAYOUT]])
// CHECK-COUNT-3: llvm.store
// CHECK:         llvm.call @sdx_rt_copy(
// CHECK-NOT:     memref.copy
func.func @strided(%a: memref<4x8xf32>, %n: index, %b: memref<4x2xf32>,
                   %c: memref<?xi8, strided<[3], offset: ?>>, %d: memref<?xi8>) {
  %v = memref.subview %a[0, %n] [4, 2] [1, 1] : memref<4x8xf32> to memref<4x2xf32, strided<[8, 1], offset: ?>>
  memref.copy %v, %b : memref<4x2xf32, strided<[8, 1], offset: ?>> to memref<4x2xf32>
  memref.copy %c, %d : memref<?xi8, strided<[3], offset: ?>> to memref<?xi8>
  return
}

// -----

// What is contiguous is copied at once, wherever it begins.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT:     llvm.alloca
// CHECK-DAG:     %[[BYTES:.*]] = llvm.mlir.constant(8 : i64)
// CHECK-DAG:     %{{.*}}, %{{.*}}, %[[SIZES:.*]]:2, %{{.*}} = memref.extract_strided_metadata %arg0
// CHECK-DAG:     %[[ROWS:.*]] = arith.index_cast %[[SIZES]]#0
// CHECK:         llvm.mul %[[ROWS]], %[[BYTES]]
// CHECK-COUNT-2: "llvm.intr.memcpy"
// CHECK-NOT:     memref.copy
func.func @whole(%a: memref<?x3xf64>, %b: memref<?x3xf64>, %c: memref<4x8xf32>) {
  memref.copy %a, %b : memref<?x3xf64> to memref<?x3xf64>
  %v = memref.subview %c[2, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: 16>>
  %w = memref.alloc() : memref<8xf32>
  memref.copy %v, %w : memref<8xf32, strided<[1], offset: 16>> to memref<8xf32>
  return
}

// -----

// To a device, within it and back: the runtime's.
// CHECK: llvm.func @sdx_rt_device_copy(i64, !llvm.ptr, !llvm.ptr, i64)
// CHECK-LABEL: func.func @device(
// CHECK-DAG:     %[[TO:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-DAG:     %[[FROM:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG:     %[[WITHIN:.*]] = llvm.mlir.constant(3 : i64)
// CHECK:         llvm.call @sdx_rt_device_copy(%[[TO]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:         llvm.call @sdx_rt_device_copy(%[[WITHIN]],
// CHECK:         llvm.call @sdx_rt_device_copy(%[[FROM]],
// CHECK-NOT:     memref.copy
func.func @device(%a: memref<?xf32>, %b: memref<?xf32, #gpu.address_space<global>>,
                  %c: memref<?xf32, #gpu.address_space<global>>) {
  memref.copy %a, %b : memref<?xf32> to memref<?xf32, #gpu.address_space<global>>
  memref.copy %b, %c : memref<?xf32, #gpu.address_space<global>> to memref<?xf32, #gpu.address_space<global>>
  memref.copy %c, %a : memref<?xf32, #gpu.address_space<global>> to memref<?xf32>
  return
}

// -----

// Of copies to the host in a row the last one waits.
// CHECK-LABEL: func.func @together(
// CHECK-DAG:     %[[LATER:.*]] = llvm.mlir.constant(4 : i64)
// CHECK-DAG:     %[[FROM:.*]] = llvm.mlir.constant(2 : i64)
// CHECK:         llvm.call @sdx_rt_device_copy(%[[LATER]],
// CHECK:         llvm.call @sdx_rt_device_copy(%[[FROM]],
// CHECK:         memref.load
// CHECK:         llvm.call @sdx_rt_device_copy(%{{.*}},
func.func @together(%a: memref<2xi64, #gpu.address_space<global>>, %b: memref<2xi64, #gpu.address_space<global>>) -> i64 {
  %c0 = arith.constant 0 : index
  %x = memref.alloc() : memref<2xi64>
  memref.copy %a, %x : memref<2xi64, #gpu.address_space<global>> to memref<2xi64>
  %y = memref.alloc() : memref<2xi64>
  memref.copy %b, %y : memref<2xi64, #gpu.address_space<global>> to memref<2xi64>
  %0 = memref.load %x[%c0] : memref<2xi64>
  memref.copy %b, %y : memref<2xi64, #gpu.address_space<global>> to memref<2xi64>
  return %0 : i64
}
