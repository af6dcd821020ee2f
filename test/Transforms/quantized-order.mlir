// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization | FileCheck %s

// The zero point is the least integer: there is nothing below it.
// CHECK-LABEL: func @relu
// CHECK-NOT: onnx.Relu
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%arg0
// CHECK: return %[[Q]]
func.func @relu(%x: tensor<4xf32>) -> tensor<4xui8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %s, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// -----

// CHECK-LABEL: func @relu_above
// CHECK: %[[Z:.*]] = onnx.Constant() {value = dense<-3> : tensor<i8>}
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%arg0
// CHECK: onnx.Max(%[[Q]], %[[Z]]) : (tensor<4xi8>, tensor<i8>) -> tensor<4xi8>
func.func @relu_above(%x: tensor<4xf32>) -> tensor<4xi8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<-3> : tensor<i8>} : () -> tensor<i8>
  %0 = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %s, %z) : (tensor<4xf32>, tensor<f32>, tensor<i8>) -> tensor<4xi8>
  return %1 : tensor<4xi8>
}

// -----

// 6 / 0.02 is beyond 255, and -1 / 0.02 + 10 below 0.
// CHECK-LABEL: func @wide_clip
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%arg0
// CHECK-NEXT: return %[[Q]]
func.func @wide_clip(%x: tensor<4xf32>) -> tensor<4xui8> {
  %s = onnx.Constant() {value = dense<0.02> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %a = onnx.Constant() {value = dense<-1.0> : tensor<f32>} : () -> tensor<f32>
  %b = onnx.Constant() {value = dense<6.0> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Clip(%x, %a, %b) : (tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %s, %z) : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<4xui8>
  return %1 : tensor<4xui8>
}

// -----

// Bounds as maxima and minima, rounded as elements are: 0.75 / 0.5 is 2.
// CHECK-LABEL: func @min_max
// CHECK-DAG: %[[A:.*]] = onnx.Constant() {value = dense<2> : tensor<i8>}
// CHECK-DAG: %[[B:.*]] = onnx.Constant() {value = dense<12> : tensor<i8>}
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%arg0
// CHECK: %[[M:.*]] = onnx.Max(%[[Q]], %[[A]])
// CHECK: onnx.Min(%[[M]], %[[B]])
func.func @min_max(%x: tensor<4xf32>) -> tensor<4xi8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %a = onnx.Constant() {value = dense<0.75> : tensor<f32>} : () -> tensor<f32>
  %b = onnx.Constant() {value = dense<6.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = onnx.Max(%x, %a) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.Min(%0, %b) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %2 = onnx.QuantizeLinear(%1, %s) {output_dtype = 3} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  return %2 : tensor<4xi8>
}

// -----

// A negative scale turns the order, and an unknown one may.
// CHECK-LABEL: func @no_order
// CHECK-COUNT-2: onnx.Relu
func.func @no_order(%x: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xi8>, tensor<4xi8>) {
  %t = onnx.Constant() {value = dense<-0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %s) {output_dtype = 3} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  %2 = onnx.Abs(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Relu(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = onnx.QuantizeLinear(%3, %t) {output_dtype = 3} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  return %1, %4 : tensor<4xi8>, tensor<4xi8>
}

// -----

// Between equal parameters a bound of the integers is all there is.
// CHECK-LABEL: func @relu_of_integers
// CHECK-NOT: Linear
// CHECK: onnx.Max(%arg0, %{{.*}}) : (tensor<1024xui8>, tensor<ui8>) -> tensor<1024xui8>
func.func @relu_of_integers(%q: tensor<1024xui8>) -> tensor<1024xui8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<10> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<1024xui8>, tensor<f32>, tensor<ui8>) -> tensor<1024xf32>
  %1 = onnx.Relu(%0) : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = onnx.QuantizeLinear(%1, %s, %z) : (tensor<1024xf32>, tensor<f32>, tensor<ui8>) -> tensor<1024xui8>
  return %2 : tensor<1024xui8>
}

// -----

// Where the clamped floats are read as well, one of both is enough.
// CHECK-LABEL: func @relu_read_twice
// CHECK: %[[R:.*]] = onnx.Relu(%arg0)
// CHECK: onnx.QuantizeLinear(%[[R]]
func.func @relu_read_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi8>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.QuantizeLinear(%0, %s) {output_dtype = 3} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  return %0, %1 : tensor<4xf32>, tensor<4xi8>
}
