// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// The input's product is made for all time steps before the loop, and for all
// gates at once, as is the state's; the cell is one computation.
// CHECK-LABEL: func @lstm
// CHECK: linalg.matmul ins({{.*}} : tensor<?x4xf32>, tensor<4x12xf32>)
// CHECK: scf.for
// CHECK: %[[GATES:.*]] = linalg.matmul ins({{.*}} : tensor<2x3xf32>, tensor<3x12xf32>)
// CHECK: tensor.extract_slice %[[GATES]][0, 0] [2, 3] [1, 1] : tensor<2x12xf32> to tensor<2x3xf32>
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: tensor.insert_slice
// CHECK: scf.yield
// CHECK-NOT: linalg.matmul
func.func @lstm(%x: tensor<?x2x4xf32>, %w: tensor<1x12x4xf32>, %r: tensor<1x12x3xf32>, %b: tensor<1x24xf32>) -> (tensor<?x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
  %0, %1, %2 = onnx.LSTM(%x, %w, %r, %b) {hidden_size = 3} : (tensor<?x2x4xf32>, tensor<1x12x4xf32>, tensor<1x12x3xf32>, tensor<1x24xf32>) -> (tensor<?x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>)
  return %0, %1, %2 : tensor<?x1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32>
}

// -----

// CHECK-LABEL: func @gru_both_ways
// CHECK: scf.for
// CHECK: linalg.matmul ins({{.*}} : tensor<2x3xf32>, tensor<3x9xf32>)
// CHECK-NOT: linalg.matmul
// CHECK: scf.yield
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @gru_both_ways(%x: tensor<5x2x4xf32>, %w: tensor<2x9x4xf32>, %r: tensor<2x9x3xf32>) -> tensor<2x2x3xf32> {
  %0 = onnx.GRU(%x, %w, %r) {direction = "bidirectional", hidden_size = 3, linear_before_reset = 1} : (tensor<5x2x4xf32>, tensor<2x9x4xf32>, tensor<2x9x3xf32>) -> (none, tensor<2x2x3xf32>)
  return %0 : tensor<2x2x3xf32>
}

// -----

// A hidden gate that looks at what the reset gate leaves has a product of its
// own.
// CHECK-LABEL: func @gru_reset_first
// CHECK: scf.for
// CHECK: linalg.matmul ins({{.*}} : tensor<2x3xf32>, tensor<3x6xf32>)
// CHECK: linalg.matmul ins({{.*}} : tensor<2x3xf32>, tensor<3x3xf32>)
// CHECK: scf.yield
func.func @gru_reset_first(%x: tensor<5x2x4xf32>, %w: tensor<1x9x4xf32>, %r: tensor<1x9x3xf32>) -> tensor<1x2x3xf32> {
  %0 = onnx.GRU(%x, %w, %r) {hidden_size = 3} : (tensor<5x2x4xf32>, tensor<1x9x4xf32>, tensor<1x9x3xf32>) -> (none, tensor<1x2x3xf32>)
  return %0 : tensor<1x2x3xf32>
}

// -----

// Sequences of different lengths keep their last state.
// CHECK-LABEL: func @rnn_lengths
// CHECK: scf.for
// CHECK: arith.cmpi slt
// CHECK: arith.select
func.func @rnn_lengths(%x: tensor<5x2x4xf32>, %w: tensor<1x3x4xf32>, %r: tensor<1x3x3xf32>, %n: tensor<2xi32>) -> tensor<1x2x3xf32> {
  %0 = onnx.RNN(%x, %w, %r, none, %n) {hidden_size = 3, activations = ["Relu"]} : (tensor<5x2x4xf32>, tensor<1x3x4xf32>, tensor<1x3x3xf32>, tensor<2xi32>) -> (none, tensor<1x2x3xf32>)
  return %0 : tensor<1x2x3xf32>
}
