// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization | FileCheck %s

// Constants with equal bytes are equal parameters.
// CHECK-LABEL: func @quantize_dequantized
// CHECK-NEXT: return %arg0
func.func @quantize_dequantized(%q: tensor<?x4xui8>) -> tensor<?x4xui8> {
  %s = onnx.Constant() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.1> : tensor<1xf32>} : () -> tensor<1xf32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<?x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x4xf32>
  %1 = onnx.QuantizeLinear(%0, %t, %z) : (tensor<?x4xf32>, tensor<1xf32>, tensor<ui8>) -> tensor<?x4xui8>
  return %1 : tensor<?x4xui8>
}

// -----

// So are parameters that only the run knows, and a zero point of 0 that is left
// out.
// CHECK-LABEL: func @quantize_dequantized_open
// CHECK: return %arg0
func.func @quantize_dequantized_open(%q: tensor<?x4xi8>, %s: tensor<4xf32>) -> tensor<?x4xi8> {
  %z = onnx.Constant() {value = dense<0> : tensor<4xi8>} : () -> tensor<4xi8>
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<?x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<?x4xf32>
  %1 = onnx.QuantizeLinear(%0, %s, %z) : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<?x4xi8>
  return %1 : tensor<?x4xi8>
}

// -----

// Integers of other parameters, along another axis or of another sign are others.
// CHECK-LABEL: func @other_parameters
// CHECK-COUNT-3: onnx.QuantizeLinear
func.func @other_parameters(%q: tensor<4x4xi8>, %s: tensor<4xf32>, %t: tensor<4xf32>, %z: tensor<4xui8>) -> (tensor<4x4xi8>, tensor<4x4xi8>, tensor<4x4xui8>) {
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %1 = onnx.QuantizeLinear(%0, %t) {output_dtype = 3} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xi8>
  %2 = onnx.QuantizeLinear(%0, %s) {axis = 0, output_dtype = 3} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xi8>
  %3 = onnx.QuantizeLinear(%0, %s, %z) : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xui8>) -> tensor<4x4xui8>
  return %1, %2, %3 : tensor<4x4xi8>, tensor<4x4xi8>, tensor<4x4xui8>
}

// -----

// To quantise rounds: the floats after it are others.
// CHECK-LABEL: func @dequantize_quantized
// CHECK: onnx.QuantizeLinear
// CHECK: onnx.DequantizeLinear
func.func @dequantize_quantized(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  %0 = onnx.QuantizeLinear(%x, %s) {output_dtype = 3} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
  %1 = onnx.DequantizeLinear(%0, %s) : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// What the largest integers stand for is infinite here.
// CHECK-LABEL: func @huge_scale
// CHECK: onnx.Gather
func.func @huge_scale(%q: tensor<?x4xi8>) -> tensor<?x4xi8> {
  %s = onnx.Constant() {value = dense<3.0e38> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<?x4xi8>, tensor<f32>) -> tensor<?x4xf32>
  %1 = onnx.QuantizeLinear(%0, %s) {output_dtype = 3} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xi8>
  return %1 : tensor<?x4xi8>
}

// -----

// One for each reader is one for all.
// CHECK-LABEL: func @merge
// CHECK: %[[X:.*]] = onnx.DequantizeLinear
// CHECK-NOT: onnx.DequantizeLinear
// CHECK: onnx.Add(%[[X]], %[[X]])
func.func @merge(%q: tensor<4xi8>) -> tensor<4xf32> {
  %s = onnx.Constant() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.1> : tensor<1xf32>} : () -> tensor<1xf32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.DequantizeLinear(%q, %t) : (tensor<4xi8>, tensor<1xf32>) -> tensor<4xf32>
  %2 = onnx.Add(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
