// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-cpu-lower-copies -canonicalize | FileCheck %s

// CHECK: llvm.func @sdx_rt_copy(i64, i64, !llvm.ptr, !llvm.ptr, !llvm.ptr)
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %[[A:.*]]: memref<4x8xf32>, %[[N:.*]]: index
// One place for the sizes and strides of all copies.
// CHECK-DAG:     %[[COUNT:.*]] = llvm.mlir.constant(6 : i64)
// CHECK:         %[[LAYOUT:.*]] = llvm.alloca %[[COUNT]] x i64
// CHECK-NOT:     llvm.alloca
// CHECK-COUNT-6: llvm.store
// CHECK:         llvm.call @sdx_rt_copy(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LAYOUT]])
// CHECK-COUNT-3: llvm.store
// CHECK:         llvm.call @sdx_rt_copy(
// What is contiguous is left to memcpy.
// CHECK:         memref.copy
func.func @main(%a: memref<4x8xf32>, %n: index, %b: memref<4x2xf32>, %c: memref<?xi8, strided<[3], offset: ?>>, %d: memref<?xi8>) {
  %v = memref.subview %a[0, %n] [4, 2] [1, 1] : memref<4x8xf32> to memref<4x2xf32, strided<[8, 1], offset: ?>>
  memref.copy %v, %b : memref<4x2xf32, strided<[8, 1], offset: ?>> to memref<4x2xf32>
  memref.copy %c, %d : memref<?xi8, strided<[3], offset: ?>> to memref<?xi8>
  memref.copy %b, %b : memref<4x2xf32> to memref<4x2xf32>
  %w = memref.subview %a[2, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: 16>>
  %x = memref.alloc() : memref<8xf32>
  memref.copy %w, %x : memref<8xf32, strided<[1], offset: 16>> to memref<8xf32>
  return
}
