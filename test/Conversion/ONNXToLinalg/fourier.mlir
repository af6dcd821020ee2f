// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A known length is one small product for each factor: 12 = 4 * 3.

// CHECK-LABEL: func.func @known
// CHECK:         linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<2x3x4x1x1xf64>, tensor<2x3x4x1x1xf64>)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<2x1x3x4x1xf64>, tensor<2x1x3x4x1xf64>)
// CHECK-NOT:     scf.for
func.func @known(%x: tensor<2x12x1xf32>) -> tensor<2x12x2xf32> {
  %0 = onnx.DFT(%x) : (tensor<2x12x1xf32>) -> tensor<2x12x2xf32>
  return %0 : tensor<2x12x2xf32>
}

// -----

// Of any other each bin is the whole sum, of which half are needed here.

// CHECK-LABEL: func.func @open
// CHECK:         %[[BINS:.*]] = arith.addi %{{.*}}, %c1
// CHECK:         tensor.empty(%[[BINS]]) : tensor<2x?x1xf64>
// CHECK:         scf.for {{.*}} -> (f64, f64, index)
func.func @open(%x: tensor<2x?x1xf32>) -> tensor<2x?x2xf32> {
  %0 = onnx.DFT(%x) {onesided = 1} : (tensor<2x?x1xf32>) -> tensor<2x?x2xf32>
  return %0 : tensor<2x?x2xf32>
}
