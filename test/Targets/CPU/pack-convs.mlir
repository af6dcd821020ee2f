// RUN: onnx-opt %s --cpu-pack-convs --split-input-file | FileCheck %s

// Ten filters of each group make two blocks of eight. K has 3 channels of 3x2.
// CHECK-LABEL: @conv
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x2x18x8xf32>
// CHECK: %[[W:.*]] = cpu.pack_conv_weights ins(%arg1 : tensor<20x3x3x2xf32>) outs(%[[E]] : tensor<2x2x18x8xf32>)
// CHECK-SAME: #cpu.filters<f32, rows = 8>
// CHECK: %[[R:.*]] = cpu.conv ins(%arg0, %[[W]] : tensor<?x6x8x9xf32>, tensor<2x2x18x8xf32>) outs(%arg2 : tensor<?x20x7x4xf32>)
// CHECK-SAME: dilations = array<i64: 2, 1>
// CHECK-NOT: exact
// CHECK-SAME: filters = #cpu.filters<f32, rows = 8>
// CHECK-SAME: group = 2
// CHECK-SAME: kernel_shape = array<i64: 3, 2>
// CHECK-SAME: pads_begin = array<i64: 1, 0>
// CHECK-SAME: pads_end = array<i64: 2, 3>
// CHECK-SAME: strides = array<i64: 1, 3>
// CHECK: return %[[R]]
func.func @conv(%x: tensor<?x6x8x9xf32>, %w: tensor<20x3x3x2xf32>, %c: tensor<?x20x7x4xf32>) -> tensor<?x20x7x4xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<?x6x8x9xf32>, tensor<20x3x3x2xf32>) outs(%c : tensor<?x20x7x4xf32>)
      {strides = array<i64: 1, 3>, dilations = array<i64: 2, 1>, pads_begin = array<i64: 1, 0>, pads_end = array<i64: 2, 3>,
       group = 2 : i64} -> tensor<?x20x7x4xf32>
  return %0 : tensor<?x20x7x4xf32>
}

// -----

// CHECK-LABEL: @exact
// CHECK: cpu.conv
// CHECK-SAME: exact
func.func @exact(%x: tensor<1x2x4x5x6xf32>, %w: tensor<4x2x1x3x2xf32>, %c: tensor<1x4x4x3x5xf32>) -> tensor<1x4x4x3x5xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x2x4x5x6xf32>, tensor<4x2x1x3x2xf32>) outs(%c : tensor<1x4x4x3x5xf32>)
      {strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 0, 0, 0>, pads_end = array<i64: 0, 0, 0>,
       group = 1 : i64, exact} -> tensor<1x4x4x3x5xf32>
  return %0 : tensor<1x4x4x3x5xf32>
}

// -----

// Filters and channels that are open are counted.
// CHECK-LABEL: @open_channels
// CHECK-DAG: %[[FILTERS:.*]] = tensor.dim %arg1, %c0
// CHECK-DAG: %[[CHANNELS:.*]] = tensor.dim %arg1, %c1
// CHECK-DAG: %[[BLOCKS:.*]] = affine.apply #{{.*}}()[%[[FILTERS]]]
// CHECK-DAG: %[[DEPTH:.*]] = affine.apply #{{.*}}()[%[[CHANNELS]]]
// CHECK: tensor.empty(%[[BLOCKS]], %[[DEPTH]]) : tensor<2x?x?x8xf32>
// CHECK: cpu.pack_conv_weights ins(%arg1 : tensor<?x?x3xf32>) outs(%{{.*}} : tensor<2x?x?x8xf32>)
// CHECK: cpu.conv ins(%arg0, %{{.*}} : tensor<1x?x9xf32>, tensor<2x?x?x8xf32>)
func.func @open_channels(%x: tensor<1x?x9xf32>, %w: tensor<?x?x3xf32>, %c: tensor<1x?x7xf32>) -> tensor<1x?x7xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x?x9xf32>, tensor<?x?x3xf32>) outs(%c : tensor<1x?x7xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 2 : i64} -> tensor<1x?x7xf32>
  return %0 : tensor<1x?x7xf32>
}

// -----

// No kernel multiplies other types: they become loop nests.
// CHECK-LABEL: @other_types
// CHECK-NOT: {{cpu|sdx}}.
// CHECK: linalg.generic
// CHECK: arith.mulf {{.*}} : f64
// CHECK: linalg.generic
// CHECK: arith.muli {{.*}} : i32
// CHECK-NOT: {{cpu|sdx}}.
// CHECK: return
func.func @other_types(%x: tensor<1x3x8xf64>, %w: tensor<8x3x3xf64>, %c: tensor<1x8x6xf64>,
                       %y: tensor<1x3x8xi8>, %v: tensor<8x3x3xi8>, %d: tensor<1x8x6xi32>) -> (tensor<1x8x6xf64>, tensor<1x8x6xi32>) {
  %0 = sdx.conv ins(%x, %w : tensor<1x3x8xf64>, tensor<8x3x3xf64>) outs(%c : tensor<1x8x6xf64>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64} -> tensor<1x8x6xf64>
  %1 = sdx.conv ins(%y, %v : tensor<1x3x8xi8>, tensor<8x3x3xi8>) outs(%d : tensor<1x8x6xi32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64} -> tensor<1x8x6xi32>
  return %0, %1 : tensor<1x8x6xf64>, tensor<1x8x6xi32>
}

// -----

// CHECK-LABEL: @buffers
// CHECK: sdx.conv
func.func @buffers(%x: memref<1x3x8xf32>, %w: memref<8x3x3xf32>, %c: memref<1x8x6xf32>) {
  sdx.conv ins(%x, %w : memref<1x3x8xf32>, memref<8x3x3xf32>) outs(%c : memref<1x8x6xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64}
  return
}
