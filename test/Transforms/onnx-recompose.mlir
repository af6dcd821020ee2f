// RUN: onnx-opt %s -onnx-recompose -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @gelu_erf
// CHECK-SAME:  (%[[X:.*]]: tensor<?x4xf32>)
// CHECK:       %[[Y:.*]] = onnx.Gelu(%[[X]]) : (tensor<?x4xf32>)
// CHECK-NEXT:  return %[[Y]]
func.func @gelu_erf(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %half = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = onnx.Constant() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %sqrt2 = onnx.Constant() {value = dense<1.41421354> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Div(%x, %sqrt2) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %1 = onnx.Erf(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = onnx.Add(%1, %one) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  %3 = onnx.Mul(%x, %2) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %4 = onnx.Mul(%3, %half) : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>
  return %4 : tensor<?x4xf32>
}

// -----

// The same product in another order, the argument as a product.

// CHECK-LABEL: func.func @gelu_erf_reordered
// CHECK:       onnx.Gelu
// CHECK-NEXT:  return
func.func @gelu_erf_reordered(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = onnx.Constant() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %one = onnx.Constant() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c = onnx.Constant() {value = dense<0.707106769> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Mul(%c, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Erf(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = onnx.Add(%one, %1) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Mul(%half, %x) : (tensor<1xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = onnx.Mul(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_tanh
// CHECK:       onnx.Gelu(%{{.*}}) {approximate = "tanh"}
// CHECK-NEXT:  return
func.func @gelu_tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = onnx.Constant() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %three = onnx.Constant() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %k = onnx.Constant() {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %c = onnx.Constant() {value = dense<0.797884583> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Pow(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.Mul(%0, %k) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = onnx.Add(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Mul(%2, %c) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = onnx.Tanh(%3) : (tensor<4xf32>) -> tensor<4xf32>
  %5 = onnx.Add(%4, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = onnx.Mul(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = onnx.Mul(%6, %5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %7 : tensor<4xf32>
}

// -----

// Almost Gelu: other constants, and another x.

// CHECK-LABEL: func.func @not_gelu
// CHECK-NOT:   onnx.Gelu
func.func @not_gelu(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %half = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %one = onnx.Constant() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %c = onnx.Constant() {value = dense<0.7072> : tensor<f32>} : () -> tensor<f32>
  %d = onnx.Constant() {value = dense<0.707106769> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Mul(%c, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Erf(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = onnx.Add(%one, %1) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Mul(%half, %x) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = onnx.Mul(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = onnx.Mul(%d, %z) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = onnx.Erf(%5) : (tensor<4xf32>) -> tensor<4xf32>
  %7 = onnx.Add(%one, %6) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %8 = onnx.Mul(%7, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4, %8 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @layer_normalization
// CHECK-SAME:  (%[[X:.*]]: tensor<?x8xf32>, %[[SCALE:.*]]: tensor<8xf32>, %[[BIAS:.*]]: tensor<8xf32>)
// CHECK:       %[[Y:.*]] = onnx.LayerNormalization(%[[X]], %[[SCALE]], %[[BIAS]]) {epsilon = 9.99999996E-13 : f32}
// CHECK-NEXT:  return %[[Y]]
func.func @layer_normalization(%x: tensor<?x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<?x8xf32> {
  %axes = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = onnx.Constant() {value = dense<1.0e-12> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.ReduceMean(%x, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %1 = onnx.Sub(%x, %0) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %2 = onnx.Pow(%1, %two) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
  %3 = onnx.ReduceMean(%2, %axes) : (tensor<?x8xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  %4 = onnx.Add(%3, %eps) : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
  %5 = onnx.Sqrt(%4) : (tensor<?x1xf32>) -> tensor<?x1xf32>
  %6 = onnx.Div(%1, %5) : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %7 = onnx.Mul(%6, %scale) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %8 = onnx.Add(%7, %bias) : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  return %8 : tensor<?x8xf32>
}

// -----

// Two dimensions, no bias; the scale must have their shape.

// CHECK-LABEL: func.func @layer_normalization_2d
// CHECK:       onnx.LayerNormalization(%{{.*}}, %{{.*}}) {axis = -2} : (tensor<2x3x8xf32>, tensor<3x8xf32>)
// CHECK:       onnx.Mul(%{{.*}}, %{{.*}}) : (tensor<2x3x8xf32>, tensor<8xf32>)
func.func @layer_normalization_2d(%x: tensor<2x3x8xf32>, %scale: tensor<3x8xf32>, %other: tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3x8xf32>) {
  %axes = onnx.Constant() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %eps = onnx.Constant() {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.ReduceMean(%x, %axes) : (tensor<2x3x8xf32>, tensor<2xi64>) -> tensor<2x1x1xf32>
  %1 = onnx.Sub(%x, %0) : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32>
  %2 = onnx.Mul(%1, %1) : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %3 = onnx.ReduceMean(%2, %axes) : (tensor<2x3x8xf32>, tensor<2xi64>) -> tensor<2x1x1xf32>
  %4 = onnx.Add(%3, %eps) : (tensor<2x1x1xf32>, tensor<f32>) -> tensor<2x1x1xf32>
  %5 = onnx.Sqrt(%4) : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %6 = onnx.Div(%1, %5) : (tensor<2x3x8xf32>, tensor<2x1x1xf32>) -> tensor<2x3x8xf32>
  %7 = onnx.Mul(%6, %scale) : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = onnx.Mul(%6, %other) : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %7, %8 : tensor<2x3x8xf32>, tensor<2x3x8xf32>
}

// -----

// CHECK-LABEL: func.func @rms_normalization
// CHECK:       %[[Y:.*]] = onnx.RMSNormalization(%{{.*}}, %{{.*}}) {epsilon = 9.99999997E-7 : f32}
// CHECK-NEXT:  return %[[Y]]
func.func @rms_normalization(%x: tensor<1x?x8xf32>, %scale: tensor<8xf32>) -> tensor<1x?x8xf32> {
  %axes = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %one = onnx.Constant() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %eps = onnx.Constant() {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Pow(%x, %two) : (tensor<1x?x8xf32>, tensor<f32>) -> tensor<1x?x8xf32>
  %1 = onnx.ReduceMean(%0, %axes) : (tensor<1x?x8xf32>, tensor<1xi64>) -> tensor<1x?x1xf32>
  %2 = onnx.Add(%1, %eps) : (tensor<1x?x1xf32>, tensor<f32>) -> tensor<1x?x1xf32>
  %3 = onnx.Sqrt(%2) : (tensor<1x?x1xf32>) -> tensor<1x?x1xf32>
  %4 = onnx.Div(%one, %3) : (tensor<f32>, tensor<1x?x1xf32>) -> tensor<1x?x1xf32>
  %5 = onnx.Mul(%x, %4) : (tensor<1x?x8xf32>, tensor<1x?x1xf32>) -> tensor<1x?x8xf32>
  %6 = onnx.Mul(%scale, %5) : (tensor<8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  return %6 : tensor<1x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @hard_swish
// CHECK-SAME:  (%[[X:.*]]: tensor<4xf32>)
// CHECK-DAG:   %[[A:.*]] = onnx.HardSwish(%[[X]])
// CHECK-DAG:   %[[B:.*]] = onnx.HardSigmoid(%[[X]]) {alpha = 0.166666672 : f32}
// CHECK:       return %[[A]], %[[B]]
func.func @hard_swish(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = onnx.Constant() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %three = onnx.Constant() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %six = onnx.Constant() {value = dense<6.0> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Add(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.Clip(%0, %zero, %six) : (tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %2 = onnx.Mul(%x, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Div(%2, %six) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = onnx.Div(%1, %six) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @hard_swish_of_sigmoid
// CHECK:       onnx.HardSwish
// CHECK-NEXT:  return
func.func @hard_swish_of_sigmoid(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.HardSigmoid(%x) {alpha = 0.166666672 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Mul(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
