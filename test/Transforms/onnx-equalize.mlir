// RUN: onnx-opt %s -onnx-equalize -split-input-file | FileCheck %s

// Ranges of the first layer's outputs and of the second one's inputs meet; the
// bias goes with the first. A channel of zeros stays.
// CHECK-LABEL: func.func @conv_relu_conv
// CHECK-SAME:  (%[[X:.*]]: tensor<1x2x8x8xf32>)
// CHECK-DAG:   %[[W1:.*]] = onnx.Constant() {value = dense<5.000000e-01>
// CHECK-DAG:   %[[W2:.*]] = onnx.Constant() {value = dense<2.000000e+00>
// CHECK-DAG:   %[[B:.*]] = onnx.Constant() {value = dense<3.000000e+00>
// CHECK:       %[[A1:.*]] = onnx.Abs(%[[W1]])
// CHECK:       %[[AXES1:.*]] = onnx.Constant() {value = dense<[1, 2, 3]>
// CHECK:       %[[M1:.*]] = onnx.ReduceMax(%[[A1]], %[[AXES1]]) : {{.*}} -> tensor<4x1x1x1xf32>
// CHECK:       %[[R1:.*]] = onnx.Reshape(%[[M1]], {{.*}} -> tensor<4xf32>
// CHECK:       %[[A2:.*]] = onnx.Abs(%[[W2]])
// CHECK:       %[[AXES2:.*]] = onnx.Constant() {value = dense<[0, 2, 3]>
// CHECK:       %[[M2:.*]] = onnx.ReduceMax(%[[A2]], %[[AXES2]]) : {{.*}} -> tensor<1x4x1x1xf32>
// CHECK:       %[[R2:.*]] = onnx.Reshape(%[[M2]], {{.*}} -> tensor<4xf32>
// CHECK:       %[[BOTH:.*]] = onnx.Mul(%[[R1]], %[[R2]])
// CHECK:       %[[RATIO:.*]] = onnx.Div(%[[R1]], %[[R2]])
// CHECK:       %[[IS:.*]] = onnx.Greater(%[[BOTH]],
// CHECK:       %[[ROOT:.*]] = onnx.Sqrt(%[[RATIO]])
// CHECK:       %[[S:.*]] = onnx.Where(%[[IS]], %[[ROOT]],
// CHECK:       %[[NEW1:.*]] = onnx.Div(%[[W1]],
// CHECK:       %[[NEW2:.*]] = onnx.Mul(%[[W2]],
// CHECK:       %[[NEWB:.*]] = onnx.Div(%[[B]], %[[S]])
// CHECK:       onnx.Conv(%[[X]], %[[NEW1]], %[[NEWB]])
// CHECK:       onnx.Relu
// CHECK:       onnx.Conv(%{{.*}}, %[[NEW2]])
func.func @conv_relu_conv(%x: tensor<1x2x8x8xf32>) -> tensor<1x3x4x4xf32> {
  %w1 = onnx.Constant() {value = dense<0.5> : tensor<4x2x3x3xf32>} : () -> tensor<4x2x3x3xf32>
  %b = onnx.Constant() {value = dense<3.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Conv(%x, %w1, %b) : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %1 = onnx.Relu(%0) : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %w2 = onnx.Constant() {value = dense<2.0> : tensor<3x4x3x3xf32>} : () -> tensor<3x4x3x3xf32>
  %2 = onnx.Conv(%1, %w2) : (tensor<1x4x6x6xf32>, tensor<3x4x3x3xf32>) -> tensor<1x3x4x4xf32>
  return %2 : tensor<1x3x4x4xf32>
}

// -----

// Of a depthwise convolution each channel is a group, along the first dimension.
// CHECK-LABEL: func.func @depthwise
// CHECK:       onnx.Reshape(%{{.*}}) : (tensor<4x1x3x3xf32>, tensor<5xi64>) -> tensor<4x1x1x3x3xf32>
// CHECK:       onnx.ReduceMax(%{{.*}}) : {{.*}} -> tensor<4x1x1x1x1xf32>
// CHECK:       onnx.Conv(%{{.*}}) : (tensor<1x2x8x8xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x8x8xf32>
// CHECK:       onnx.Conv(%{{.*}}) {group = 4}
func.func @depthwise(%x: tensor<1x2x8x8xf32>) -> tensor<1x4x6x6xf32> {
  %w1 = onnx.Constant() {value = dense<0.5> : tensor<4x2x1x1xf32>} : () -> tensor<4x2x1x1xf32>
  %w2 = onnx.Constant() {value = dense<2.0> : tensor<4x1x3x3xf32>} : () -> tensor<4x1x3x3xf32>
  %0 = onnx.Conv(%x, %w1) : (tensor<1x2x8x8xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x8x8xf32>
  %1 = onnx.Conv(%0, %w2) {group = 4} : (tensor<1x4x8x8xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %1 : tensor<1x4x6x6xf32>
}

// -----

// What a second layer reads, and what no factor passes, stay as they are; so
// does a product along another dimension than that of the channels.
// CHECK-LABEL: func.func @stays
// CHECK-NOT:   onnx.Div
// CHECK:       return
func.func @stays(%x: tensor<1x4x4x4xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) {
  %w = onnx.Constant() {value = dense<0.5> : tensor<4x4x1x1xf32>} : () -> tensor<4x4x1x1xf32>
  %m = onnx.Constant() {value = dense<0.5> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %0 = onnx.Conv(%x, %w) : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
  %1 = onnx.Conv(%0, %w) : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
  %2 = onnx.Sigmoid(%1) : (tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %3 = onnx.Conv(%2, %w) : (tensor<1x4x4x4xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x4x4xf32>
  %4 = onnx.MatMul(%3, %m) : (tensor<1x4x4x4xf32>, tensor<4x4xf32>) -> tensor<1x4x4x4xf32>
  return %0, %2, %4 : tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>
}
