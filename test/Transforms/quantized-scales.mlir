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

// -----

// A float bias is divided as well, in either order of the sum.
// CHECK-LABEL: func @bias
// CHECK-DAG: %[[M:.*]] = onnx.Constant() {value = dense<[0.0170{{[0-9]*}}, 0.0323{{[0-9]*}}]> : tensor<2xf32>}
// CHECK-DAG: %[[B:.*]] = onnx.Constant() {value = dense<{{\[}}{{\[}}-1.77{{[0-9]*}}, 0.000000e+00]]> : tensor<1x2xf32>}
// CHECK-DAG: %[[ONE:.*]] = onnx.Constant() {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %[[F:.*]] = onnx.Cast(%arg0)
// CHECK: %[[P:.*]] = onnx.Mul(%[[F]], %[[M]])
// CHECK: %[[S:.*]] = onnx.Add(%[[P]], %[[B]])
// CHECK: onnx.QuantizeLinear(%[[S]], %[[ONE]], %{{.*}}) : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
func.func @bias(%sum: tensor<?x2xi32>) -> tensor<?x2xui8> {
  %s = onnx.Constant() {value = dense<[0.00124759, 0.00236991]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = onnx.Constant() {value = dense<[[-0.1301, 0.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %t = onnx.Constant() {value = dense<0.0733> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<?x2xi32>) -> tensor<?x2xf32>
  %1 = onnx.Mul(%0, %s) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32>
  %2 = onnx.Add(%b, %1) : (tensor<1x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  %3 = onnx.QuantizeLinear(%2, %t, %z) : (tensor<?x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<?x2xui8>
  return %3 : tensor<?x2xui8>
}

// -----

// A bias that many sums must cancel, one that makes ties of what the model
// rounds, and one that a run brings leave the division.
// CHECK-LABEL: func @other_biases
// CHECK-DAG: %[[T:.*]] = onnx.Constant() {value = dense<7.330000e-02> : tensor<f32>}
// CHECK-DAG: %[[U:.*]] = onnx.Constant() {value = dense<6.000000e-01> : tensor<f32>}
// CHECK: onnx.QuantizeLinear(%{{.*}}, %[[T]]
// CHECK: onnx.QuantizeLinear(%{{.*}}, %[[U]]
// CHECK: onnx.QuantizeLinear(%{{.*}}, %[[T]]
func.func @other_biases(%sum: tensor<4xi32>, %x: tensor<4xf32>) -> (tensor<4xui8>, tensor<4xui8>, tensor<4xui8>) {
  %s = onnx.Constant() {value = dense<0.00124759> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.0733> : tensor<f32>} : () -> tensor<f32>
  %large = onnx.Constant() {value = dense<40.0> : tensor<f32>} : () -> tensor<f32>
  %tenth = onnx.Constant() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %u = onnx.Constant() {value = dense<0.6> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Cast(%sum) {to = 1 : si64} : (tensor<4xi32>) -> tensor<4xf32>
  %1 = onnx.Mul(%0, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = onnx.Add(%1, %large) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = onnx.QuantizeLinear(%2, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  %4 = onnx.Mul(%0, %tenth) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = onnx.Add(%4, %tenth) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = onnx.QuantizeLinear(%5, %u, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  %7 = onnx.Mul(%0, %s) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %8 = onnx.Add(%7, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %9 = onnx.QuantizeLinear(%8, %t, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %3, %6, %9 : tensor<4xui8>, tensor<4xui8>, tensor<4xui8>
}
