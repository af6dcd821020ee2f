// RUN: onnx-opt %s -split-input-file --compile-to=onnx | FileCheck %s

// The operators of com.microsoft on integers are the same graphs.
// CHECK-LABEL: func.func @sigmoid
// CHECK: onnx.Gather(%{{.*}}, %{{.*}}) : (tensor<256xui8>, tensor<2x512xi32>) -> tensor<2x512xui8>
func.func @sigmoid(%x: tensor<2x512xui8>) -> tensor<2x512xui8> {
  %s = onnx.Constant() {value = dense<0.05> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<120> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.ms.QLinearSigmoid(%x, %s, %z, %s, %z) : (tensor<2x512xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x512xui8>
  return %0 : tensor<2x512xui8>
}

// -----

// CHECK-LABEL: func.func @concat
// CHECK-NOT: QuantizeLinear
// CHECK: onnx.Concat(%arg0, %arg1) {axis = 1} : (tensor<2x8xui8>, tensor<2x4xui8>) -> tensor<2x12xui8>
func.func @concat(%x: tensor<2x8xui8>, %y: tensor<2x4xui8>) -> tensor<2x12xui8> {
  %s = onnx.Constant() {value = dense<0.05> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<120> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.ms.QLinearConcat(%s, %z, %x, %s, %z, %y, %s, %z) {axis = 1} : (tensor<f32>, tensor<ui8>, tensor<2x8xui8>, tensor<f32>, tensor<ui8>, tensor<2x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x12xui8>
  return %0 : tensor<2x12xui8>
}
