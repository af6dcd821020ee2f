// Stopping after a phase and resuming from its text gives what one run gives.
// RUN: onnx-opt %s --compile-to=llvm -o %t.whole.mlir
// RUN: onnx-opt %s --compile-to=dispatch -o %t.dispatch.mlir
// RUN: onnx-opt %t.dispatch.mlir --compile-from=dispatch --compile-to=llvm -o %t.resumed.mlir
// RUN: diff %t.whole.mlir %t.resumed.mlir
// RUN: FileCheck %s --input-file=%t.dispatch.mlir
// RUN: not onnx-opt %s --compile-to=nowhere 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not onnx-opt %s --compile-from=llvm --compile-to=linalg 2>&1 | FileCheck %s --check-prefix=ORDER

// UNKNOWN: error: --compile-to=nowhere: no such phase; there are import, onnx, linalg, dispatch, kernels, codegen, llvm
// ORDER: error: --compile-from=llvm is not before --compile-to=linalg

// The product, its bias and its Relu are one kernel; Softmax is another.
// CHECK-LABEL: func.func @main(
// CHECK: sdx.call @k[[#MATMUL:]]_matmul(
// CHECK: sdx.call @k[[#ROWS:]]_rows(
// CHECK-NOT: sdx.call
// CHECK: return
func.func @main_graph(
    %x: tensor<?x64xf32> {onnx.name = "x", onnx.dim_params = ["n", ""]},
    %w: tensor<64x40xf32> {onnx.name = "w"}, %b: tensor<40xf32> {onnx.name = "b"})
    -> (tensor<?x40xf32> {onnx.name = "y"}) {
  %0 = onnx.MatMul(%x, %w) : (tensor<?x64xf32>, tensor<64x40xf32>) -> tensor<?x40xf32>
  %1 = onnx.Add(%0, %b) : (tensor<?x40xf32>, tensor<40xf32>) -> tensor<?x40xf32>
  %2 = onnx.Relu(%1) : (tensor<?x40xf32>) -> tensor<?x40xf32>
  %3 = onnx.Softmax(%2) {axis = -1} : (tensor<?x40xf32>) -> tensor<?x40xf32>
  return %3 : tensor<?x40xf32>
}
