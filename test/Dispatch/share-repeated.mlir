// RUN: onnx-opt %s --sdx-share-repeated --split-input-file | FileCheck %s

// Heads of queries that meet the same keys are rows of one product.
// CHECK-LABEL: @keys
// CHECK-SAME: %[[Q:[^:]*]]: tensor<12x5x64xf32>, %[[K:[^:]*]]: tensor<2x2x257x64xf32>
// CHECK-DAG: %[[G:.*]] = tensor.collapse_shape %[[K]] {{\[\[}}0, 1], [2], [3]] : tensor<2x2x257x64xf32> into tensor<4x257x64xf32>
// CHECK-DAG: %[[T:.*]] = linalg.transpose ins(%[[G]] : tensor<4x257x64xf32>) outs(%{{.*}} : tensor<4x64x257xf32>) permutation = [0, 2, 1]
// CHECK-DAG: %[[S:.*]] = tensor.expand_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] output_shape [4, 3, 5, 64]
// CHECK-DAG: %[[L:.*]] = tensor.collapse_shape %[[S]] {{\[\[}}0], [1, 2], [3]] : tensor<4x3x5x64xf32> into tensor<4x15x64xf32>
// CHECK-DAG: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4x15x257xf32>)
// CHECK: %[[P:.*]] = linalg.batch_matmul ins(%[[L]], %[[T]] : tensor<4x15x64xf32>, tensor<4x64x257xf32>) outs(%[[F]] : tensor<4x15x257xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[P]] {{\[\[}}0], [1, 2], [3]] output_shape [4, 3, 5, 257]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[E]] {{\[\[}}0, 1], [2], [3]] : tensor<4x3x5x257xf32> into tensor<12x5x257xf32>
// CHECK: return %[[R]]
func.func @keys(%q: tensor<12x5x64xf32>, %k: tensor<2x2x257x64xf32>) -> tensor<12x5x257xf32> {
  %e = tensor.empty() : tensor<2x2x3x257x64xf32>
  %b = linalg.broadcast ins(%k : tensor<2x2x257x64xf32>) outs(%e : tensor<2x2x3x257x64xf32>) dimensions = [2]
  %c = tensor.collapse_shape %b [[0, 1, 2], [3], [4]] : tensor<2x2x3x257x64xf32> into tensor<12x257x64xf32>
  %te = tensor.empty() : tensor<12x64x257xf32>
  %t = linalg.transpose ins(%c : tensor<12x257x64xf32>) outs(%te : tensor<12x64x257xf32>) permutation = [0, 2, 1]
  %zero = arith.constant 0.0 : f32
  %pe = tensor.empty() : tensor<12x5x257xf32>
  %f = linalg.fill ins(%zero : f32) outs(%pe : tensor<12x5x257xf32>) -> tensor<12x5x257xf32>
  %p = linalg.batch_matmul ins(%q, %t : tensor<12x5x64xf32>, tensor<12x64x257xf32>) outs(%f : tensor<12x5x257xf32>) -> tensor<12x5x257xf32>
  return %p : tensor<12x5x257xf32>
}

// -----

// Sizes that are not known, and another init than zero.
// CHECK-LABEL: @open
// CHECK: linalg.batch_matmul ins(%{{.*}}, %{{.*}} : tensor<?x?x?xf32>, tensor<?x?x64xf32>) outs(%{{.*}} : tensor<?x?x64xf32>)
#all = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#one = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
func.func @open(%s: tensor<?x?x?xf32>, %v: tensor<?x4x?x64xf32>, %e: tensor<?x4x3x?x64xf32>, %i: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %b = linalg.generic {indexing_maps = [#one, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<?x4x?x64xf32>) outs(%e : tensor<?x4x3x?x64xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<?x4x3x?x64xf32>
  %c = tensor.collapse_shape %b [[0, 1, 2], [3], [4]] : tensor<?x4x3x?x64xf32> into tensor<?x?x64xf32>
  %p = linalg.batch_matmul ins(%s, %c : tensor<?x?x?xf32>, tensor<?x?x64xf32>) outs(%i : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %p : tensor<?x?x64xf32>
}

// -----

// What is repeated as a whole has other neighbours; what is scaled is no copy.
// CHECK-LABEL: @others
// CHECK-COUNT-2: linalg.batch_matmul {{.*}}tensor<12x5x64xf32>, tensor<12x64x8xf32>
#all = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#first = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
#last = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
func.func @others(%q: tensor<12x5x64xf32>, %k: tensor<4x64x8xf32>, %e: tensor<3x4x64x8xf32>, %d: tensor<4x3x64x8xf32>, %i: tensor<12x5x8xf32>) -> (tensor<12x5x8xf32>, tensor<12x5x8xf32>) {
  %b = linalg.generic {indexing_maps = [#first, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x64x8xf32>) outs(%e : tensor<3x4x64x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<3x4x64x8xf32>
  %c = tensor.collapse_shape %b [[0, 1], [2], [3]] : tensor<3x4x64x8xf32> into tensor<12x64x8xf32>
  %p = linalg.batch_matmul ins(%q, %c : tensor<12x5x64xf32>, tensor<12x64x8xf32>) outs(%i : tensor<12x5x8xf32>) -> tensor<12x5x8xf32>
  %s = linalg.generic {indexing_maps = [#last, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x64x8xf32>) outs(%d : tensor<4x3x64x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<4x3x64x8xf32>
  %f = tensor.collapse_shape %s [[0, 1], [2], [3]] : tensor<4x3x64x8xf32> into tensor<12x64x8xf32>
  %r = linalg.batch_matmul ins(%q, %f : tensor<12x5x64xf32>, tensor<12x64x8xf32>) outs(%i : tensor<12x5x8xf32>) -> tensor<12x5x8xf32>
  return %p, %r : tensor<12x5x8xf32>, tensor<12x5x8xf32>
}
