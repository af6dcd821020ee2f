// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-transpose))' | FileCheck %s

!x = memref<512x70xf32, #gpu.address_space<global>>
!y = memref<70x512xf32, #gpu.address_space<global>>

// 16 x 3 tiles of 32 x 32, in rows of 33. A thread has four elements.
// CHECK-LABEL: func private @tiles
// CHECK: scf.parallel {{.*}} to (%c48)
// CHECK: nv.shared_memory : memref<4224xi8
// CHECK-COUNT-4: memref.load %arg0
// CHECK: gpu.barrier
// CHECK-COUNT-4: memref.store %{{.*}}, %arg1
// CHECK-NOT: memref.store
// CHECK: nv.step = "transpose", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @tiles(%x: !x, %y: !y) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : !x to tensor<512x70xf32>
  %e = tensor.empty() : tensor<70x512xf32>
  %r = linalg.transpose ins(%t : tensor<512x70xf32>) outs(%e : tensor<70x512xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<70x512xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x64x66xf16, #gpu.address_space<global>>
!y = memref<?x66x64xf16, #gpu.address_space<global>>

// Two elements of two bytes at a time.
// CHECK-LABEL: func private @halves
// CHECK: nv.shared_memory : memref<8448xi8
// CHECK-COUNT-16: memref.load %arg0
// CHECK-NOT: memref.load %arg0
// CHECK: gpu.barrier
// CHECK-COUNT-16: memref.store %{{.*}}, %arg1
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @halves(%x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %x restrict : !x to tensor<?x64x66xf16>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x66x64xf16>
  %r = linalg.transpose ins(%t : tensor<?x64x66xf16>) outs(%e : tensor<?x66x64xf16>) permutation = [0, 2, 1]
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x66x64xf16>, !y) -> ()
  return
}
}

// -----

!x = memref<2x7x12x64xf32, #gpu.address_space<global>>
!y = memref<2x12x7x64xf32, #gpu.address_space<global>>

// Rows stay rows: a thread has 16 bytes of one.
// CHECK-LABEL: func private @rows
// CHECK-NOT: nv.shared_memory
// CHECK-COUNT-4: memref.load %arg0
// CHECK-COUNT-4: memref.store %{{.*}}, %arg1
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @rows(%x: !x, %y: !y) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : !x to tensor<2x7x12x64xf32>
  %e = tensor.empty() : tensor<2x12x7x64xf32>
  %r = linalg.transpose ins(%t : tensor<2x7x12x64xf32>) outs(%e : tensor<2x12x7x64xf32>) permutation = [0, 2, 1, 3]
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<2x12x7x64xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<3x4096xf32, #gpu.address_space<global>>
!y = memref<4096x3xf32, #gpu.address_space<global>>

// Three elements fill no tile.
// CHECK-LABEL: func private @few
// CHECK-NOT: nv.shared_memory
// CHECK: memref.load %arg0
// CHECK-NOT: memref.load
// CHECK: memref.store %{{.*}}, %arg1
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @few(%x: !x, %y: !y) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : !x to tensor<3x4096xf32>
  %e = tensor.empty() : tensor<4096x3xf32>
  %r = linalg.transpose ins(%t : tensor<3x4096xf32>) outs(%e : tensor<4096x3xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<4096x3xf32>, !y) -> ()
  return
}
}
