// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Data decide how many points a bin has: the most of all regions are looked at,
// of all channels at a time, by tables of their neighbours.
// CHECK-LABEL: func @align
// CHECK: linalg.transpose ins(%arg0 {{.*}} permutation = [0, 2, 3, 1]
// CHECK: math.ceil
// CHECK: %[[MOST:.*]] = arith.index_cast
// CHECK: tensor<?x3x?xi64>, tensor<?x3x?xi64>, tensor<?x3x?xf32>, tensor<?x3x?xf32>
// CHECK: sdx.check {{.*}}a region is in image {0}, and there are {1}
// CHECK: linalg.generic {{.*}}"parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-COUNT-4: tensor.extract
// CHECK: linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
func.func @align(%x: tensor<1x2x8x8xf32>, %r: tensor<?x4xf32>, %i: tensor<?xi64>) -> tensor<?x2x3x3xf32> {
  %0 = onnx.RoiAlign(%x, %r, %i) {output_height = 3, output_width = 3} : (tensor<1x2x8x8xf32>, tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x2x3x3xf32>
  return %0 : tensor<?x2x3x3xf32>
}

// -----

// Samples become channels, and the rest a convolution of one point.
// CHECK-LABEL: func @deform
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<1x1x4x3x3x6x6xf32>)
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x36x36xf32>
// CHECK: sdx.conv
// CHECK-SAME: tensor<1x36x36xf32>
func.func @deform(%x: tensor<1x4x8x8xf32>, %w: tensor<5x4x3x3xf32>, %o: tensor<1x18x6x6xf32>) -> tensor<1x5x6x6xf32> {
  %0 = onnx.DeformConv(%x, %w, %o) : (tensor<1x4x8x8xf32>, tensor<5x4x3x3xf32>, tensor<1x18x6x6xf32>) -> tensor<1x5x6x6xf32>
  return %0 : tensor<1x5x6x6xf32>
}
