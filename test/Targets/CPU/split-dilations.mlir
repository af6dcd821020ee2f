// RUN: onnx-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(cpu-split-dilations))" | FileCheck %s

// Four phases of 14 x 14 results, with a row and a column of pads behind each.

// CHECK-LABEL: func.func @same
// CHECK-SAME:    (%[[X:.*]]: tensor<?x64x28x28xf32>, %[[W:.*]]: tensor<48x64x3x3xf32>)
// CHECK:         %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<?x64x30x30xf32>
// CHECK:         %[[PADDED:.*]] = tensor.insert_slice %[[X]] into %[[ZEROS]][0, 0, 0, 0] [%{{.*}}, 64, 28, 28] [1, 1, 1, 1]
// CHECK:         %[[SPLIT:.*]] = tensor.expand_shape %[[PADDED]] {{\[}}[0], [1], [2, 3], [4, 5]] output_shape [%{{.*}}, 64, 15, 2, 15, 2]
// CHECK:         %[[TURNED:.*]] = linalg.transpose ins(%[[SPLIT]] : {{.*}}) outs({{.*}} : tensor<?x64x2x15x2x15xf32>) permutation = [0, 1, 3, 2, 5, 4]
// CHECK:         %[[IMAGES:.*]] = tensor.collapse_shape %[[TURNED]] {{\[}}[0], [1], [2, 3], [4, 5]]
// CHECK:         %[[SUMS:.*]] = sdx.conv ins(%[[IMAGES]], %[[W]] : tensor<?x64x30x30xf32>, {{.*}}) outs({{.*}} : tensor<?x48x30x30xf32>)
// CHECK-SAME:      dilations = array<i64: 1, 1>
// CHECK-SAME:      pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>
// CHECK:         %[[PHASES:.*]] = tensor.expand_shape %[[SUMS]] {{.*}} output_shape [%{{.*}}, 48, 2, 15, 2, 15]
// CHECK:         %[[BACK:.*]] = linalg.transpose ins(%[[PHASES]] : {{.*}} permutation = [0, 1, 3, 2, 5, 4]
// CHECK:         %[[ALL:.*]] = tensor.collapse_shape %[[BACK]]
// CHECK:         %[[Y:.*]] = tensor.extract_slice %[[ALL]][0, 0, 0, 0] [%{{.*}}, 48, 28, 28] [1, 1, 1, 1]
// CHECK:         return %[[Y]]
func.func @same(%x: tensor<?x64x28x28xf32>, %w: tensor<48x64x3x3xf32>) -> tensor<?x48x28x28xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x64x28x28xf32>
  %e = tensor.empty(%n) : tensor<?x48x28x28xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48x28x28xf32>) -> tensor<?x48x28x28xf32>
  %y = sdx.conv ins(%x, %w : tensor<?x64x28x28xf32>, tensor<48x64x3x3xf32>) outs(%init : tensor<?x48x28x28xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 1 : i64} -> tensor<?x48x28x28xf32>
  return %y : tensor<?x48x28x28xf32>
}

// -----

// Without pads phases share nothing; rows have no dilation.

// CHECK-LABEL: func.func @valid
// CHECK:         tensor.insert_slice %arg0 into %{{.*}}[0, 0, 0, 0] [1, 64, 30, 62] [1, 1, 1, 1]
// CHECK:         output_shape [1, 64, 30, 1, 21, 3]
// CHECK:         sdx.conv {{.*}} pads_begin = array<i64: 0, 0>, pads_end = array<i64: 2, 2>
// CHECK:         output_shape [1, 64, 1, 30, 3, 21]
// CHECK:         tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 64, 28, 56] [1, 1, 1, 1]
func.func @valid(%x: tensor<1x64x30x62xf32>, %w: tensor<64x64x3x3xf32>) -> tensor<1x64x28x56xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x28x56xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x28x56xf32>) -> tensor<1x64x28x56xf32>
  %y = sdx.conv ins(%x, %w : tensor<1x64x30x62xf32>, tensor<64x64x3x3xf32>) outs(%init : tensor<1x64x28x56xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 3>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x64x28x56xf32>
  return %y : tensor<1x64x28x56xf32>
}

// -----

// Phases that are too small, and sums that must not round.

// CHECK-LABEL: func.func @others
// CHECK:         sdx.conv {{.*}}dilations = array<i64: 6, 6>
// CHECK:         sdx.conv {{.*}}dilations = array<i64: 2, 2>
func.func @others(%x: tensor<1x64x12x12xf32>, %z: tensor<1x64x28x28xf32>, %w: tensor<64x64x3x3xf32>) -> (tensor<1x64x12x12xf32>, tensor<1x64x28x28xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x12x12xf32>
  %f = tensor.empty() : tensor<1x64x28x28xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x12x12xf32>) -> tensor<1x64x12x12xf32>
  %large = linalg.fill ins(%zero : f32) outs(%f : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %0 = sdx.conv ins(%x, %w : tensor<1x64x12x12xf32>, tensor<64x64x3x3xf32>) outs(%init : tensor<1x64x12x12xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 6, 6>, pads_begin = array<i64: 6, 6>, pads_end = array<i64: 6, 6>, group = 1 : i64} -> tensor<1x64x12x12xf32>
  %1 = sdx.conv ins(%z, %w : tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) outs(%large : tensor<1x64x28x28xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 1 : i64, exact} -> tensor<1x64x28x28xf32>
  return %0, %1 : tensor<1x64x12x12xf32>, tensor<1x64x28x28xf32>
}
