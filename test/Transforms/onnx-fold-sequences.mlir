// RUN: onnx-opt %s -onnx-fold-sequences -split-input-file | FileCheck %s

// Tensors of different ranks: each is taken from where it was put.
// CHECK-LABEL: func.func @main_graph(%arg0: tensor<2xf32>, %arg1: tensor<2x3xf32>, %arg2: tensor<f32>)
// CHECK:         %[[A:.*]] = onnx.Identity(%arg1) : (tensor<2x3xf32>) -> tensor<*xf32>
// CHECK:         %[[B:.*]] = onnx.Identity(%arg2) : (tensor<f32>) -> tensor<*xf32>
// CHECK:         return %[[A]], %[[B]]
func.func @main_graph(%x: tensor<2xf32>, %y: tensor<2x3xf32>, %z: tensor<f32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %last = onnx.Constant() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %zero = onnx.Constant() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %s = onnx.SequenceConstruct(%x, %y) : (tensor<2xf32>, tensor<2x3xf32>) -> !onnx.seq<tensor<*xf32>>
  %a = onnx.SequenceAt(%s, %last) : (!onnx.seq<tensor<*xf32>>, tensor<i64>) -> tensor<*xf32>
  %t = onnx.SequenceInsert(%s, %z, %zero) : (!onnx.seq<tensor<*xf32>>, tensor<f32>, tensor<i32>) -> !onnx.seq<tensor<*xf32>>
  %u = onnx.SequenceErase(%t) : (!onnx.seq<tensor<*xf32>>) -> !onnx.seq<tensor<*xf32>>
  %b = onnx.SequenceAt(%u, %zero) : (!onnx.seq<tensor<*xf32>>, tensor<i32>) -> tensor<*xf32>
  return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// A position outside is the run's to tell, and one that it gives, to find.
// CHECK-LABEL: func.func @main_graph
// CHECK-COUNT-2: onnx.SequenceAt
func.func @main_graph(%x: tensor<2xf32>, %p: tensor<i64>) -> (tensor<2xf32>, tensor<2xf32>) {
  %one = onnx.Constant() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %s = onnx.SequenceConstruct(%x) : (tensor<2xf32>) -> !onnx.seq<tensor<2xf32>>
  %a = onnx.SequenceAt(%s, %one) : (!onnx.seq<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  %b = onnx.SequenceAt(%s, %p) : (!onnx.seq<tensor<2xf32>>, tensor<i64>) -> tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}
