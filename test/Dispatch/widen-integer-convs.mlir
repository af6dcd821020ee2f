// RUN: onnx-opt %s -split-input-file -sdx-widen-integer-convs | FileCheck %s

// Two parts of 28 channels have exact sums; each is a group.
// CHECK-LABEL: func @parts
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?x56x14x14xi8>)
// CHECK:   arith.extui {{.*}} : i8 to i32
// CHECK:   arith.subi
// CHECK:   arith.sitofp
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<8x56x3x3xi8>)
// CHECK:   arith.extsi {{.*}} : i8 to i32
// CHECK: tensor.expand_shape %[[W]] {{.*}} into tensor<8x2x28x3x3xf32>
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2, 3, 4]
// CHECK: %[[PARTS:.*]] = tensor.collapse_shape {{.*}} into tensor<16x28x3x3xf32>
// CHECK: %[[C:.*]] = sdx.conv ins(%[[X]], %[[PARTS]] : tensor<?x56x14x14xf32>, tensor<16x28x3x3xf32>)
// CHECK-SAME: exact, group = 2
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[C]] {{.*}} into tensor<?x2x8x14x14xf32>
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} ins(%[[SPLIT]]
// CHECK:   arith.fptosi
// CHECK:   arith.addi
// What the pads hold, in all of a filter.
// CHECK: linalg.generic {{.*}} ins(%arg1 : tensor<8x56x3x3xi8>) outs({{.*}} : tensor<8xi32>)
// CHECK: linalg.generic
// CHECK:   arith.muli
// CHECK:   arith.addi
func.func @parts(%x: tensor<?x56x14x14xi8>, %w: tensor<8x56x3x3xi8>, %e: tensor<?x8x14x14xi32>) -> tensor<?x8x14x14xi32> {
  %c0 = arith.constant 0 : i32
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<?x8x14x14xi32>) -> tensor<?x8x14x14xi32>
  %0 = sdx.conv ins(%x, %w : tensor<?x56x14x14xi8>, tensor<8x56x3x3xi8>) outs(%z : tensor<?x8x14x14xi32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, input_unsigned, padding = 7 : i64} -> tensor<?x8x14x14xi32>
  return %0 : tensor<?x8x14x14xi32>
}

// -----

// Groups as they are.
// CHECK-LABEL: func @depthwise
// CHECK: sdx.conv {{.*}} tensor<1x8x6x6xf32>, tensor<8x1x3x3xf32>
// CHECK-SAME: group = 8
// CHECK: arith.fptosi
func.func @depthwise(%x: tensor<1x8x6x6xi8>, %w: tensor<8x1x3x3xi8>, %e: tensor<1x8x4x4xi32>) -> tensor<1x8x4x4xi32> {
  %c0 = arith.constant 0 : i32
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x8x4x4xi32>) -> tensor<1x8x4x4xi32>
  %0 = sdx.conv ins(%x, %w : tensor<1x8x6x6xi8>, tensor<8x1x3x3xi8>) outs(%z : tensor<1x8x4x4xi32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 8 : i64} -> tensor<1x8x4x4xi32>
  return %0 : tensor<1x8x4x4xi32>
}

// -----

// Too many products, and floats, which stay.
// CHECK-LABEL: func @wide
// CHECK: sdx.conv {{.*}} tensor<1x521x6x6xi32>, tensor<8x521x3x3xi32>
// CHECK: sdx.conv {{.*}} tensor<1x521x6x6xf32>, tensor<8x521x3x3xf32>
func.func @wide(%x: tensor<1x521x6x6xi8>, %w: tensor<8x521x3x3xi8>, %z: tensor<1x8x4x4xi32>, %fx: tensor<1x521x6x6xf32>, %fw: tensor<8x521x3x3xf32>, %fz: tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xi32>, tensor<1x8x4x4xf32>) {
  %0 = sdx.conv ins(%x, %w : tensor<1x521x6x6xi8>, tensor<8x521x3x3xi8>) outs(%z : tensor<1x8x4x4xi32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x8x4x4xi32>
  %1 = sdx.conv ins(%fx, %fw : tensor<1x521x6x6xf32>, tensor<8x521x3x3xf32>) outs(%fz : tensor<1x8x4x4xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x8x4x4xf32>
  return %0, %1 : tensor<1x8x4x4xi32>, tensor<1x8x4x4xf32>
}
