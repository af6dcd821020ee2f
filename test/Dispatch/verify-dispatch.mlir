// RUN: onnx-opt %s --sdx-verify-dispatch --split-input-file --verify-diagnostics
// RUN: not onnx-opt %s --sdx-verify-dispatch=bufferized --split-input-file 2>&1 | FileCheck %s

// CHECK: 'tensor.extract' op works on tensors after bufferization
func.func @main(%x: tensor<4xf32> {sdx.input = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%c0] : tensor<4xf32>
  return
}

// -----

func.func @main(%x: tensor<4xf32> {sdx.input = 0 : i64}, %y: tensor<4xf32> {sdx.input = 1 : i64}) -> tensor<4xf32> {
  // expected-error@+1 {{is left on the host; it belongs in a kernel}}
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 must have exactly one of 'sdx.input', 'sdx.constant' and 'sdx.persistent', has 0}}
func.func @main(%x: tensor<4xf32>) {
  return
}
