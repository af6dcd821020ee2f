// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A table of positions (here the same for both axes), then one gather.
// CHECK-LABEL: func @nearest
// CHECK: -> tensor<6xi32>
// CHECK: tensor.extract %arg0
// CHECK: -> tensor<1x3x6x6xf32>
func.func @nearest(%x: tensor<1x3x4x4xf32>) -> tensor<1x3x6x6xf32> {
  %s = onnx.Constant() {value = dense<[1.0, 1.0, 1.5, 1.5]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Resize(%x, none, %s) {coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"} : (tensor<1x3x4x4xf32>, tensor<4xf32>) -> tensor<1x3x6x6xf32>
  return %0 : tensor<1x3x6x6xf32>
}

// -----

// A whole scale repeats elements, whatever their number.
// CHECK-LABEL: func @repeated
// CHECK-NOT:   tensor.extract
// CHECK:       linalg.generic {{.*}} ins(%arg0 : tensor<3x?x4xf32>) outs(%{{.*}} : tensor<3x?x2x4x2xf32>)
// CHECK-NEXT:  ^bb0(%[[X:.*]]: f32,
// CHECK-NEXT:    linalg.yield %[[X]]
// CHECK:       tensor.collapse_shape {{.*}} {{\[\[0\], \[1, 2\], \[3, 4\]\]}} : tensor<3x?x2x4x2xf32> into tensor<3x?x8xf32>
func.func @repeated(%x: tensor<3x?x4xf32>) -> tensor<3x?x8xf32> {
  %s = onnx.Constant() {value = dense<[1.0, 2.0, 2.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = onnx.Resize(%x, none, %s) : (tensor<3x?x4xf32>, tensor<3xf32>) -> tensor<3x?x8xf32>
  return %0 : tensor<3x?x8xf32>
}

// -----

// Rounded up, the second of two is the next element.
// CHECK-LABEL: func @rounded_up
// CHECK:       tensor.extract %arg0
func.func @rounded_up(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %s = onnx.Constant() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = onnx.Resize(%x, none, %s) {coordinate_transformation_mode = "asymmetric", nearest_mode = "ceil"} : (tensor<3x4xf32>, tensor<2xf32>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
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

// -----

// Rounded down, a half or a quarter of the elements are read at equal
// distances, and need no table.
// CHECK-DAG:   #[[READ:.*]] = affine_map<(d0, d1) -> (d0 * 2, d1 * 4 + 1)>
// CHECK-LABEL: func @skipped
// CHECK:       linalg.generic {indexing_maps = [#[[READ]], #{{.*}}], iterator_types = ["parallel", "parallel"]} ins(%arg0
// CHECK-NOT:   tensor.extract
// CHECK:       return
func.func @skipped(%x: tensor<?x16xf32>) -> tensor<?x4xf32> {
  %s = onnx.Constant() {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = onnx.Resize(%x, none, %s) {nearest_mode = "floor"} : (tensor<?x16xf32>, tensor<2xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
