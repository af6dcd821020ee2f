// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization | FileCheck %s

// One factor for each filter, which divides by 0.0733 as well.
// CHECK-LABEL: func @merged
// CHECK-DAG: %[[M:.*]] = onnx.Constant() {value = dense<{{\[}}{{\[}}[0.0170{{[0-9]*}}]], {{\[}}[0.0323{{[0-9]*}}]]]> : tensor<2x1x1xf32>}
// CHECK-DAG: %[[ONE:.*]] = onnx.Constant() {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %[[F:.*]] = onnx.Cast(%arg0)
// CHECK: %[[P:.*]] = onnx.Mul(%[[F]], %[[M]])
// CHECK: onnx.QuantizeLinear(%[[P]], %[[ONE]], %{{.*}}) : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xui8>
func.func @merged(%sum: tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xui8> {
  %s = onnx.Constant() {value = dense<[[[0.00124759]], [[0.00236991]]]> : tensor<2x1x1xf32>} : () -> tensor<2x1x1xf32>
  %t = onnx.Constant() {value = dense<0.0733> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<1x2x4x4xi32>) -> tensor<1x2x4x4xf32>
  %1 = onnx.Mul(%0, %s) : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = onnx.QuantizeLinear(%1, %t, %z) : (tensor<1x2x4x4xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x4x4xui8>
  return %2 : tensor<1x2x4x4xui8>
}

// -----

// Scales of few bits are multiplied without rounding: the division alone says
// what is nearest.
// CHECK-LABEL: func @few_bits
// CHECK: %[[T:.*]] = onnx.Constant() {value = dense<3.750000e-01> : tensor<f32>}
// CHECK: onnx.QuantizeLinear(%{{.*}}, %[[T]]
func.func @few_bits(%sum: tensor<4xi32>) -> tensor<4xui8> {
  %s = onnx.Constant() {value = dense<0.0625> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.375> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<4xi32>) -> tensor<4xf32>
  %1 = onnx.Mul(%0, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = onnx.QuantizeLinear(%1, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}

// -----

// A quotient that is exact is the factor.
// CHECK-LABEL: func @powers_of_two
// CHECK: onnx.Constant() {value = dense<2.500000e-01> : tensor<f32>}
// CHECK: onnx.QuantizeLinear
func.func @powers_of_two(%sum: tensor<4xi32>) -> tensor<4xui8> {
  %s = onnx.Constant() {value = dense<0.0625> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<4xi32>) -> tensor<4xf32>
  %1 = onnx.Mul(%0, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = onnx.QuantizeLinear(%1, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %2 : tensor<4xui8>
}

// -----

// Of floats that are no sums of integers the division is what the model says;
// scales that a run brings are not known.
// CHECK-LABEL: func @others
// CHECK-COUNT-2: onnx.QuantizeLinear(%{{.*}}, %arg
func.func @others(%x: tensor<4xf32>, %sum: tensor<4xi32>, %t: tensor<f32>) -> (tensor<4xui8>, tensor<4xui8>) {
  %s = onnx.Constant() {value = dense<0.00124759> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Mul(%x, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  %2 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<4xi32>) -> tensor<4xf32>
  %3 = onnx.Mul(%2, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = onnx.QuantizeLinear(%3, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %1, %4 : tensor<4xui8>, tensor<4xui8>
}
