// RUN: onnx-opt %s --sdx-merge-equal | FileCheck %s

#id = affine_map<(d0) -> (d0)>

// Two of the three are equal; the mark that tells them apart is gone.
// CHECK-LABEL: func.func @bodies(
// CHECK-NOT:     sdx.body_hash
// CHECK:         %[[A:.*]] = linalg.generic
// CHECK:           arith.addf
// CHECK:         %[[B:.*]] = linalg.generic
// CHECK:           arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[A]], %[[B]], %[[A]]
func.func @bodies(%x: tensor<4xf32>, %y: f32) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %y : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.mulf %in, %y : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %y : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
