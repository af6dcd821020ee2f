// RUN: onnx-opt %s -onnx-fold-batch-norm -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @conv
// CHECK-SAME:  (%[[X:.*]]: tensor<1x2x8x8xf32>)
// CHECK-DAG:   %[[W:.*]] = onnx.Constant() {value = dense<5.000000e-01> : tensor<4x2x3x3xf32>}
// CHECK-DAG:   %[[SCALE:.*]] = onnx.Constant() {value = dense<2.000000e+00> : tensor<4xf32>}
// CHECK-DAG:   %[[B:.*]] = onnx.Constant() {value = dense<3.000000e+00> : tensor<4xf32>}
// CHECK-DAG:   %[[MEAN:.*]] = onnx.Constant() {value = dense<4.000000e+00> : tensor<4xf32>}
// CHECK-DAG:   %[[VAR:.*]] = onnx.Constant() {value = dense<5.000000e+00> : tensor<4xf32>}
// CHECK-DAG:   %[[EPS:.*]] = onnx.Constant() {value = dense<9.99999974E-6> : tensor<f32>}
// CHECK-DAG:   %[[TARGET:.*]] = onnx.Constant() {value = dense<[4, 1, 1, 1]> : tensor<4xi64>}
// CHECK:       %[[SUM:.*]] = onnx.Add(%[[VAR]], %[[EPS]])
// CHECK:       %[[ROOT:.*]] = onnx.Sqrt(%[[SUM]])
// CHECK:       %[[FACTOR:.*]] = onnx.Div(%[[SCALE]], %[[ROOT]])
// CHECK:       %[[SPREAD:.*]] = onnx.Reshape(%[[FACTOR]], %[[TARGET]])
// CHECK:       %[[NEW_W:.*]] = onnx.Mul(%[[W]], %[[SPREAD]])
// CHECK:       %[[MINUS:.*]] = onnx.Neg(%[[MEAN]])
// CHECK:       %[[OFFSET:.*]] = onnx.Mul(%[[MINUS]], %[[FACTOR]])
// CHECK:       %[[NEW_B:.*]] = onnx.Add(%[[OFFSET]], %[[B]])
// CHECK:       %[[Y:.*]] = onnx.Conv(%[[X]], %[[NEW_W]], %[[NEW_B]]) {strides = array<i64: 2, 2>}
// CHECK-NOT:   onnx.BatchNormalization
// CHECK:       return %[[Y]]
func.func @conv(%x: tensor<1x2x8x8xf32>) -> tensor<1x4x3x3xf32> {
  %w = onnx.Constant() {value = dense<0.5> : tensor<4x2x3x3xf32>} : () -> tensor<4x2x3x3xf32>
  %scale = onnx.Constant() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %b = onnx.Constant() {value = dense<3.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %mean = onnx.Constant() {value = dense<4.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %var = onnx.Constant() {value = dense<5.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Conv(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  %1 = onnx.BatchNormalization(%0, %scale, %b, %mean, %var) : (tensor<1x4x3x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x3x3xf32>
  return %1 : tensor<1x4x3x3xf32>
}

// -----

// The output channels of ConvTranspose are the second dimension.

// CHECK-LABEL: func.func @conv_transpose
// CHECK:       dense<[1, 4, 1]> : tensor<3xi64>
// CHECK:       onnx.Sub
// CHECK:       onnx.ConvTranspose(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<1x2x8xf32>, tensor<2x4x3xf32>, tensor<4xf32>) -> tensor<1x4x10xf32>
// CHECK-NEXT:  return
func.func @conv_transpose(%x: tensor<1x2x8xf32>) -> tensor<1x4x10xf32> {
  %w = onnx.Constant() {value = dense<0.5> : tensor<2x4x3xf32>} : () -> tensor<2x4x3xf32>
  %v = onnx.Constant() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.ConvTranspose(%x, %w, %v) : (tensor<1x2x8xf32>, tensor<2x4x3xf32>, tensor<4xf32>) -> tensor<1x4x10xf32>
  %1 = onnx.BatchNormalization(%0, %v, %v, %v, %v) : (tensor<1x4x10xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x10xf32>
  return %1 : tensor<1x4x10xf32>
}

// -----

// What constants are made into by elementwise ops, and by those that move elements,
// is constant: the bias that the first one leaves, and weights that are filled in.

// CHECK-LABEL: func.func @twice
// CHECK-NOT:   onnx.BatchNormalization
// CHECK:       onnx.Conv
// CHECK-NOT:   onnx.BatchNormalization
func.func @twice(%x: tensor<1x2x8xf32>) -> tensor<1x4x6xf32> {
  %shape = onnx.Constant() {value = dense<[4, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %filled = onnx.ConstantOfShape(%shape) {value = dense<0.5> : tensor<1xf32>} : (tensor<3xi64>) -> tensor<4x2x3xf32>
  %w = onnx.Exp(%filled) : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %v = onnx.Constant() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Conv(%x, %w) : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  %1 = onnx.BatchNormalization(%0, %v, %v, %v, %v) : (tensor<1x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  %2 = onnx.BatchNormalization(%1, %v, %v, %v, %v) : (tensor<1x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  return %2 : tensor<1x4x6xf32>
}

// -----

// Another reader of the convolution, weights that are computed or dequantized: no
// gain.

// CHECK-LABEL: func.func @refused
// CHECK-COUNT-3: onnx.BatchNormalization
func.func @refused(%x: tensor<1x2x8xf32>, %given: tensor<4x2x3xf32>) -> (tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>) {
  %w = onnx.Constant() {value = dense<0.5> : tensor<4x2x3xf32>} : () -> tensor<4x2x3xf32>
  %v = onnx.Constant() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Conv(%x, %w) : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  %1 = onnx.BatchNormalization(%0, %v, %v, %v, %v) : (tensor<1x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  %2 = onnx.Conv(%x, %given) : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  %3 = onnx.BatchNormalization(%2, %v, %v, %v, %v) : (tensor<1x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  %short = onnx.Constant() {value = dense<3> : tensor<4x2x3xi8>} : () -> tensor<4x2x3xi8>
  %scale = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %4 = onnx.DequantizeLinear(%short, %scale) : (tensor<4x2x3xi8>, tensor<f32>) -> tensor<4x2x3xf32>
  %5 = onnx.Conv(%x, %4) : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  %6 = onnx.BatchNormalization(%5, %v, %v, %v, %v) : (tensor<1x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x6xf32>
  return %0, %1, %3, %6 : tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>, tensor<1x4x6xf32>
}
