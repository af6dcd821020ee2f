// RUN: onnx-opt %s -canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @constants
// CHECK-DAG: value = dense<3> : tensor<i64>
// CHECK-DAG: value = dense<[1, 2]> : tensor<2xi64>
// CHECK-DAG: value = dense<5.000000e-01> : tensor<f32>
// CHECK-DAG: value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-DAG: value = dense<"text"> : tensor<!onnx.string>
// CHECK-DAG: value = dense<["a", "b"]> : tensor<2x!onnx.string>
func.func @constants() -> (tensor<i64>, tensor<2xi64>, tensor<f32>, tensor<2xf32>, tensor<!onnx.string>, tensor<2x!onnx.string>) {
  %0 = onnx.Constant() {value_int = 3} : () -> tensor<i64>
  %1 = onnx.Constant() {value_ints = array<i64: 1, 2>} : () -> tensor<2xi64>
  %2 = onnx.Constant() {value_float = 0.5} : () -> tensor<f32>
  %3 = onnx.Constant() {value_floats = array<f32: 1.0, 2.0>} : () -> tensor<2xf32>
  %4 = onnx.Constant() {value_string = "text"} : () -> tensor<!onnx.string>
  %5 = onnx.Constant() {value_strings = ["a", "b"]} : () -> tensor<2x!onnx.string>
  return %0, %1, %2, %3, %4, %5 : tensor<i64>, tensor<2xi64>, tensor<f32>, tensor<2xf32>, tensor<!onnx.string>, tensor<2x!onnx.string>
}

// -----

// CHECK-LABEL: func.func @nothing_to_do
// CHECK-SAME:  (%[[X:.*]]: tensor<2x4xf32>)
// CHECK-NEXT:  return %[[X]], %[[X]], %[[X]]
func.func @nothing_to_do(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = onnx.Identity(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = onnx.Cast(%x) {to = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = onnx.Transpose(%x) {perm = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @transposes
// CHECK-SAME:  (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT:  %[[Y:.*]] = onnx.Transpose(%[[X]]) {perm = array<i64: 1, 0, 2>}
// CHECK-NEXT:  return %[[Y]], %[[X]]
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<3x2x4xf32>, tensor<2x3x4xf32>) {
  %0 = onnx.Transpose(%x) {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = onnx.Transpose(%0) : (tensor<4x2x3xf32>) -> tensor<3x2x4xf32>
  %2 = onnx.Transpose(%1) {perm = array<i64: 1, 0, 2>} : (tensor<3x2x4xf32>) -> tensor<2x3x4xf32>
  return %1, %2 : tensor<3x2x4xf32>, tensor<2x3x4xf32>
}

// -----

// A 0 in the target copies a size of the Reshape's own input.

// CHECK-LABEL: func.func @reshapes
// CHECK-SAME:  (%[[X:.*]]: tensor<2x12xf32>)
// CHECK-DAG:   onnx.Reshape(%[[X]], %{{.*}}) : (tensor<2x12xf32>, tensor<2xi64>) -> tensor<3x8xf32>
// CHECK-DAG:   %[[M:.*]] = onnx.Reshape(%[[X]], %{{.*}}) : (tensor<2x12xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
// CHECK:       onnx.Reshape(%[[M]], %{{.*}}) : (tensor<4x2x3xf32>, tensor<2xi64>) -> tensor<4x6xf32>
func.func @reshapes(%x: tensor<2x12xf32>) -> (tensor<3x8xf32>, tensor<4x6xf32>) {
  %a = onnx.Constant() {value = dense<[4, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %b = onnx.Constant() {value = dense<[3, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %c = onnx.Constant() {value = dense<[0, 6]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = onnx.Reshape(%x, %a) : (tensor<2x12xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>
  %1 = onnx.Reshape(%0, %b) : (tensor<4x2x3xf32>, tensor<2xi64>) -> tensor<3x8xf32>
  %2 = onnx.Reshape(%0, %c) : (tensor<4x2x3xf32>, tensor<2xi64>) -> tensor<4x6xf32>
  return %1, %2 : tensor<3x8xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @dropout
// CHECK-SAME:  (%[[X:.*]]: tensor<4xf32>, %[[T:.*]]: tensor<i1>)
// CHECK:       %[[Y:.*]] = onnx.Dropout(%[[X]], none, %[[T]])
// CHECK-NEXT:  return %[[X]], %[[X]], %[[Y]]
func.func @dropout(%x: tensor<4xf32>, %t: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %false = onnx.Constant() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %0 = onnx.Dropout(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1, %m = onnx.Dropout(%x, none, %false) : (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xi1>)
  %2 = onnx.Dropout(%x, none, %t) : (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Random numbers are neither merged nor dropped.

// CHECK-LABEL: func.func @random
// CHECK-COUNT-2: onnx.RandomNormal
func.func @random() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = onnx.RandomNormal() {shape = array<i64: 4>} : () -> tensor<4xf32>
  %1 = onnx.RandomNormal() {shape = array<i64: 4>} : () -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
