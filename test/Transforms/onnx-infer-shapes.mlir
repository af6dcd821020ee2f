// RUN: onnx-opt %s -onnx-infer-shapes -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @reshape_by_shape_arithmetic
// CHECK-SAME:  -> tensor<?x?x12x64xf32>
func.func @reshape_by_shape_arithmetic(%x: tensor<?x?x768xf32>) -> tensor<*xf32> {
  %zero = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %one = onnx.Constant() {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %heads = onnx.Constant() {value = dense<[12, 64]> : tensor<2xi64>} : () -> tensor<2xi64>
  %shape = onnx.Shape(%x) : (tensor<?x?x768xf32>) -> tensor<3xi64>
  %batch = onnx.Gather(%shape, %zero) : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %length = onnx.Gather(%shape, %one) : (tensor<3xi64>, tensor<1xi64>) -> tensor<1xi64>
  %target = onnx.Concat(%batch, %length, %heads) {axis = 0} : (tensor<1xi64>, tensor<1xi64>, tensor<2xi64>) -> tensor<4xi64>
  // CHECK: onnx.Reshape(%{{.*}}, %{{.*}}) : (tensor<?x?x768xf32>, tensor<4xi64>) -> tensor<?x?x12x64xf32>
  %y = onnx.Reshape(%x, %target) : (tensor<?x?x768xf32>, tensor<4xi64>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// Sizes that cancel: through attention and back, whatever batch and length are.

// CHECK-LABEL: func.func @symbols_cancel
// CHECK-SAME:  -> tensor<?x?x768xf32>
func.func @symbols_cancel(%x: tensor<?x?x768xf32>, %mask: tensor<?x?xf32>) -> tensor<*xf32> {
  %head = onnx.Constant() {value = dense<[-1, 64]> : tensor<2xi64>} : () -> tensor<2xi64>
  %all = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %sizes = onnx.Shape(%x) {end = 2} : (tensor<?x?x768xf32>) -> tensor<2xi64>
  %split = onnx.Concat(%sizes, %head) {axis = 0} : (tensor<2xi64>, tensor<2xi64>) -> tensor<4xi64>
  %joined = onnx.Concat(%sizes, %all) {axis = 0} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  // CHECK: onnx.Reshape({{.*}}) -> tensor<?x?x12x64xf32>
  %0 = onnx.Reshape(%x, %split) : (tensor<?x?x768xf32>, tensor<4xi64>) -> tensor<*xf32>
  %1 = onnx.Transpose(%0) {perm = array<i64: 0, 2, 1, 3>} : (tensor<*xf32>) -> tensor<*xf32>
  %2 = onnx.Transpose(%0) {perm = array<i64: 0, 2, 3, 1>} : (tensor<*xf32>) -> tensor<*xf32>
  %3 = onnx.MatMul(%1, %2) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %4 = onnx.Softmax(%3) : (tensor<*xf32>) -> tensor<*xf32>
  %5 = onnx.MatMul(%4, %1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %6 = onnx.Transpose(%5) {perm = array<i64: 0, 2, 1, 3>} : (tensor<*xf32>) -> tensor<*xf32>
  %7 = onnx.Reshape(%6, %joined) : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
  return %7 : tensor<*xf32>
}

// -----

// Sizes that are broadcast against another one may be that one.

// CHECK-LABEL: func.func @symbols_do_not_cancel
// CHECK-SAME:  -> tensor<?x?xf32>
func.func @symbols_do_not_cancel(%x: tensor<?x768xf32>, %y: tensor<?x768xf32>) -> tensor<*xf32> {
  %all = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %size = onnx.Shape(%x) {end = 1} : (tensor<?x768xf32>) -> tensor<1xi64>
  %target = onnx.Concat(%size, %all) {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %0 = onnx.Add(%x, %y) : (tensor<?x768xf32>, tensor<?x768xf32>) -> tensor<*xf32>
  %1 = onnx.Reshape(%0, %target) : (tensor<*xf32>, tensor<2xi64>) -> tensor<*xf32>
  return %1 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @slice
// CHECK-SAME:  -> tensor<1x?x5xf32>
func.func @slice(%x: tensor<1x512x5xf32>, %n: tensor<1xi64>) -> tensor<*xf32> {
  %zero = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %axis = onnx.Constant() {value = dense<-2> : tensor<1xi64>} : () -> tensor<1xi64>
  %y = onnx.Slice(%x, %zero, %n, %axis) : (tensor<1x512x5xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// A single size that is not known is what is left of the elements.

// CHECK-LABEL: func.func @reshape_remaining
// CHECK-SAME:  -> tensor<2x3x4xf32>
func.func @reshape_remaining(%x: tensor<2x12xf32>) -> tensor<?x?x?xf32> {
  %target = onnx.Constant() {value = dense<[0, -1, 4]> : tensor<3xi64>} : () -> tensor<3xi64>
  %y = onnx.Reshape(%x, %target) : (tensor<2x12xf32>, tensor<3xi64>) -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: func.func @expand
// CHECK-SAME:  -> tensor<5x2x?xf32>
func.func @expand(%x: tensor<2x1xf32>, %n: tensor<1xi64>) -> tensor<*xf32> {
  %front = onnx.Constant() {value = dense<[5, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %shape = onnx.Concat(%front, %n) {axis = 0} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %y = onnx.Expand(%x, %shape) : (tensor<2x1xf32>, tensor<3xi64>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// The branches of If: what both agree on. Loop: a scan output grows a dimension.

// CHECK-LABEL: func.func @control_flow
// CHECK-SAME:  -> (tensor<?x4xf32>, tensor<2xf32>, tensor<?x2xf32>)
func.func @control_flow(%c: tensor<i1>, %n: tensor<i64>, %a: tensor<2x4xf32>, %b: tensor<3x4xf32>, %v: tensor<2xf32>)
    -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<*xf32> then_branch {
    onnx.Yield %a : tensor<2x4xf32>
  } else_branch {
    onnx.Yield %b : tensor<3x4xf32>
  }
  %1:2 = onnx.Loop(%n, %c, %v) : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<2xf32>):
    onnx.Yield %go, %state, %state : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }
  return %0, %1#0, %1#1 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// Loop-carried values keep the shape that they begin with, or what is left of it
// when the body changes it.

// CHECK-LABEL: func.func @loop_carried
// CHECK:       ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %{{.*}}: tensor<2x4xf32>, %{{.*}}: tensor<?x4xf32>):
// CHECK:         onnx.Concat(%{{.*}}, %{{.*}}) {axis = 0} : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x4xf32>
// CHECK:       return %{{.*}} : tensor<2x4xf32>, tensor<?x4xf32>
func.func @loop_carried(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0:2 = onnx.Loop(%n, %c, %x, %x) : (tensor<i64>, tensor<i1>, tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %a: tensor<*xf32>, %b: tensor<*xf32>):
    %1 = onnx.Relu(%a) : (tensor<*xf32>) -> tensor<*xf32>
    %2 = onnx.Concat(%b, %1) {axis = 0} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.Yield %go, %1, %2 : tensor<i1>, tensor<*xf32>, tensor<*xf32>
  }
  return %0#0, %0#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @scan
// CHECK-SAME:  -> (tensor<4xf32>, tensor<4x7xf32>)
// CHECK:       ^bb0(%{{.*}}: tensor<4xf32>, %{{.*}}: tensor<4xf32>):
func.func @scan(%state: tensor<4xf32>, %x: tensor<4x7xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %0:2 = onnx.Scan(%state, %x) {num_scan_inputs = 1, scan_input_axes = array<i64: -1>, scan_output_axes = array<i64: 1>}
      : (tensor<4xf32>, tensor<4x7xf32>) -> (tensor<*xf32>, tensor<*xf32>) body {
  ^bb0(%s: tensor<*xf32>, %slice: tensor<*xf32>):
    %1 = onnx.Add(%s, %slice) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.Yield %1, %1 : tensor<*xf32>, tensor<*xf32>
  }
  return %0#0, %0#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

func.func @broken_rule(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{'onnx.MatMul' op breaks a rule of its schema}}
  %0 = onnx.MatMul(%x, %y) : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @declared_otherwise(%x: tensor<4xf32>) -> tensor<4xi64> {
  // expected-error @+1 {{result 0 is declared as 'tensor<4xi64>', but is 'tensor<4xf64>'.}}
  %0 = onnx.Cast(%x) {to = 11} : (tensor<4xf32>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

// By the schema's own inference.

// CHECK-LABEL: func.func @schema
// CHECK-SAME:  -> tensor<1x8x6x6xf32>
func.func @schema(%x: tensor<1x3x8x8xf32>, %w: tensor<8x3x3x3xf32>) -> tensor<*xf32> {
  %y = onnx.Conv(%x, %w) : (tensor<1x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @contradiction
// CHECK-SAME:  -> tensor<4xf32>
func.func @contradiction(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-warning @+1 {{result 0 is declared as 'tensor<5xf32>', but follows from the inputs as 'tensor<4xf32>'; the latter is taken.}}
  %y = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}
