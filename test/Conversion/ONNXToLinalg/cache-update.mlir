// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A circular update is two boxes, the second one at the beginning. Heads of a
// sample are tasks.

// CHECK-LABEL: func.func @circular
// CHECK-SAME:      %[[CACHE:.*]]: tensor<2x4x8x16xf32> {{.*}}, %[[UPDATE:.*]]: tensor<2x4x3x16xf32> {{.*}}, %
// CHECK:         scf.forall (%[[SAMPLE:.*]], %[[HEAD:.*]]) in (2, 4) shared_outs(%{{.*}} = %[[CACHE]])
// CHECK:           %[[STATE:.*]] = tensor.extract_slice {{.*}} to tensor<8x16xf32>
// CHECK:           %[[START:.*]] = arith.select
// CHECK:           %[[ONE:.*]] = tensor.insert_slice %{{.*}} into %[[STATE]][%[[START]], 0]
// CHECK:           %[[TWO:.*]] = tensor.insert_slice %{{.*}} into %[[ONE]][0, 0]
// CHECK:           tensor.parallel_insert_slice %[[TWO]]
// CHECK:         mapping = [#sdx.task, #sdx.task]
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
