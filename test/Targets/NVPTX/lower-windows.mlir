// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-windows))' | FileCheck %s

!x = memref<1x32x56x56xf16, #gpu.address_space<global>>
!w = memref<32x1x3x3xf16, #gpu.address_space<global>>
!y = memref<1x32x56x56xf32, #gpu.address_space<global>>

// Four outputs below each other: nine weights and 6 x 3 elements are read for 36
// products.
// CHECK-LABEL: func private @depthwise
// CHECK: scf.parallel {{.*}} to (%c98)
// CHECK-COUNT-27: llvm.load {{.*}} : !llvm.ptr<1> -> f16
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "conv", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @depthwise(%x: !x, %w: !w, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x32x56x56xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<32x1x3x3xf16>
  %e = tensor.empty() : tensor<1x32x56x56xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  %r = sdx.conv ins(%tx, %tw : tensor<1x32x56x56xf16>, tensor<32x1x3x3xf16>) outs(%z : tensor<1x32x56x56xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 32 : i64} -> tensor<1x32x56x56xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x32x56x56xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x16x30x30xf32, #gpu.address_space<global>>
!y = memref<?x16x15x15xf32, #gpu.address_space<global>>

// With a stride of 2 nine rows are read for four outputs.
// CHECK-LABEL: func private @max_pool
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> f32
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: arith.maximumf
// CHECK-COUNT-26: llvm.load {{.*}} : !llvm.ptr<1> -> f32
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: memref.store %{{.*}}, %arg1
// CHECK: nv.step = "pool"
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @max_pool(%x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x16x30x30xf32>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x16x15x15xf32>
  %z = linalg.fill ins(%low : f32) outs(%e : tensor<?x16x15x15xf32>) -> tensor<?x16x15x15xf32>
  %r = sdx.max_pool ins(%tx : tensor<?x16x30x30xf32>) outs(%z : tensor<?x16x15x15xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<?x16x15x15xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x16x15x15xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<1x2x?x?xf32, #gpu.address_space<global>>
!w = memref<2x1x9x9xf32, #gpu.address_space<global>>
!y = memref<1x2x?x?xf32, #gpu.address_space<global>>

// 81 taps are a loop. An image of open size may have nothing to read.
// CHECK-LABEL: func private @large
// CHECK: scf.for %{{.*}} to %c81
// CHECK: scf.if
// CHECK: llvm.load {{.*}} : !llvm.ptr<1> -> f32
// CHECK: math.fma
// CHECK-NOT: math.fma
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @large(%x: !x, %w: !w, %y: !y) attributes {sdx.kernel} {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x2x?x?xf32>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<2x1x9x9xf32>
  %h = memref.dim %y, %c2 : !y
  %v = memref.dim %y, %c3 : !y
  %e = tensor.empty(%h, %v) : tensor<1x2x?x?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32>
  %r = sdx.conv ins(%tx, %tw : tensor<1x2x?x?xf32>, tensor<2x1x9x9xf32>) outs(%z : tensor<1x2x?x?xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 4, 4>, pads_end = array<i64: 4, 4>,
       group = 2 : i64} -> tensor<1x2x?x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x2x?x?xf32>, !y) -> ()
  return
}
}
