// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg | FileCheck %s

// A string is the number of a literal, so that constants stay constants, and
// what moves or compares strings is what moves or compares numbers.
// CHECK: module attributes {sdx.strings = ["b", "a"]}
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<?xi64>
// CHECK-DAG:     dense<[1, 2, 0, 1]> : tensor<4xi64>
// CHECK:         arith.cmpi eq
// CHECK-NOT:     sdx.runtime_call
func.func @main_graph(%x: tensor<?x!onnx.string>) -> (tensor<4x!onnx.string>, tensor<?xi1>) {
  %c = onnx.Constant() {value = dense<["b", "a", "", "b"]> : tensor<4x!onnx.string>} : () -> tensor<4x!onnx.string>
  %a = onnx.Constant() {value = dense<"a"> : tensor<!onnx.string>} : () -> tensor<!onnx.string>
  %e = onnx.Equal(%x, %a) : (tensor<?x!onnx.string>, tensor<!onnx.string>) -> tensor<?xi1>
  return %c, %e : tensor<4x!onnx.string>, tensor<?xi1>
}

// -----

// What needs their text is computed by the runtime.
// CHECK-LABEL: func.func @main_graph
// CHECK:         %[[C:.*]] = sdx.runtime_call "sdx_rt_string_concat"(%{{.*}}, %{{.*}} : tensor<?xi64>, tensor<?xi64>) outs(%{{.*}} : tensor<?xi64>)
// CHECK:         %[[N:.*]] = sdx.runtime_call "sdx_rt_string_parse_f32"(%[[C]]
// CHECK:         linalg.generic
// CHECK:         arith.truncf
func.func @main_graph(%x: tensor<?x!onnx.string>) -> tensor<?xf16> {
  %0 = onnx.StringConcat(%x, %x) : (tensor<?x!onnx.string>, tensor<?x!onnx.string>) -> tensor<?x!onnx.string>
  %1 = onnx.Cast(%0) {to = 10} : (tensor<?x!onnx.string>) -> tensor<?xf16>
  return %1 : tensor<?xf16>
}

// -----

// A sequence is a handle in a tensor. An item's sizes come first, and those that
// the model states are checked.
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<i64>
// CHECK:         %[[S:.*]] = sdx.runtime_call "sdx_rt_list_sizes"(%arg0, %{{.*}} : tensor<i64>, tensor<i64>) outs(%{{.*}} : tensor<2xi64>)
// CHECK:         sdx.check %{{.*}}, "SequenceAt: a size is not what the model says: {0} and {1}"
// CHECK:         tensor.empty(%{{.*}}) : tensor<?x3xf32>
// CHECK:         sdx.runtime_call "sdx_rt_list_get"(%arg0, %{{.*}}, %{{.*}} : tensor<i64>, tensor<i64>, i64)
func.func @main_graph(%s: !onnx.seq<tensor<?x3xf32>>, %p: tensor<i64>) -> tensor<?x3xf32> {
  %0 = onnx.SequenceAt(%s, %p) : (!onnx.seq<tensor<?x3xf32>>, tensor<i64>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}

// -----

// CHECK-LABEL: func.func @main_graph
// CHECK:         %[[H:.*]] = tensor.extract %arg0[] : tensor<i64>
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK:         arith.cmpi ne, %[[H]], %[[ZERO]]
func.func @main_graph(%o: !onnx.opt<tensor<?xf32>>) -> tensor<i1> {
  %0 = onnx.OptionalHasElement(%o) : (!onnx.opt<tensor<?xf32>>) -> tensor<i1>
  return %0 : tensor<i1>
}
