// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-split-taps))" | FileCheck %s

// The middle tap sees input everywhere; the corner's at 2 x 2 positions.
// CHECK-LABEL: func.func @wide
// CHECK: %[[W:.*]] = tensor.extract_slice %arg1[0, 0, 1, 1] [32, 32, 1, 1]
// CHECK: %[[M:.*]] = sdx.conv ins(%{{.*}}, %[[W]] : tensor<?x32x8x8xf32>, tensor<32x32x1x1xf32>) outs(%arg2
// CHECK-SAME: pads_begin = array<i64: 0, 0>
// CHECK: %[[X0:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [%{{.*}}, 32, 2, 2]
// CHECK: %[[W0:.*]] = tensor.extract_slice %arg1[0, 0, 0, 0] [32, 32, 1, 1]
// CHECK: %[[S0:.*]] = tensor.extract_slice %[[M]][0, 0, 6, 6] [%{{.*}}, 32, 2, 2]
// CHECK: %[[Y0:.*]] = sdx.conv ins(%[[X0]], %[[W0]] : {{.*}}) outs(%[[S0]] : tensor<?x32x2x2xf32>)
// CHECK: tensor.insert_slice %[[Y0]] into %[[M]][0, 0, 6, 6] [%{{.*}}, 32, 2, 2]
// CHECK-COUNT-7: sdx.conv
// CHECK-NOT: sdx.conv
// CHECK: return
func.func @wide(%x: tensor<?x32x8x8xf32>, %w: tensor<32x32x3x3xf32>, %init: tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32> {
  %y = sdx.conv ins(%x, %w : tensor<?x32x8x8xf32>, tensor<32x32x3x3xf32>) outs(%init : tensor<?x32x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 6, 6>, pads_begin = array<i64: 6, 6>, pads_end = array<i64: 6, 6>, group = 1 : i64} -> tensor<?x32x8x8xf32>
  return %y : tensor<?x32x8x8xf32>
}

// Most taps see input.
// CHECK-LABEL: func.func @narrow
// CHECK: sdx.conv {{.*}}dilations = array<i64: 2, 2>
// CHECK-NOT: sdx.conv
func.func @narrow(%x: tensor<?x32x8x8xf32>, %w: tensor<32x32x3x3xf32>, %init: tensor<?x32x8x8xf32>) -> tensor<?x32x8x8xf32> {
  %y = sdx.conv ins(%x, %w : tensor<?x32x8x8xf32>, tensor<32x32x3x3xf32>) outs(%init : tensor<?x32x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 1 : i64} -> tensor<?x32x8x8xf32>
  return %y : tensor<?x32x8x8xf32>
}

// Few channels: what is loaded and stored again takes longer than the products.
// CHECK-LABEL: func.func @few_channels
// CHECK: sdx.conv {{.*}}dilations = array<i64: 6, 6>
// CHECK-NOT: sdx.conv
func.func @few_channels(%x: tensor<1x8x8x8xf32>, %w: tensor<8x8x3x3xf32>, %init: tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32> {
  %y = sdx.conv ins(%x, %w : tensor<1x8x8x8xf32>, tensor<8x8x3x3xf32>) outs(%init : tensor<1x8x8x8xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 6, 6>, pads_begin = array<i64: 6, 6>, pads_end = array<i64: 6, 6>, group = 1 : i64} -> tensor<1x8x8x8xf32>
  return %y : tensor<1x8x8x8xf32>
}
