// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A circular update is two boxes, the second one at the beginning.

// CHECK-LABEL: func.func @circular
// CHECK-SAME:      %[[CACHE:.*]]: tensor<2x4x8x16xf32> {{.*}}, %[[UPDATE:.*]]: tensor<2x4x3x16xf32> {{.*}}, %
// CHECK:         scf.for {{.*}} iter_args(%[[STATE:.*]] = %[[CACHE]])
// CHECK:           %[[START:.*]] = arith.select
// CHECK:           %[[FIRST:.*]] = tensor.extract_slice %[[UPDATE]]
// CHECK:           %[[ONE:.*]] = tensor.insert_slice %[[FIRST]] into %[[STATE]]{{.*}}, 0, %[[START]], 0]
// CHECK:           %[[SECOND:.*]] = tensor.extract_slice %[[UPDATE]]
// CHECK:           tensor.insert_slice %[[SECOND]] into %[[ONE]][%{{.*}}, 0, 0, 0]
func.func @circular(%cache: tensor<2x4x8x16xf32>, %update: tensor<2x4x3x16xf32>, %at: tensor<2xi64>) -> tensor<2x4x8x16xf32> {
  %0 = onnx.TensorScatter(%cache, %update, %at) {mode = "circular", axis = -2 : si64} : (tensor<2x4x8x16xf32>, tensor<2x4x3x16xf32>, tensor<2xi64>) -> tensor<2x4x8x16xf32>
  return %0 : tensor<2x4x8x16xf32>
}

// -----

// CHECK-LABEL: func.func @bits
// CHECK:         linalg.generic
// CHECK:           arith.bitcast {{.*}} : f32 to i32
func.func @bits(%x: tensor<4xf32>) -> tensor<4xi32> {
  %0 = onnx.BitCast(%x) {to = 6 : si64} : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
