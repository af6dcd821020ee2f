// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// A state that is open outside and known in the body: what the loop gives is
// cast behind it.

// CHECK-LABEL: func.func @open_state
// CHECK:         %[[LOOP:.*]]:2 = scf.for
// CHECK-SAME:      -> (tensor<?xf32>, tensor<?x2xf32>)
// CHECK:           scf.yield
// CHECK:         tensor.cast %[[LOOP]]#0 : tensor<?xf32> to tensor<2xf32>
func.func @open_state(%state: tensor<?xf32>, %x: tensor<?x?xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %0:2 = onnx.Scan(%state, %x) {num_scan_inputs = 1} : (tensor<?xf32>, tensor<?x?xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) body {
  ^bb0(%s: tensor<2xf32>, %slice: tensor<2xf32>):
    %1 = onnx.Add(%s, %slice) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    onnx.Yield %1, %1 : tensor<2xf32>, tensor<2xf32>
  }
  return %0#0, %0#1 : tensor<2xf32>, tensor<?x2xf32>
}
