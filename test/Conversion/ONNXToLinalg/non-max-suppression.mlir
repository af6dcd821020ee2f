// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Classes are rows of one parallel loop, and the result has as many rows as
// all of them kept.

// CHECK-LABEL: func.func @boxes
// CHECK:         linalg.generic
// CHECK:         %[[KEPT:.*]]:2 = scf.forall (%{{.*}}) in (12)
// CHECK:           scf.while
// CHECK:             arith.divf
// CHECK:           scf.forall.in_parallel
// CHECK:         %[[SUM:.*]] = scf.forall (%{{.*}}) in (1)
// CHECK:         %[[NUMBER:.*]] = tensor.extract %{{.*}}[%c0] : tensor<1xi64>
// CHECK:         %[[TOTAL:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:         tensor.empty(%[[TOTAL]]) : tensor<?x3xi64>
func.func @boxes(%boxes: tensor<2x100x4xf32>, %scores: tensor<2x6x100xf32>, %most: tensor<1xi64>) -> tensor<?x3xi64> {
  %0 = onnx.NonMaxSuppression(%boxes, %scores, %most) : (tensor<2x100x4xf32>, tensor<2x6x100xf32>, tensor<1xi64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// Slices are compared up to their first difference; equal ones make one.

// CHECK-LABEL: func.func @unique
// CHECK:         scf.while
// CHECK:         %[[GROUPS:.*]]:{{[0-9]}} = scf.forall (%{{.*}}) in (1)
// CHECK:         %[[FIRST:.*]] = tensor.collapse_shape %[[GROUPS]]#0
// CHECK:         %[[NUMBER:.*]] = tensor.extract %{{.*}}[%c0] : tensor<1xi64>
// CHECK:         %[[COUNT:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:         tensor.extract_slice %[[FIRST]][0] [%[[COUNT]]] [1]
// CHECK:         linalg.generic
func.func @unique(%x: tensor<8x3xf32>) -> tensor<?x3xf32> {
  %0 = onnx.Unique(%x) {axis = 0, sorted = 1} : (tensor<8x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
