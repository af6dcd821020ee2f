// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A table of positions (here the same for both axes), then one gather.
// CHECK-LABEL: func @nearest
// CHECK: -> tensor<8xi64>
// CHECK: tensor.extract %arg0
// CHECK: -> tensor<1x3x8x8xf32>
func.func @nearest(%x: tensor<1x3x4x4xf32>) -> tensor<1x3x8x8xf32> {
  %s = onnx.Constant() {value = dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Resize(%x, none, %s) {coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} : (tensor<1x3x4x4xf32>, tensor<4xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// -----

// CHECK-LABEL: func @linear
// CHECK: -> (tensor<8x2xi64>, tensor<8x2xf32>)
// CHECK: linalg.generic
// CHECK-SAME: ["parallel", "parallel", "parallel", "reduction"]
func.func @linear(%x: tensor<1x3x4xf32>) -> tensor<1x3x8xf32> {
  %s = onnx.Constant() {value = dense<[1, 3, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = onnx.Resize(%x, none, none, %s) {mode = "linear"} : (tensor<1x3x4xf32>, tensor<3xi64>) -> tensor<1x3x8xf32>
  return %0 : tensor<1x3x8xf32>
}
