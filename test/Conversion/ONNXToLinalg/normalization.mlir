// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<?x128xf32>) -> tensor<?x128xf32> {
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
  // CHECK:   arith.maxnumf
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
  // CHECK:   arith.subf
  // CHECK:   math.exp
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
  // CHECK:   arith.addf
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]
  // CHECK:   arith.divf
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]
  // CHECK:   arith.mulf
  %y = onnx.Softmax(%x) {axis = -1} : (tensor<?x128xf32>) -> tensor<?x128xf32>
  return %y : tensor<?x128xf32>
}

// -----

// Several normalised dimensions are one.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME:    %[[X:.*]]: tensor<?x4x8xf32>
func.func @layer_norm(%x: tensor<?x4x8xf32>, %s: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<?x4x8xf32> {
  // CHECK: tensor.collapse_shape %[[X]] {{\[}}[0], [1, 2]]
  // CHECK: iterator_types = ["parallel", "reduction"]
  // CHECK: iterator_types = ["parallel", "reduction"]
  // CHECK: math.sqrt
  // CHECK: tensor.expand_shape {{.*}} into tensor<?x4x8xf32>
  %y = onnx.LayerNormalization(%x, %s, %b) {axis = 1} : (tensor<?x4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<?x4x8xf32>
  return %y : tensor<?x4x8xf32>
}

// -----

// What depends on the weights only is computed for each channel first.
// CHECK-LABEL: func.func @batch_norm
func.func @batch_norm(%x: tensor<1x3x8x8xf32>, %s: tensor<3xf32>, %b: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<1x3x8x8xf32> {
  // CHECK: %[[A:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3xf32>)
  // CHECK: %[[B:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3xf32>)
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[A]], %[[B]] : tensor<1x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: math.fma
  %y = onnx.BatchNormalization(%x, %s, %b, %m, %v) : (tensor<1x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x3x8x8xf32>
  return %y : tensor<1x3x8x8xf32>
}
