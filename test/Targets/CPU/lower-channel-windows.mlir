// RUN: onnx-opt %s --target=znver4 -split-input-file -cpu-lower-channel-windows | FileCheck %s

// Three lines and one that counts for nothing are interleaved, once for each
// column, and multiplied by the taps of all outputs that read it.
// CHECK-LABEL: func.func private @depthwise
// CHECK: scf.parallel
// CHECK:   scf.for
// CHECK:     scf.for
// CHECK:       scf.if
// CHECK-COUNT-3: vector.load {{.*}} vector<16xi8>
// CHECK-COUNT-3: vector.interleave
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK:       else
// CHECK:         arith.constant dense<5> : vector<16xi8>
// CHECK:       vector.store {{.*}} vector<16xi32>
func.func private @depthwise(%x: memref<1x14x14x40xi8>, %w: memref<3x160xi8>, %out: memref<1x14x14x40xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x40xi8> to tensor<1x14x14x40xi8>
  %tw = bufferization.to_tensor %w restrict : memref<3x160xi8> to tensor<3x160xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x40xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x40xi32>) -> tensor<1x14x14x40xi32>
  %0 = cpu.depthwise_narrow_conv ins(%tx, %tw : tensor<1x14x14x40xi8>, tensor<3x160xi8>) outs(%z : tensor<1x14x14x40xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       padding = 5 : i64} -> tensor<1x14x14x40xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x40xi32>, memref<1x14x14x40xi32>) -> ()
  return
}

// -----

// Pixels of bf16 and taps are widened.
// CHECK-LABEL: func.func private @depthwise_bf16
// CHECK: scf.parallel
// CHECK:       scf.if
// CHECK:         vector.load {{.*}} vector<16xbf16>
// CHECK:         arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK:         vector.fma {{.*}} : vector<16xf32>
// CHECK:       else
// CHECK:         arith.constant dense<0.000000e+00> : vector<16xbf16>
// CHECK:       vector.store {{.*}} vector<16xf32>
func.func private @depthwise_bf16(%x: memref<1x14x14x32xbf16>, %w: memref<9x32xbf16>, %out: memref<1x14x14x32xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x32xbf16> to tensor<1x14x14x32xbf16>
  %tw = bufferization.to_tensor %w restrict : memref<9x32xbf16> to tensor<9x32xbf16>
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x14x14x32xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x14x14x32xf32>) -> tensor<1x14x14x32xf32>
  %0 = cpu.depthwise_narrow_conv ins(%tx, %tw : tensor<1x14x14x32xbf16>, tensor<9x32xbf16>) outs(%z : tensor<1x14x14x32xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       padding = 0 : i64} -> tensor<1x14x14x32xf32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x32xf32>, memref<1x14x14x32xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func private @pool
// CHECK: scf.parallel
// CHECK:   scf.for
// CHECK-COUNT-9: arith.maxui {{.*}} vector<64xi8>
// CHECK:     vector.store {{.*}} vector<64xi8>
func.func private @pool(%x: memref<1x14x14x64xi8>, %out: memref<1x7x7x64xi8>) attributes {sdx.kernel, cpu.plan = #cpu.channel_window_plan<lanes = 64, positions = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %c0 = arith.constant 0 : i8
  %e = tensor.empty() : tensor<1x7x7x64xi8>
  %z = linalg.fill ins(%c0 : i8) outs(%e : tensor<1x7x7x64xi8>) -> tensor<1x7x7x64xi8>
  %0 = cpu.channels_last_max_pool ins(%tx : tensor<1x14x14x64xi8>) outs(%z : tensor<1x7x7x64xi8>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>, is_unsigned} -> tensor<1x7x7x64xi8>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x7x7x64xi8>, memref<1x7x7x64xi8>) -> ()
  return
}
