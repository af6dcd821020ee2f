// RUN: onnx-opt %s -split-input-file -cpu-lower-conv -canonicalize -cse | FileCheck %s

// All inputs of the few positions are packed once, by all threads; then threads
// share the channels, two blocks of 32 at a time. The fifth has tiles of its own.
// CHECK-LABEL: func.func private @lanes
// CHECK: %[[PACKED:.*]] = memref.alloc() {{.*}} : memref<96x64xf32>
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c6) step (%c1)
// CHECK: vector.store %{{.*}}, %[[PACKED]]
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c3) step (%c1)
// CHECK-NOT: vector.store %{{.*}}, %[[PACKED]]
// CHECK: memref.load %[[PACKED]]
// CHECK-COUNT-10: vector.fma {{.*}} : vector<32xf32>
// CHECK: memref.dealloc %[[PACKED]]
func.func private @lanes(%x: memref<1x96x7x7xf32>, %w: memref<1x5x96x32xf32>,
    %out: memref<1x160x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x96x7x7xf32> to tensor<1x96x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x5x96x32xf32> to tensor<1x5x96x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x160x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x160x7x7xf32>) -> tensor<1x160x7x7xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x96x7x7xf32>, tensor<1x5x96x32xf32>) outs(%f : tensor<1x160x7x7xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<1x160x7x7xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x160x7x7xf32>, memref<1x160x7x7xf32>) -> ()
  return
}

// -----

// Of many groups a thread takes one, with all that it needs.
// CHECK-LABEL: func.func private @many_groups
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c2, %c8) step (%c1, %c1)
// CHECK: %[[PACKED:.*]] = memref.alloc() {{.*}} : memref<16x64xf32>
// CHECK: vector.store %{{.*}}, %[[PACKED]]
// CHECK: memref.load %[[PACKED]]
// CHECK-NOT: scf.parallel
func.func private @many_groups(%x: memref<2x128x7x7xf32>, %w: memref<8x1x16x32xf32>,
    %out: memref<2x256x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<2x128x7x7xf32> to tensor<2x128x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<8x1x16x32xf32> to tensor<8x1x16x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x256x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x256x7x7xf32>) -> tensor<2x256x7x7xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<2x128x7x7xf32>, tensor<8x1x16x32xf32>) outs(%f : tensor<2x256x7x7xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 8 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<2x256x7x7xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<2x256x7x7xf32>, memref<2x256x7x7xf32>) -> ()
  return
}
