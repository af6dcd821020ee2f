// RUN: onnx-opt %s -sdx-lower-host-ops | FileCheck %s

// The bytes of memory whose size the run tells are counted without overflow.
// CHECK: llvm.mlir.global internal constant @sdx_message_0("a tensor has the impossible size {0} x {1}\00")
// CHECK-LABEL: func.func @alloc
// CHECK-SAME:    %[[M:.*]]: index, %[[N:.*]]: index
// CHECK:         arith.uitofp
// CHECK:         arith.uitofp
// CHECK:         %[[FITS:.*]] = arith.cmpf olt
// CHECK:         %[[OK:.*]] = arith.extui %[[FITS]]
// CHECK:         llvm.call @sdx_rt_check(%[[OK]],
// CHECK:         memref.alloc(%[[M]], %[[N]])
// CHECK-NOT:     llvm.call
// CHECK:         memref.alloc()
func.func @alloc(%m: index, %n: index) {
  %0 = memref.alloc(%m, %n) : memref<?x3x?xf32>
  %1 = memref.alloc() : memref<7xf32>
  memref.dealloc %0 : memref<?x3x?xf32>
  memref.dealloc %1 : memref<7xf32>
  return
}
