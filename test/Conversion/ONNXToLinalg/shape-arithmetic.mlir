// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// The arithmetic of a Reshape's target stays scalar: no kernel computes it.
// CHECK-LABEL: func.func @merge_heads
// CHECK-SAME:    %[[X:.*]]: tensor<?x?x12x64xf32>
func.func @merge_heads(%x: tensor<?x?x12x64xf32>) -> tensor<?x?x768xf32> {
  // CHECK-NOT: linalg.generic
  // CHECK-NOT: tensor.extract
  // CHECK: tensor.collapse_shape %[[X]] {{\[}}[0], [1], [2, 3]]
  // CHECK-NOT: linalg.generic
  %shape = onnx.Shape(%x) : (tensor<?x?x12x64xf32>) -> tensor<4xi64>
  %zero = onnx.Constant() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %one = onnx.Constant() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %axes = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = onnx.Gather(%shape, %zero) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %s = onnx.Gather(%shape, %one) : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %b1 = onnx.Unsqueeze(%b, %axes) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %s1 = onnx.Unsqueeze(%s, %axes) : (tensor<i64>, tensor<1xi64>) -> tensor<1xi64>
  %w = onnx.Constant() {value = dense<768> : tensor<1xi64>} : () -> tensor<1xi64>
  %to = onnx.Concat(%b1, %s1, %w) {axis = 0} : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xi64>
  %y = onnx.Reshape(%x, %to) : (tensor<?x?x12x64xf32>, tensor<3xi64>) -> tensor<?x?x768xf32>
  return %y : tensor<?x?x768xf32>
}

// -----

// CHECK-LABEL: func.func @count
// CHECK-SAME:    %[[X:.*]]: tensor<?x4xf32>
func.func @count(%x: tensor<?x4xf32>) -> tensor<i64> {
  // CHECK: %[[N:.*]] = tensor.dim %[[X]], %c0
  // CHECK: %[[ALL:.*]] = arith.muli %[[N]], %c4
  // CHECK: %[[I:.*]] = arith.index_cast %[[ALL]] : index to i64
  // CHECK: tensor.from_elements %[[I]] : tensor<i64>
  %y = onnx.Size(%x) : (tensor<?x4xf32>) -> tensor<i64>
  return %y : tensor<i64>
}

// -----

// CHECK-LABEL: func.func @slice_of_shape
func.func @slice_of_shape(%x: tensor<5x6x7xf32>) -> tensor<1xi64> {
  // CHECK: arith.constant dense<6> : tensor<1xi64>
  // CHECK-NEXT: return
  %shape = onnx.Shape(%x) : (tensor<5x6x7xf32>) -> tensor<3xi64>
  %from = onnx.Constant() {value = dense<-2> : tensor<1xi64>} : () -> tensor<1xi64>
  %to = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %y = onnx.Slice(%shape, %from, %to) : (tensor<3xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %y : tensor<1xi64>
}

// -----

// Arithmetic on floats too, unless it calls a library.
// CHECK-LABEL: func.func @float_scalars
func.func @float_scalars(%x: tensor<?x?xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  // CHECK-NOT: linalg.generic
  // CHECK: %[[A:.*]] = arith.addf
  // CHECK: %[[M:.*]] = arith.divf %[[A]]
  // CHECK: %[[ABS:.*]] = math.absf %[[M]]
  // CHECK: %[[ROUND:.*]] = math.roundeven %[[ABS]]
  // CHECK: tensor.from_elements %[[ROUND]]
  // CHECK: linalg.generic
  // CHECK: math.exp
  %shape = onnx.Shape(%x) {end = 1} : (tensor<?x?xf32>) -> tensor<1xi64>
  %float = onnx.Cast(%shape) {to = 1} : (tensor<1xi64>) -> tensor<1xf32>
  %half = onnx.Constant() {value = dense<0.5> : tensor<1xf32>} : () -> tensor<1xf32>
  %mean = onnx.Mean(%float, %half) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %abs = onnx.Abs(%mean) : (tensor<1xf32>) -> tensor<1xf32>
  %y = onnx.Round(%abs) : (tensor<1xf32>) -> tensor<1xf32>
  %z = onnx.Exp(%y) : (tensor<1xf32>) -> tensor<1xf32>
  return %y, %z : tensor<1xf32>, tensor<1xf32>
}

// -----

// Parts of a shape that have the same number of elements are merged or split by
// themselves: each repeat is in one dimension with the rows that it repeats.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK-SAME:    %[[X:.*]]: tensor<?x?xf32>
func.func @rows_and_columns(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x?x3x?xf32>)
  // CHECK-NOT: does not hold as many elements
  // CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2, 3]] : tensor<4x?x3x?xf32> into tensor<?x?xf32>
  // CHECK-NEXT: return
  %repeats = onnx.Constant() {value = dense<[4, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %y = onnx.Tile(%x, %repeats) : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
