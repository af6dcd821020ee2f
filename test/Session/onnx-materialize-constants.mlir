// RUN: onnx-opt %s -onnx-materialize-constants | FileCheck %s

// What follows from constants is computed; DequantizeLinear and what would be
// much larger than its constants stay.
// CHECK-LABEL: func.func @main_graph
// CHECK-DAG:   %[[SQUARE:.*]] = onnx.Constant() {onnx.names = ["square"], value = dense<[1.000000e+00, 4.000000e+00]> : tensor<2xf32>}
// CHECK-DAG:   %[[BYTES:.*]] = onnx.Constant() {value = dense<[1, -2]> : tensor<2xi4>}
// CHECK:       %[[D:.*]] = onnx.DequantizeLinear(%[[BYTES]],
// CHECK:       %[[ONES:.*]] = onnx.ConstantOfShape
// CHECK:       %[[A:.*]] = onnx.Add(%{{.*}}, %[[SQUARE]])
// CHECK:       %[[B:.*]] = onnx.Mul(%[[A]], %[[D]])
// CHECK:       return %[[B]], %[[ONES]]
module attributes {onnx.ir_version = 10 : i64, onnx.opset = {ai.onnx = 21 : i64}} {
  func.func @main_graph(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<100x100xf32>) {
    %w = onnx.Constant() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %0 = onnx.Mul(%w, %w) {onnx.names = ["square"]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %v = onnx.Constant() {value = dense<[0.5, -1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %z = onnx.Constant() {value = dense<0> : tensor<i4>} : () -> tensor<i4>
    %q = onnx.QuantizeLinear(%v, %s, %z) : (tensor<2xf32>, tensor<f32>, tensor<i4>) -> tensor<2xi4>
    %d = onnx.DequantizeLinear(%q, %s, %z) : (tensor<2xi4>, tensor<f32>, tensor<i4>) -> tensor<2xf32>
    %shape = onnx.Constant() {value = dense<[100, 100]> : tensor<2xi64>} : () -> tensor<2xi64>
    %ones = onnx.ConstantOfShape(%shape) {value = dense<1.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<100x100xf32>
    %1 = onnx.Add(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = onnx.Mul(%1, %d) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %2, %ones : tensor<2xf32>, tensor<100x100xf32>
  }
}
