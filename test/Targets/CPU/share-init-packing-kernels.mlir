// RUN: onnx-opt %s --cpu-share-init-packing-kernels --sdx-dedup-kernels | FileCheck %s

// CHECK-LABEL: func.func @init
// CHECK-SAME: (%[[A:.*]]: memref<64x16x1x1xf32>, %[[B:.*]]: memref<72x1x3x3xf32>, {{.*}}, %[[PA:.*]]: memref<1x8x16x8xf32>, %[[PB:.*]]: memref<72x1x9x8xf32>
func.func @init(%a: memref<64x16x1x1xf32>, %b: memref<72x1x3x3xf32>, %k: memref<64x16x3x3xf32>, %c: memref<32x24xf32>,
    %pa: memref<1x8x16x8xf32>, %pb: memref<72x1x9x8xf32>, %pk: memref<1x8x256x8xf32>, %pc: memref<1x32x32xf32>, %s: memref<1x1x1x32xf32>, %d: memref<64x24xf32>, %ps: memref<1x64x96xi8>, %pp: memref<1x8x32xf32>) {
  // CHECK: %[[IN:.*]] = memref.cast %[[A]] : memref<64x16x1x1xf32> to memref<?x?x?x?xf32>
  // CHECK: %[[OUT:.*]] = memref.cast %[[PA]] : memref<1x8x16x8xf32> to memref<?x?x?x8xf32>
  // CHECK: sdx.call @a(%[[IN]] : memref<?x?x?x?xf32>) outs(%[[OUT]] : memref<?x?x?x8xf32>)
  sdx.call @a(%a : memref<64x16x1x1xf32>) outs(%pa : memref<1x8x16x8xf32>)
  // CHECK: memref.cast %[[B]]
  // CHECK: memref.cast %[[PB]]
  // CHECK: sdx.call @a(
  sdx.call @b(%b : memref<72x1x3x3xf32>) outs(%pb : memref<72x1x9x8xf32>)
  // Winograd's algorithm keeps those that it is for,
  // CHECK: memref.cast %{{.*}} : memref<64x16x3x3xf32> to memref<?x?x3x3xf32>
  // CHECK: memref.cast %{{.*}} : memref<1x8x256x8xf32> to memref<1x?x?x8xf32>
  // CHECK: sdx.call @winograd(
  sdx.call @winograd(%k : memref<64x16x3x3xf32>) outs(%pk : memref<1x8x256x8xf32>)
  // what runs again all,
  // CHECK: sdx.call @again(%{{.*}} : memref<32x24xf32>)
  sdx.call @again(%c : memref<32x24xf32>) outs(%pc : memref<1x32x32xf32>)
  // and what packs a piece of a buffer
  // CHECK: sdx.call @piece(%{{.*}} : memref<8x24xf32, strided<[24, 1], offset: 192>>)
  %piece = memref.subview %c[8, 0] [8, 24] [1, 1] : memref<32x24xf32> to memref<8x24xf32, strided<[24, 1], offset: 192>>
  sdx.call @piece(%piece : memref<8x24xf32, strided<[24, 1], offset: 192>>) outs(%pp : memref<1x8x32xf32>)
  // or rounds weights.
  // CHECK: sdx.call @round(%{{.*}} : memref<64x24xf32>, memref<1x1x1x32xf32>)
  sdx.call @round(%d, %s : memref<64x24xf32>, memref<1x1x1x32xf32>) outs(%ps : memref<1x64x96xi8>)
  return
}
func.func @main(%c: memref<32x24xf32>, %pc: memref<1x32x32xf32>) {
  sdx.call @again(%c : memref<32x24xf32>) outs(%pc : memref<1x32x32xf32>)
  return
}

// CHECK: func.func private @a(%[[FROM:.*]]: memref<?x?x?x?xf32>, %[[TO:.*]]: memref<?x?x?x8xf32>) attributes {sdx.kernel} {
// CHECK: %[[SOURCE:.*]] = bufferization.to_tensor %[[FROM]] restrict
// CHECK: %[[G:.*]] = memref.dim %[[TO]], %c0
// CHECK: %[[INIT:.*]] = tensor.empty(%[[G]], %{{.*}}, %{{.*}}) : tensor<?x?x?x8xf32>
// CHECK: %[[P:.*]] = cpu.pack_conv_weights ins(%[[SOURCE]] : tensor<?x?x?x?xf32>) outs(%[[INIT]] : tensor<?x?x?x8xf32>)
// CHECK: bufferization.materialize_in_destination %[[P]] in restrict writable %[[TO]]
func.func private @a(%w: memref<64x16x1x1xf32>, %out: memref<1x8x16x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x16x1x1xf32> to tensor<64x16x1x1xf32>
  %e = tensor.empty() : tensor<1x8x16x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<64x16x1x1xf32>) outs(%e : tensor<1x8x16x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x16x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x16x8xf32>, memref<1x8x16x8xf32>) -> ()
  return
}
// CHECK-NOT: @b
func.func private @b(%w: memref<72x1x3x3xf32>, %out: memref<72x1x9x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<72x1x3x3xf32> to tensor<72x1x3x3xf32>
  %e = tensor.empty() : tensor<72x1x9x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<72x1x3x3xf32>) outs(%e : tensor<72x1x9x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<72x1x9x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<72x1x9x8xf32>, memref<72x1x9x8xf32>) -> ()
  return
}
// CHECK: func.func private @winograd(%{{.*}}: memref<?x?x3x3xf32>, %{{.*}}: memref<1x?x?x8xf32>)
// CHECK: cpu.pack_conv_weights {{.*}}winograd = 2>} -> tensor<1x?x?x8xf32>
func.func private @winograd(%w: memref<64x16x3x3xf32>, %out: memref<1x8x256x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x16x3x3xf32> to tensor<64x16x3x3xf32>
  %e = tensor.empty() : tensor<1x8x256x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<64x16x3x3xf32>) outs(%e : tensor<1x8x256x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x8x256x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x256x8xf32>, memref<1x8x256x8xf32>) -> ()
  return
}
func.func private @piece(%w: memref<8x24xf32>, %out: memref<1x8x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<8x24xf32> to tensor<8x24xf32>
  %e = tensor.empty() : tensor<1x8x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<8x24xf32>) outs(%e : tensor<1x8x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x8x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x32xf32>, memref<1x8x32xf32>) -> ()
  return
}
// CHECK: func.func private @round(%{{.*}}: memref<64x24xf32>
func.func private @round(%w: memref<64x24xf32>, %s: memref<1x1x1x32xf32>, %out: memref<1x64x96xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x24xf32> to tensor<64x24xf32>
  %ts = bufferization.to_tensor %s restrict : memref<1x1x1x32xf32> to tensor<1x1x1x32xf32>
  %e = tensor.empty() : tensor<1x64x96xi8>
  %p = cpu.pack_rhs ins(%t, %ts : tensor<64x24xf32>, tensor<1x1x1x32xf32>) outs(%e : tensor<1x64x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<1x64x96xi8>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x64x96xi8>, memref<1x64x96xi8>) -> ()
  return
}
// CHECK: func.func private @again(%{{.*}}: memref<32x24xf32>
func.func private @again(%w: memref<32x24xf32>, %out: memref<1x32x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<32x24xf32> to tensor<32x24xf32>
  %e = tensor.empty() : tensor<1x32x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<32x24xf32>) outs(%e : tensor<1x32x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x32x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x32x32xf32>, memref<1x32x32xf32>) -> ()
  return
}
