// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-conv))' | FileCheck %s

!x = memref<2x8x14x16xf32, #gpu.address_space<global>>
!w = memref<32x4x3x3xf32, #gpu.address_space<global>>
!y = memref<2x32x14x16xf32, #gpu.address_space<global>>

// Filters are copied 16 bytes at a time, elements of windows one by one; what
// lies in the pads is 0.
// CHECK-LABEL: func private @conv
// CHECK: scf.parallel
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca
// CHECK: arith.cmpi ult
// CHECK: arith.cmpi ult
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 4, cache = ca
// CHECK: math.fma
// CHECK-COUNT-4: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "conv"
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @conv(%x: !x, %w: !w, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<2x8x14x16xf32>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<32x4x3x3xf32>
  %e = tensor.empty() : tensor<2x32x14x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x32x14x16xf32>) -> tensor<2x32x14x16xf32>
  %r = sdx.conv ins(%tx, %tw : tensor<2x8x14x16xf32>, tensor<32x4x3x3xf32>) outs(%z : tensor<2x32x14x16xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 2 : i64} -> tensor<2x32x14x16xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<2x32x14x16xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x16x14x16xf16, #gpu.address_space<global>>
!w = memref<64x16x1x1xf16, #gpu.address_space<global>>
!y = memref<?x64x14x16xf32, #gpu.address_space<global>>

// CHECK-LABEL: func private @halves
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg
// CHECK: nvvm.mma.sync
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @halves(%x: !x, %w: !w, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x16x14x16xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<64x16x1x1xf16>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x64x14x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64x14x16xf32>) -> tensor<?x64x14x16xf32>
  %r = sdx.conv ins(%tx, %tw : tensor<?x16x14x16xf16>, tensor<64x16x1x1xf16>) outs(%z : tensor<?x64x14x16xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<?x64x14x16xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x64x14x16xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x14x16x64xf16, #gpu.address_space<global>>
!w = memref<96x3x3x64xf16, #gpu.address_space<global>>
!y = memref<?x7x8x96xf32, #gpu.address_space<global>>

// Channels last, by warpgroups: the hardware goes over the pixels that windows
// begin at, two apart, and copies channels of one tap of each.
// CHECK-LABEL: func private @windows
// CHECK: nv.tensor_map %arg0 sizes(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) box [64, 64] swizzle 128 lower [-1, -1] upper [-1, -1] steps [1, 2, 2, 1]
// CHECK: nv.tensor_map %arg1 sizes(%{{.*}}, %{{.*}}) box [64, 64] swizzle 128 : memref<96x3x3x64xf16
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] im2col[%{{.*}}, %{{.*}}]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}] :
// CHECK: nv.step = "conv"
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @windows(%x: !x, %w: !w, %y: !y) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 6>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x14x16x64xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<96x3x3x64xf16>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x7x8x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x7x8x96xf32>) -> tensor<?x7x8x96xf32>
  %r = nv.conv ins(%tx, %tw : tensor<?x14x16x64xf16>, tensor<96x3x3x64xf16>) outs(%z : tensor<?x7x8x96xf32>)
      {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<?x7x8x96xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x7x8x96xf32>, !y) -> ()
  return
}
}
