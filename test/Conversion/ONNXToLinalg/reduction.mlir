// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// Adjacent reduced dimensions become one; it is the last loop.
// CHECK-LABEL: func.func @mean
// CHECK-SAME:    %[[X:.*]]: tensor<?x3x4x5xf32>
func.func @mean(%x: tensor<?x3x4x5xf32>) -> tensor<?x3x1x1xf32> {
  // CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[X]] {{\[}}[0], [1], [2, 3]]
  // CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[FLAT]]
  // CHECK: arith.addf
  // CHECK: arith.divf
  // CHECK: tensor.expand_shape
  %axes = onnx.Constant() {value = dense<[2, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = onnx.ReduceMean(%x, %axes) : (tensor<?x3x4x5xf32>, tensor<2xi64>) -> tensor<?x3x1x1xf32>
  return %y : tensor<?x3x1x1xf32>
}

// -----

// Half precision accumulates in f32.
// CHECK-LABEL: func.func @half
func.func @half(%x: tensor<4x5xf16>) -> tensor<f16> {
  // CHECK: outs(%{{.*}} : tensor<f32>)
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  %y = onnx.ReduceSum(%x) {keepdims = 0} : (tensor<4x5xf16>) -> tensor<f16>
  return %y : tensor<f16>
}

// -----

// Axes that are known at run time only: every dimension is looped over twice.
// CHECK-LABEL: func.func @unknown_axes
func.func @unknown_axes(%x: tensor<4x5xf32>, %axes: tensor<1xi64>) -> tensor<?x?xf32> {
  // CHECK: sdx.check %{{.*}}, "ReduceMax: axis {0} is out of range"(
  // CHECK: iterator_types = ["parallel", "parallel", "reduction", "reduction"]
  // CHECK: tensor.extract
  // CHECK: arith.maximumf
  %y = onnx.ReduceMax(%x, %axes) : (tensor<4x5xf32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Along the last axis: the largest, then the first place that holds it.
// CHECK-LABEL: func.func @argmax
func.func @argmax(%x: tensor<4x5xf32>) -> tensor<4xi64> {
  // CHECK: %[[BEST:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x5xf32>)
  // CHECK: arith.maximumf
  // CHECK: linalg.generic {{.*}} ins(%arg0, %[[BEST]] : tensor<4x5xf32>, tensor<4xf32>)
  // CHECK: linalg.index 1
  // CHECK: arith.minsi {{.*}} : i32
  // CHECK: arith.extsi {{.*}} : i32 to i64
  %y = onnx.ArgMax(%x) {axis = 1, keepdims = 0} : (tensor<4x5xf32>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// CHECK-LABEL: func.func @argmax_of_columns
func.func @argmax_of_columns(%x: tensor<4x5xf32>) -> tensor<5xi64> {
  // CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<5xf32>, tensor<5xi64>)
  // CHECK: linalg.index 1
  %y = onnx.ArgMax(%x) {axis = 0, keepdims = 0} : (tensor<4x5xf32>) -> tensor<5xi64>
  return %y : tensor<5xi64>
}
