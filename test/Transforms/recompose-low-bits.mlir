// RUN: onnx-opt %s -split-input-file -onnx-recompose | FileCheck %s

// Weights of 4 bits with blocks along k are MatMulNBits': packed, one column after the other, and unsigned.

// CHECK-LABEL: func @blocks
// CHECK-NOT: onnx.DequantizeLinear
// CHECK-DAG: %[[Q:.*]] = onnx.Constant() {value = dense<{{.*}}> : tensor<4x2xi4>}
// CHECK-DAG: %[[S:.*]] = onnx.Constant() {value = dense<{{.*}}> : tensor<2x2xf32>}
// CHECK: %[[COLUMNS:.*]] = onnx.Transpose(%[[Q]])
// CHECK: onnx.Cast(%[[COLUMNS]]) {to = 6}
// CHECK: onnx.Add
// CHECK: onnx.Mul
// CHECK: %[[SUM:.*]] = onnx.ReduceSum
// CHECK: %[[BYTES:.*]] = onnx.Cast(%[[SUM]]) {to = 2} : (tensor<2x2x1xi32>) -> tensor<2x2x1xui8>
// CHECK: %[[SCALES:.*]] = onnx.Transpose(%[[S]])
// CHECK: onnx.ms.MatMulNBits(%arg0, %[[BYTES]], %[[SCALES]]) {K = 4, N = 2, block_size = 2}
func.func @blocks(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<[[1, -2], [3, -4], [5, -6], [7, -8]]> : tensor<4x2xi4>} : () -> tensor<4x2xi4>
  %s = onnx.Constant() {value = dense<[[0.5, 0.25], [1.5, 2.5]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 0, block_size = 2} : (tensor<4x2xi4>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Blocks along n, or a scale for each k, are nobody's.

// CHECK-LABEL: func @along_n
// CHECK: onnx.MatMul(
func.func @along_n(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi4>} : () -> tensor<4x2xi4>
  %s = onnx.Constant() {value = dense<0.5> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1, block_size = 2} : (tensor<4x2xi4>, tensor<4x1xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func @for_each_k
// CHECK: onnx.MatMul(
func.func @for_each_k(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi4>} : () -> tensor<4x2xi4>
  %s = onnx.Constant() {value = dense<[0.5, 1.5, 2.5, 3.5]> : tensor<4xf32>} : () -> tensor<4xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 0} : (tensor<4x2xi4>, tensor<4xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Bytes stay bytes for few rows, or an open number of them.

// CHECK-LABEL: func @bytes
// CHECK: onnx.ms.MatMulNBits(%arg0, {{.*}}) {K = 4, N = 2, bits = 8, block_size = 4}
func.func @bytes(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %s = onnx.Constant() {value = dense<[0.5, 1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1} : (tensor<4x2xi8>, tensor<2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func @bytes_of_many_rows
// CHECK: onnx.MatMul(
func.func @bytes_of_many_rows(%x: tensor<9x4xf32>) -> tensor<9x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %s = onnx.Constant() {value = dense<[0.5, 1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1} : (tensor<4x2xi8>, tensor<2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<9x4xf32>, tensor<4x2xf32>) -> tensor<9x2xf32>
  return %y : tensor<9x2xf32>
}

// -----

// Zero points are integers in bytes, too; blocks that fill no byte end in zeros.

// CHECK-LABEL: func @zero_points
// CHECK-DAG: %[[Z:.*]] = onnx.Constant() {value = dense<{{.*}}> : tensor<3x2xi4>}
// CHECK: %[[ROWS:.*]] = onnx.Transpose(%{{.*}}) {{.*}} (tensor<3x2xi32>) -> tensor<2x3xi32>
// CHECK: %[[UNSIGNED:.*]] = onnx.Add(%[[ROWS]]
// CHECK: onnx.Concat(%[[UNSIGNED]], %{{.*}}) {axis = 1} : (tensor<2x3xi32>, tensor<2x1xi32>) -> tensor<2x4xi32>
// CHECK: %[[BYTES:.*]] = onnx.Cast(%{{.*}}) {to = 2} : (tensor<2x2xi32>) -> tensor<2x2xui8>
// CHECK: onnx.ms.MatMulNBits(%arg0, %{{.*}}, %{{.*}}, %[[BYTES]])
func.func @zero_points(%x: tensor<?x6xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<6x2xi4>} : () -> tensor<6x2xi4>
  %s = onnx.Constant() {value = dense<0.5> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %z = onnx.Constant() {value = dense<[[1, -2], [3, -4], [5, -6]]> : tensor<3x2xi4>} : () -> tensor<3x2xi4>
  %w = onnx.DequantizeLinear(%q, %s, %z) {axis = 0, block_size = 2} : (tensor<6x2xi4>, tensor<3x2xf32>, tensor<3x2xi4>) -> tensor<6x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x6xf32>, tensor<6x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}
