// RUN: onnx-opt %s --verify-roundtrip | FileCheck %s
// RUN: onnx-opt %s --mlir-print-op-generic | onnx-opt | FileCheck %s

// Inputs and outputs that are left out.
// CHECK-LABEL: func.func @absent
func.func @absent(%x: tensor<4xf32>, %max: tensor<f32>, %s: tensor<5x1x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x16x4xf32>) {
  // CHECK: onnx.Clip(%{{.*}}, none, %{{.*}}) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %0 = onnx.Clip(%x, none, %max) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: onnx.Clip(%{{[^,]*}}) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Clip(%x, none, none) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: onnx.LSTM(%{{.*}}, %{{.*}}, %{{.*}}) {hidden_size = 4} : (tensor<5x1x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (none, tensor<1x1x4xf32>)
  %2 = onnx.LSTM(%s, %w, %r) {hidden_size = 4} : (tensor<5x1x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>) -> (none, tensor<1x1x4xf32>)
  return
}

// Defaults are not printed, integers go without their type; other dialects'
// attributes are kept.
// CHECK-LABEL: func.func @attributes
func.func @attributes(%x: tensor<2x4xf32>) {
  // CHECK: onnx.Softmax(%{{.*}}) : (
  %0 = onnx.Softmax(%x) {axis = -1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: onnx.Softmax(%{{.*}}) {axis = 0, test.mark} : (
  %1 = onnx.Softmax(%x) {axis = 0, test.mark} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: onnx.Elu(%{{.*}}) {alpha = 1.000000e-01 : f32} : (
  %2 = onnx.Elu(%x) {alpha = 0.1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @values
func.func @values(%q: !onnx.seq<tensor<?xf32>>, %o: !onnx.opt<!onnx.seq<tensor<*xi64>>>, %m: !onnx.map<i64, tensor<f32>>, %p: !onnx.sparse<tensor<3x4xf32>>) {
  // CHECK: onnx.Constant() {value = dense<["a", "b"]> : tensor<2x!onnx.string>}
  %0 = onnx.Constant() {value = dense<["a", "b"]> : tensor<2x!onnx.string>} : () -> tensor<2x!onnx.string>
  // CHECK: sparse_value = sparse<{{\[}}[0, 0], [1, 2]], [1.000000e+00, 5.000000e+00]> : tensor<3x4xf32>
  %1 = onnx.Constant() {sparse_value = sparse<[[0, 0], [1, 2]], [1.0, 5.0]> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
  // CHECK: onnx.SequenceLength(%{{.*}}) : (!onnx.seq<tensor<?xf32>>) -> tensor<i64>
  %2 = onnx.SequenceLength(%q) : (!onnx.seq<tensor<?xf32>>) -> tensor<i64>
  // CHECK: onnx.OptionalHasElement(%{{.*}}) : (!onnx.opt<!onnx.seq<tensor<*xi64>>>) -> tensor<i1>
  %3 = onnx.OptionalHasElement(%o) : (!onnx.opt<!onnx.seq<tensor<*xi64>>>) -> tensor<i1>
  return
}

// CHECK-LABEL: func.func @control_flow
func.func @control_flow(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: onnx.If(%{{.*}}) : (tensor<i1>) -> tensor<4xf32> then_branch {
  // CHECK: } else_branch {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<4xf32> then_branch {
    onnx.Yield %x : tensor<4xf32>
  } else_branch {
    %1 = onnx.Neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
    onnx.Yield %1 : tensor<4xf32>
  }
  // CHECK: onnx.Loop(none, %{{.*}}, %{{.*}}) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> body {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %{{.*}}: tensor<4xf32>):
  %2 = onnx.Loop(none, %c, %0) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<4xf32>):
    onnx.Yield %go, %state : tensor<i1>, tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @custom
func.func @custom(%x: tensor<4xf32>) -> !onnx.unknown {
  // CHECK: onnx.Custom "com.example" "Frobnicate"(%{{.*}}) {absent_inputs = array<i64: 0>, node_attributes = {alpha = 5.000000e-01 : f32}, region_names = ["body"]} : (tensor<4xf32>) -> !onnx.unknown {
  %0 = onnx.Custom "com.example" "Frobnicate" (%x)
    {absent_inputs = array<i64: 0>, node_attributes = {alpha = 0.5 : f32}, region_names = ["body"]}
    : (tensor<4xf32>) -> !onnx.unknown {
    onnx.Yield %x : tensor<4xf32>
  }
  // CHECK: onnx.Relu(%{{.*}}) : (!onnx.unknown) -> !onnx.unknown
  %1 = onnx.Relu(%0) : (!onnx.unknown) -> !onnx.unknown
  return %1 : !onnx.unknown
}
