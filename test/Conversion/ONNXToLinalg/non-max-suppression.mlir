// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Classes are rows of parallel loops: candidates are sorted, and those kept that
// overlap none before. The result has as many rows as all of them kept.

// CHECK-LABEL: func.func @boxes
// CHECK:         linalg.generic
// CHECK:         scf.forall (%{{.*}}) in (12)
// CHECK:         sdx.top_k = "smallest"
// CHECK:         scf.forall (%{{.*}}) in (12)
// CHECK:           scf.while
// CHECK:             arith.divf
// CHECK:           attributes {sdx.any}
// CHECK:         sdx.scan = "sum"
// CHECK:         %[[NUMBER:.*]] = tensor.extract %{{.*}}[%c0] : tensor<1xi64>
// CHECK:         %[[TOTAL:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:         tensor.empty(%[[TOTAL]]) : tensor<?x3xi64>
// CHECK:         scf.forall (%{{.*}}) in (%[[TOTAL]])
func.func @boxes(%boxes: tensor<2x100x4xf32>, %scores: tensor<2x6x100xf32>, %most: tensor<1xi64>) -> tensor<?x3xi64> {
  %0 = onnx.NonMaxSuppression(%boxes, %scores, %most) : (tensor<2x100x4xf32>, tensor<2x6x100xf32>, tensor<1xi64>) -> tensor<?x3xi64>
  return %0 : tensor<?x3xi64>
}

// -----

// Slices are compared up to their first difference; running sums of where one
// differs from that before number the groups.

// CHECK-LABEL: func.func @unique
// CHECK:         scf.while
// CHECK:         sdx.scan = "sum"
// CHECK:         %[[NUMBER:.*]] = tensor.extract %{{.*}}[%c0] : tensor<1xi64>
// CHECK:         %[[COUNT:.*]] = arith.index_cast %[[NUMBER]]
// CHECK:         linalg.generic
func.func @unique(%x: tensor<8x3xf32>) -> tensor<?x3xf32> {
  %0 = onnx.Unique(%x) {axis = 0, sorted = 1} : (tensor<8x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}
