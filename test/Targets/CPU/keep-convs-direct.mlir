// RUN: onnx-opt %s --cpu-keep-convs-direct | FileCheck %s

// Filters that average what they read.
// CHECK-LABEL: @means
// CHECK: sdx.conv
// CHECK-SAME: exact
func.func @means(%x: tensor<1x2x8x8xf32>, %init: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = arith.constant dense<[[[[1.5, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]], [[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]]> : tensor<2x2x3x3xf32>
  %y = sdx.conv ins(%x, %w : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%init : tensor<1x2x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}

// What one channel brings the next one takes away.
// CHECK-LABEL: @cancelling
// CHECK: sdx.conv
// CHECK-SAME: exact
func.func @cancelling(%x: tensor<1x2x8x8xf32>, %init: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = arith.constant dense<[[[[1.0, -2.0, 3.0], [-1.0, 0.5, -3.0], [2.0, -0.5, 1.0]], [[-1.0, 2.0, -3.0], [1.0, -0.5, 3.0], [-2.0, 0.5, -1.0]]], [[[3.0, 1.0, -2.0], [0.5, -1.0, 2.0], [-3.0, 1.0, -0.5]], [[-3.0, -1.0, 2.0], [-0.5, 1.0, -2.0], [3.0, -1.0, 0.5]]]]> : tensor<2x2x3x3xf32>
  %y = sdx.conv ins(%x, %w : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%init : tensor<1x2x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}

// The slices of deeper filters are channels.
// CHECK-LABEL: @deep
// CHECK: sdx.conv
// CHECK-SAME: exact
func.func @deep(%x: tensor<1x1x4x8x8xf32>, %init: tensor<1x2x3x8x8xf32>) -> tensor<1x2x3x8x8xf32> {
  %w = arith.constant dense<[[[[[1.0, -2.0, 3.0], [-1.0, 0.5, -3.0], [2.0, -0.5, 1.0]], [[-1.0, 2.0, -3.0], [1.0, -0.5, 3.0], [-2.0, 0.5, -1.0]]]], [[[[3.0, 1.0, -2.0], [0.5, -1.0, 2.0], [-3.0, 1.0, -0.5]], [[-3.0, -1.0, 2.0], [-0.5, 1.0, -2.0], [3.0, -1.0, 0.5]]]]]> : tensor<2x1x2x3x3xf32>
  %y = sdx.conv ins(%x, %w : tensor<1x1x4x8x8xf32>, tensor<2x1x2x3x3xf32>) outs(%init : tensor<1x2x3x8x8xf32>)
      {strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 0, 1, 1>,
       pads_end = array<i64: 0, 1, 1>, group = 1 : i64} -> tensor<1x2x3x8x8xf32>
  return %y : tensor<1x2x3x8x8xf32>
}

// Neither.
// CHECK-LABEL: @others
// CHECK: sdx.conv
// CHECK-NOT: exact
func.func @others(%x: tensor<1x2x8x8xf32>, %init: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = arith.constant dense<[[[[1.0, -2.0, 3.0], [-1.0, 0.5, -3.0], [2.0, -0.5, 1.0]], [[3.0, 1.0, -2.0], [0.5, -1.0, 2.0], [-3.0, 1.0, -0.5]]], [[[3.0, 1.0, -2.0], [0.5, -1.0, 2.0], [-3.0, 1.0, -0.5]], [[-1.0, 2.0, -3.0], [1.0, -0.5, 3.0], [-2.0, 0.5, -1.0]]]]> : tensor<2x2x3x3xf32>
  %y = sdx.conv ins(%x, %w : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%init : tensor<1x2x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}

// A normalization's factors do not matter.
// CHECK-LABEL: @scaled
// CHECK: sdx.conv
// CHECK-SAME: exact
func.func @scaled(%x: tensor<1x2x8x8xf32>, %init: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = arith.constant dense<[[[[1.5, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]], [[[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]]]> : tensor<2x2x3x3xf32>
  %s = arith.constant dense<[1.0, -3.0]> : tensor<2xf32>
  %f = tensor.empty() : tensor<2x2x3x3xf32>
  %scaled = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w, %s : tensor<2x2x3x3xf32>, tensor<2xf32>) outs(%f : tensor<2x2x3x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<2x2x3x3xf32>
  %y = sdx.conv ins(%x, %scaled : tensor<1x2x8x8xf32>, tensor<2x2x3x3xf32>) outs(%init : tensor<1x2x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}
