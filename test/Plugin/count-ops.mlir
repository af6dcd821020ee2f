// RUN: onnx-opt %s --load-pass-plugin=%build/lib/CountOps.so \
// RUN:   --pass-pipeline='builtin.module(func.func(count-ops))' -verify-diagnostics

// expected-remark @below {{2 x onnx.Relu}}
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "onnx.Relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "onnx.Relu"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
