// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A known length is a stage for each factor: 12 = 4 * 3. What a stage reads are
// slices of one tensor, and what it makes lies one after the other. The
// transform of single precision is one of doubles.

// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0, d1, d2) -> (d0, 0, d1, d2)>
// CHECK-DAG:   #[[LAST:.*]] = affine_map<(d0, d1, d2) -> (d0, 3, d1, d2)>
// CHECK-LABEL: func.func @known
// CHECK:         %[[FOUR:.*]]:8 = linalg.generic {indexing_maps = [#[[FIRST]], {{.*}}, #[[LAST]], {{.*}} outs({{.*}} : tensor<1x3x2xf64>, {{.*}})
// CHECK:         tensor.insert_slice %[[FOUR]]#0 into %{{.*}}[0, 0, 0, 0] [1, 1, 3, 2] [1, 1, 1, 1] : tensor<1x3x2xf64> into tensor<4x1x3x2xf64>
// CHECK:         %[[THREE:.*]]:6 = linalg.generic {{.*}} outs({{.*}} : tensor<4x1x2xf64>, {{.*}})
// CHECK-NOT:     scf.for
func.func @known(%x: tensor<2x12x1xf32>) -> tensor<2x12x2xf32> {
  %0 = onnx.DFT(%x) : (tensor<2x12x1xf32>) -> tensor<2x12x2xf32>
  return %0 : tensor<2x12x2xf32>
}

// -----

// A long line is a matrix of 16 by 64, transposed between the transforms of
// its columns and rows; the inverse of single precision stays in it.

// CHECK-LABEL: func.func @matrix
// CHECK:         linalg.generic {{.*}} outs({{.*}} : tensor<1x4x192xf32>, {{.*}})
// CHECK:         linalg.transpose ins(%{{.*}} : tensor<16x3x64x1xf32>) {{.*}} permutation = [2, 1, 0, 3]
// CHECK:         linalg.generic {{.*}} outs({{.*}} : tensor<1x16x48xf32>, {{.*}})
// CHECK-NOT:     scf.for
func.func @matrix(%x: tensor<3x1024x2xf32>) -> tensor<3x1024x2xf32> {
  %0 = onnx.DFT(%x) {inverse = 1} : (tensor<3x1024x2xf32>) -> tensor<3x1024x2xf32>
  return %0 : tensor<3x1024x2xf32>
}

// -----

// The factors of any other are found by the run: butterflies of 4, 2, 3 and 5,
// and sums for the rest.

// CHECK-LABEL: func.func @open
// CHECK:         scf.while
// CHECK:           arith.remui %{{.*}}, %c4
// CHECK:           scf.if
// CHECK:             linalg.generic {{.*}} outs({{.*}} : tensor<?x?x?xf64>, {{.*}})
// CHECK:           } else {
// CHECK:             arith.remui %{{.*}}, %c2
// CHECK:             arith.remui %{{.*}}, %c3
// CHECK:             arith.remui %{{.*}}, %c5
// CHECK:             scf.while
// CHECK:             scf.for {{.*}} -> (f64, f64, index)
func.func @open(%x: tensor<2x?x1xf32>) -> tensor<2x?x2xf32> {
  %0 = onnx.DFT(%x) {onesided = 1} : (tensor<2x?x1xf32>) -> tensor<2x?x2xf32>
  return %0 : tensor<2x?x2xf32>
}
