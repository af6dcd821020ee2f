// RUN: onnx-opt %s --sdx-simplify-transposes | FileCheck %s

// CHECK-LABEL: @reshape
// CHECK-NOT: linalg.transpose
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<?xf32>
// CHECK: tensor.expand_shape %[[C]] {{.*}} into tensor<1x?x768xf32>
func.func @reshape(%x: tensor<?x1x768xf32>, %e: tensor<1x?x768xf32>) -> tensor<1x?x768xf32> {
  %0 = linalg.transpose ins(%x : tensor<?x1x768xf32>) outs(%e : tensor<1x?x768xf32>) permutation = [1, 0, 2]
  return %0 : tensor<1x?x768xf32>
}

// CHECK-LABEL: @fewer
// CHECK: linalg.transpose ins(%{{.*}} : tensor<197x3x768xf32>) outs(%{{.*}} : tensor<3x197x768xf32>) permutation = [1, 0, 2]
// CHECK: tensor.expand_shape {{.*}} into tensor<3x197x1x1x12x64xf32>
func.func @fewer(%x: tensor<1x197x1x3x12x64xf32>, %e: tensor<3x197x1x1x12x64xf32>) -> tensor<3x197x1x1x12x64xf32> {
  %0 = linalg.transpose ins(%x : tensor<1x197x1x3x12x64xf32>) outs(%e : tensor<3x197x1x1x12x64xf32>) permutation = [3, 1, 2, 0, 4, 5]
  return %0 : tensor<3x197x1x1x12x64xf32>
}

// CHECK-LABEL: @dynamic
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<?x?x?xf32> into tensor<?x?xf32>
// CHECK: linalg.transpose ins(%[[C]] {{.*}} permutation = [1, 0]
func.func @dynamic(%x: tensor<?x?x?xf32>, %e: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %0 = linalg.transpose ins(%x : tensor<?x?x?xf32>) outs(%e : tensor<?x?x?xf32>) permutation = [1, 2, 0]
  return %0 : tensor<?x?x?xf32>
}

// CHECK-LABEL: @generic
// CHECK: linalg.transpose ins(%arg0 : tensor<4x8xf32>) outs(%arg1 : tensor<8x4xf32>) permutation = [1, 0]
func.func @generic(%x: tensor<4x8xf32>, %e: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
