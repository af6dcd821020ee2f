// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A table for each dimension, which all channels share, then one sum over the taps.
// CHECK-LABEL: func @linear
// CHECK: %[[Y:.*]]:2 = linalg.generic
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : tensor<2x6x7x2xi64>, tensor<2x6x7x2xf32>)
// CHECK: %[[X:.*]]:2 = linalg.generic
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]
// CHECK-SAME: ins(%[[Y]]#0, %[[Y]]#1, %[[X]]#0, %[[X]]#1
func.func @linear(%x: tensor<2x3x4x5xf32>, %g: tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32> {
  %0 = onnx.GridSample(%x, %g) : (tensor<2x3x4x5xf32>, tensor<2x6x7x2xf32>) -> tensor<2x3x6x7xf32>
  return %0 : tensor<2x3x6x7xf32>
}

// -----

// The nearest point is copied: no weights, no sum, any type.
// CHECK-LABEL: func @nearest
// CHECK: linalg.generic
// CHECK: math.roundeven
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel"]
// CHECK: tensor.extract %arg0
// CHECK-NEXT: linalg.yield
func.func @nearest(%x: tensor<2x3x5xi16>, %g: tensor<2x6x1xf32>) -> tensor<2x3x6xi16> {
  %0 = onnx.GridSample(%x, %g) {mode = "nearest", padding_mode = "border"} : (tensor<2x3x5xi16>, tensor<2x6x1xf32>) -> tensor<2x3x6xi16>
  return %0 : tensor<2x3x6xi16>
}

// -----

// CHECK-LABEL: func @affine
// CHECK: sdx.check {{.*}}theta and size differ in the batch
// CHECK: linalg.generic
// CHECK-SAME: tensor<?x?x?x2xf32>
func.func @affine(%t: tensor<?x2x3xf32>, %s: tensor<4xi64>) -> tensor<?x?x?x2xf32> {
  %0 = onnx.AffineGrid(%t, %s) : (tensor<?x2x3xf32>, tensor<4xi64>) -> tensor<?x?x?x2xf32>
  return %0 : tensor<?x?x?x2xf32>
}
