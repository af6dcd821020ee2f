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
func.func @one_unknown(%x: tensor<1x?x768xf32>) -> tensor<?x12x64xf32> {
  %begin = onnx.Shape(%x) {start = 1, end = 2} : (tensor<1x?x768xf32>) -> tensor<1xi64>
  %heads = onnx.Constant() {value = dense<[12, 64]> : tensor<2xi64>} : () -> tensor<2xi64>
  %target = onnx.Concat(%begin, %heads) {axis = 0} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
  %y = onnx.Reshape(%x, %target) : (tensor<1x?x768xf32>, tensor<3xi64>) -> tensor<?x12x64xf32>
  return %y : tensor<?x12x64xf32>
}

// -----

// Sizes that the data has in the same place are copied: those of an op that
// keeps them, or of another argument with the same names. What is static in the
// result's type is static in the target.

// CHECK-LABEL: func.func @copied
// CHECK-NEXT:  %[[R:.*]] = onnx.Relu
// CHECK-NEXT:  %[[T:.*]] = onnx.Constant() {value = dense<[0, 0, 12, 64]> : tensor<4xi64>}
// CHECK-NEXT:  onnx.Reshape(%[[R]], %[[T]])
func.func @copied(%x: tensor<?x?x768xf32> {onnx.dim_params = ["batch", "seq", ""]},
                  %ids: tensor<?x?xi64> {onnx.dim_params = ["batch", "seq"]}) -> tensor<?x?x12x64xf32> {
  %relu = onnx.Relu(%x) : (tensor<?x?x768xf32>) -> tensor<?x?x768xf32>
  %sizes = onnx.Shape(%ids) : (tensor<?x?xi64>) -> tensor<2xi64>
  %heads = onnx.Constant() {value = dense<[-1, 64]> : tensor<2xi64>} : () -> tensor<2xi64>
  %target = onnx.Concat(%sizes, %heads) {axis = 0} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %y = onnx.Reshape(%relu, %target) {allowzero = 1} : (tensor<?x?x768xf32>, tensor<4xi64>) -> tensor<?x?x12x64xf32>
  return %y : tensor<?x?x12x64xf32>
}

// -----

// What the ops between hand on: the shape, its first size, the shape that operands
// have together.

// CHECK-LABEL: func.func @handed_on
// CHECK:       %[[SHAPE:.*]] = onnx.Constant() {value = dense<[0, 0, -1]> : tensor<3xi64>}
// CHECK-NEXT:  onnx.Reshape(%{{.*}}, %[[SHAPE]])
// CHECK:       %[[FIRST:.*]] = onnx.Constant() {value = dense<[0, -1]> : tensor<2xi64>}
// CHECK-NEXT:  onnx.Reshape(%{{.*}}, %[[FIRST]])
// CHECK:       onnx.StringConcat(%{{.*}}, %{{.*}}) {onnx.same_dims = array<i64: 0, 1, 2>}
func.func @handed_on(%x: tensor<?x?x?xf32> {onnx.dim_params = ["batch", "length", "width"]},
                     %ids: tensor<?x?xi64> {onnx.dim_params = ["batch", "length"]},
                     %grid: tensor<?x?x?x2xf32>, %s: tensor<?x?x?x!onnx.string> {onnx.dim_params = ["batch", "length", "width"]})
    -> (tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?x?x!onnx.string>) {
  %rest = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %sizes = onnx.Shape(%ids) : (tensor<?x?xi64>) -> tensor<2xi64>
  %batch = onnx.Shape(%ids) {end = 1} : (tensor<?x?xi64>) -> tensor<1xi64>
  %all = onnx.Concat(%sizes, %rest) {axis = 0} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %first = onnx.Concat(%batch, %rest) {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %0 = onnx.Celu(%x) : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %1 = onnx.Acosh(%0) : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %2 = onnx.Hardmax(%1) : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %3 = onnx.Reshape(%2, %all) {allowzero = 1} : (tensor<?x?x?xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  %one = onnx.Constant() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %image = onnx.Unsqueeze(%2, %one) : (tensor<?x?x?xf32>, tensor<1xi64>) -> tensor<?x1x?x?xf32>
  %4 = onnx.GridSample(%image, %grid) : (tensor<?x1x?x?xf32>, tensor<?x?x?x2xf32>) -> tensor<?x1x?x?xf32>
  %5 = onnx.LpPool(%4) {kernel_shape = array<i64: 2, 2>} : (tensor<?x1x?x?xf32>) -> tensor<?x1x?x?xf32>
  %6 = onnx.Reshape(%5, %first) {allowzero = 1} : (tensor<?x1x?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %7 = onnx.StringConcat(%s, %s) : (tensor<?x?x?x!onnx.string>, tensor<?x?x?x!onnx.string>) -> tensor<?x?x?x!onnx.string>
  return %3, %6, %7 : tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?x?x!onnx.string>
}

// -----

// A slope of the same shape needs no code for broadcasting either.

// CHECK-LABEL: func.func @slope
// CHECK:       onnx.PRelu({{.*}}) {onnx.same_dims = array<i64: 0>}
func.func @slope(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = onnx.Sinh(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = onnx.PRelu(%x, %0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// An Identity is its operand; so is what is got from no optional.

// CHECK-LABEL: func.func @unchanged_values
// CHECK-SAME:  (%[[X:[^:]*]]: tensor<?x4xf32>
// CHECK-NEXT:  return %[[X]] :
func.func @unchanged_values(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = onnx.Identity(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = onnx.OptionalGetElement(%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}

// -----

// Sizes in another place, or by another name, are not the same.

// CHECK-LABEL: func.func @not_copied
// CHECK:       onnx.Concat
// CHECK:       onnx.Reshape(%{{.*}}, %{{.*}}) {allowzero = 1}
func.func @not_copied(%x: tensor<?x?x768xf32> {onnx.dim_params = ["batch", "seq", ""]},
                      %ids: tensor<?x?xi64> {onnx.dim_params = ["seq", "batch"]}) -> tensor<?x?x?xf32> {
  %sizes = onnx.Shape(%ids) : (tensor<?x?xi64>) -> tensor<2xi64>
  %rest = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %target = onnx.Concat(%sizes, %rest) {axis = 0} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %y = onnx.Reshape(%x, %target) {allowzero = 1} : (tensor<?x?x768xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}

// -----

// Ops that would change a shape and don't.

// CHECK-LABEL: func.func @nothing_changes
// CHECK-SAME:  (%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<2x?xf32>)
// CHECK-NOT:   onnx.Expand
// CHECK:       %[[E:.*]] = onnx.Expand(%[[Y]], %{{.*}})
// CHECK:       return %[[X]], %[[X]], %[[E]]
func.func @nothing_changes(%x: tensor<?x4xf32>, %y: tensor<2x?xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<2x?xf32>) {
  %shape = onnx.Shape(%x) : (tensor<?x4xf32>) -> tensor<2xi64>
  %one = onnx.Constant() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %first = onnx.Shape(%x) {end = 1} : (tensor<?x4xf32>) -> tensor<1xi64>
  %other = onnx.Concat(%one, %first) {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %0 = onnx.Expand(%x, %shape) : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %1 = onnx.Reshape(%x, %shape) : (tensor<?x4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  %2 = onnx.Sum(%1) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = onnx.Expand(%y, %other) : (tensor<2x?xf32>, tensor<2xi64>) -> tensor<2x?xf32>
  return %0, %2, %3 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<2x?xf32>
}

// -----

// Dimensions in which broadcasting can't happen. The third is of an embedding
// table cut to the length: min(length, 512) is the length or an error.

// CHECK-LABEL: func.func @same_dims
// CHECK:       onnx.Add({{.*}}) {onnx.same_dims = array<i64: 0>} : (tensor<?x?x8xf32>, tensor<?x1x8xf32>)
// CHECK:       onnx.Add(%{{[^,]*}}, %{{[^,]*}}) : (tensor<?x?x8xf32>, tensor<1x?x8xf32>)
// CHECK:       onnx.Add({{.*}}) {onnx.same_dims = array<i64: 0, 1>} : (tensor<?x?x8xf32>, tensor<?x?x8xf32>)
// CHECK:       onnx.MatMul({{.*}}) {onnx.same_dims = array<i64: 0>} : (tensor<?x?x8xf32>, tensor<?x8x?xf32>)
// CHECK:       onnx.Add(%{{[^,]*}}, %{{[^,]*}}) : (tensor<?x?x?xf32>, tensor<?x1x1xf32>)
func.func @same_dims(%x: tensor<?x?x8xf32> {onnx.dim_params = ["batch", "length", ""]},
                     %bias: tensor<?x1x8xf32> {onnx.dim_params = ["batch", "", ""]},
                     %ids: tensor<?x?xi64> {onnx.dim_params = ["batch", "length"]},
                     %table: tensor<1x512x8xf32>, %other: tensor<?x1x1xf32>) -> tensor<?x?x?xf32> {
  %zero = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = onnx.Constant() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %length = onnx.Shape(%ids) {start = 1} : (tensor<?x?xi64>) -> tensor<1xi64>
  %cut = onnx.Slice(%table, %zero, %length, %one) : (tensor<1x512x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?x8xf32>
  %0 = onnx.Add(%x, %bias) : (tensor<?x?x8xf32>, tensor<?x1x8xf32>) -> tensor<?x?x8xf32>
  %1 = onnx.Add(%0, %cut) : (tensor<?x?x8xf32>, tensor<1x?x8xf32>) -> tensor<?x?x8xf32>
  %2 = onnx.Add(%1, %x) : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %3 = onnx.Transpose(%2) {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %4 = onnx.MatMul(%1, %3) : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
  %5 = onnx.Add(%4, %other) : (tensor<?x?x?xf32>, tensor<?x1x1xf32>) -> tensor<?x?x?xf32>
  return %5 : tensor<?x?x?xf32>
}

// -----

// The parts of a list.

// CHECK-LABEL: func.func @parts
// CHECK:       %[[LAST:.*]] = onnx.Constant() {value = dense<6>
// CHECK:       return %[[LAST]]
func.func @parts() -> tensor<1xi64> {
  %list = onnx.Constant() {value = dense<[4, 5, 6]> : tensor<3xi64>} : () -> tensor<3xi64>
  %parts:2 = onnx.Split(%list) {num_outputs = 2} : (tensor<3xi64>) -> (tensor<2xi64>, tensor<1xi64>)
  return %parts#1 : tensor<1xi64>
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

// -----

// Tensors of any rank, and of floats where there are few.

// CHECK-LABEL: func.func @of_any_rank
// CHECK:       dense<{{\[\[}}3, 1], [2, 0]]> : tensor<2x2xi64>
// CHECK:       dense<2.500000e-01> : tensor<f32>
func.func @of_any_rank() -> (tensor<2x2xi64>, tensor<f32>) {
  %square = onnx.Constant() {value = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : () -> tensor<2x2xi64>
  %last = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %end = onnx.Constant() {value = dense<-9223372036854775807> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = onnx.Transpose(%square) : (tensor<2x2xi64>) -> tensor<2x2xi64>
  %1 = onnx.Slice(%0, %last, %end, %last, %last) : (tensor<2x2xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x2xi64>
  %zero = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %2 = onnx.Slice(%1, %last, %end, %zero, %last) : (tensor<2x2xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x2xi64>
  %four = onnx.Constant() {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %3 = onnx.Reciprocal(%four) : (tensor<f32>) -> tensor<f32>
  return %2, %3 : tensor<2x2xi64>, tensor<f32>
}
