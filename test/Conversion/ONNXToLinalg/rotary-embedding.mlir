// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Heads of a flat input are views; an id outside of the table reads its border.
// CHECK-LABEL: func @flat
// CHECK: tensor.expand_shape %arg0 {{\[}}[0], [1], [2, 3]]
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: tensor.collapse_shape
func.func @flat(%x: tensor<2x3x8xf32>, %c: tensor<5x2xf32>, %s: tensor<5x2xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %0 = onnx.RotaryEmbedding(%x, %c, %s, %i) {num_heads = 2} : (tensor<2x3x8xf32>, tensor<5x2xf32>, tensor<5x2xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// -----

// CHECK-LABEL: func @heads
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic
func.func @heads(%x: tensor<2x4x3x8xf32>, %c: tensor<2x3x4xf32>, %s: tensor<2x3x4xf32>) -> tensor<2x4x3x8xf32> {
  %0 = onnx.RotaryEmbedding(%x, %c, %s) {interleaved = 1} : (tensor<2x4x3x8xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x4x3x8xf32>
  return %0 : tensor<2x4x3x8xf32>
}
