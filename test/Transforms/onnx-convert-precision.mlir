// RUN: onnx-opt %s -onnx-convert-precision -verify-diagnostics | FileCheck %s
// RUN: onnx-opt %s -onnx-convert-precision="type=bf16 exclude-ops=Relu" | FileCheck %s --check-prefix=BF16
// RUN: onnx-opt %s -onnx-convert-precision="keep-io=false" -verify-diagnostics | FileCheck %s --check-prefix=BORDER
// RUN: not onnx-opt %s -onnx-convert-precision="type=f8" 2>&1 | FileCheck %s --check-prefix=TYPE

// TYPE: type=f8: must be f16 or bf16

// Between products numbers stay in 16 bits; the sum over many is f32. Names go
// with the values that have the model's type.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME:  (%[[X:.*]]: tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK:       %[[X16:.*]] = onnx.Cast(%[[X]]) {to = 10} : {{.*}} -> tensor<2x8xf16>
// CHECK:       %[[W:.*]] = onnx.Constant
// CHECK:       %[[W16:.*]] = onnx.Cast(%[[W]]) {to = 10}
// CHECK:       %[[P:.*]] = onnx.MatMul(%[[X16]], %[[W16]]) {onnx.names = ["p_to_f16"]} : {{.*}} -> tensor<2x8xf16>
// CHECK:       %[[R:.*]] = onnx.Relu(%[[P]]) : (tensor<2x8xf16>) -> tensor<2x8xf16>
// CHECK:       %[[Q:.*]] = onnx.MatMul(%[[R]], %[[W16]])
// CHECK:       %[[Q32:.*]] = onnx.Cast(%[[Q]]) {to = 1}
// CHECK:       %[[S:.*]] = onnx.Softmax(%[[Q32]]) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK:       onnx.MatMul(%[[S]], %{{.*}}) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>

// BF16:        onnx.MatMul({{.*}} -> tensor<2x8xbf16>
// BF16:        onnx.Relu({{.*}} -> tensor<2x8xf32>
// BF16:        onnx.MatMul({{.*}} -> tensor<2x8xbf16>
// BF16:        onnx.MatMul({{.*}} -> tensor<2x8xbf16>

// BORDER-LABEL: func.func @main_graph
// BORDER-SAME:  (%[[X:.*]]: tensor<2x8xf16>) -> tensor<2x8xf16>
// BORDER-NOT:   onnx.Cast(%[[X]])
// BORDER:       onnx.MatMul(%[[X]],
// BORDER:       %[[LAST:.*]] = onnx.Cast({{.*}} {to = 10}
// BORDER:       return %[[LAST]]
func.func @main_graph(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = onnx.Constant() {value = dense<0.5> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
  %0 = onnx.MatMul(%x, %w) {onnx.names = ["p"]} : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %1 = onnx.Relu(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %2 = onnx.MatMul(%1, %w) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  %3 = onnx.Softmax(%2) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %v = onnx.Constant() {value = dense<1.0e5> : tensor<8x8xf32>} : () -> tensor<8x8xf32>
  // expected-remark@+1 {{stays f32: a constant operand has numbers beyond 'f16'}}
  %4 = onnx.MatMul(%3, %v) : (tensor<2x8xf32>, tensor<8x8xf32>) -> tensor<2x8xf32>
  return %4 : tensor<2x8xf32>
}
