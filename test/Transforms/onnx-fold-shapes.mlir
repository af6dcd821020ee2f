// RUN: onnx-opt %s -onnx-fold-shapes -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @static_size
// CHECK-NEXT:  %[[C:.*]] = onnx.Constant() {value = dense<[8, 4]> : tensor<2xi64>}
// CHECK-NEXT:  return %[[C]]
func.func @static_size(%x: tensor<2x?x4xf32>) -> tensor<2xi64> {
  %zero = onnx.Constant() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %last = onnx.Constant() {value = dense<[-1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %axes = onnx.Constant() {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %shape = onnx.Shape(%x) : (tensor<2x?x4xf32>) -> tensor<3xi64>
  %a = onnx.Gather(%shape, %zero) : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %b = onnx.Gather(%shape, %last) : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %p = onnx.Mul(%a, %b) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %r = onnx.Concat(%p, %b) {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %r : tensor<2xi64>
}

// -----

// A size is never -1, so Expand's target is the shape itself.

// CHECK-LABEL: func.func @where_on_sizes
// CHECK-NEXT:  %[[S:.*]] = onnx.Shape(%{{.*}})
// CHECK-NEXT:  return %[[S]]
func.func @where_on_sizes(%x: tensor<?x?xf32>) -> tensor<2xi64> {
  %two = onnx.Constant() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %minus = onnx.Constant() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %shape = onnx.Shape(%x) : (tensor<?x?xf32>) -> tensor<2xi64>
  %ones = onnx.ConstantOfShape(%two) {value = dense<1> : tensor<1xi64>} : (tensor<1xi64>) -> tensor<2xi64>
  %mark = onnx.Mul(%ones, %minus) : (tensor<2xi64>, tensor<i64>) -> tensor<2xi64>
  %is = onnx.Equal(%shape, %mark) : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
  %r = onnx.Where(%is, %ones, %shape) : (tensor<2xi1>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  return %r : tensor<2xi64>
}

// -----

// CHECK-LABEL: func.func @slices
// CHECK:       dense<[5, 3]> : tensor<2xi64>
// CHECK:       dense<[2, 3]> : tensor<2xi64>
func.func @slices(%x: tensor<2x3x4x5xf32>) -> (tensor<2xi64>, tensor<2xi64>) {
  %shape = onnx.Shape(%x) : (tensor<2x3x4x5xf32>) -> tensor<4xi64>
  %axes = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %start = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %step = onnx.Constant() {value = dense<-2> : tensor<1xi64>} : () -> tensor<1xi64>
  %two = onnx.Constant() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %a = onnx.Slice(%shape, %start, %end, %axes, %step) : (tensor<4xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %b = onnx.Slice(%shape, %end, %two) : (tensor<4xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %a, %b : tensor<2xi64>, tensor<2xi64>
}

// -----

// CHECK-LABEL: func.func @one_unknown
// CHECK-NEXT:  %[[T:.*]] = onnx.Constant() {value = dense<[-1, 12, 64]> : tensor<3xi64>}
// CHECK-NEXT:  onnx.Reshape(%{{.*}}, %[[T]])
func.func @one_unknown(%x: tensor<?x768xf32>) -> tensor<?x12x64xf32> {
  %first = onnx.Shape(%x) {end = 1} : (tensor<?x768xf32>) -> tensor<1xi64>
  %heads = onnx.Constant() {value = dense<[12, 64]> : tensor<2xi64>} : () -> tensor<2xi64>
  %target = onnx.Concat(%first, %heads) {axis = 0} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %y = onnx.Reshape(%x, %target) : (tensor<?x768xf32>, tensor<3xi64>) -> tensor<?x12x64xf32>
  return %y : tensor<?x12x64xf32>
}

// -----

// What isn't defined is left alone.

// CHECK-LABEL: func.func @left_alone
// CHECK:       onnx.Div
// CHECK:       onnx.Gather
// CHECK:       onnx.Add
func.func @left_alone(%n: tensor<i64>) -> (tensor<i64>, tensor<i64>, tensor<i64>) {
  %zero = onnx.Constant() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %nine = onnx.Constant() {value = dense<9> : tensor<i64>} : () -> tensor<i64>
  %vector = onnx.Constant() {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %max = onnx.Constant() {value = dense<9223372036854775807> : tensor<i64>} : () -> tensor<i64>
  %a = onnx.Div(%nine, %zero) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %b = onnx.Gather(%vector, %nine) : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %c = onnx.Add(%max, %nine) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %a, %b, %c : tensor<i64>, tensor<i64>, tensor<i64>
}
