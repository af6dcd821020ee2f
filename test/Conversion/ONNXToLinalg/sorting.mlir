// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s
// RUN: onnx-opt %s --compile-to=dispatch | FileCheck %s --check-prefix=KERNEL

// Rows are sorted in parallel, each in its own part of the results. Of a long
// row the best of each of 16 groups are found, a bound that the best of at least
// three of them keep, and by a search what else keeps it. Keys of 64 bits, of an
// element and its index, are sorted by counting those before each if they are
// few, else by their bytes.

// CHECK-LABEL: func.func @main_graph
// CHECK:         scf.forall (%[[ROW:.*]]) in (8) shared_outs(%[[V:.*]] = %{{.*}}, %[[I:.*]] = %{{.*}})
// CHECK-DAG:       tensor.extract_slice %[[V]][%[[ROW]], 0] [1, 3] [1, 1] : tensor<8x3xf32> to tensor<3xf32>
// CHECK-DAG:       tensor.extract_slice %[[I]][%[[ROW]], 0] [1, 3] [1, 1] : tensor<8x3xi64> to tensor<3xi64>
// CHECK:           scf.for
// CHECK:             arith.bitcast %{{.*}} : f32 to i32
// CHECK:             arith.maxsi %{{.*}} : i32
// CHECK:           scf.while
// CHECK:             arith.cmpi sge, %{{.*}} : i32
// CHECK:           scf.while
// CHECK:             attributes {sdx.any}
// CHECK:             arith.shli %{{.*}}, %c32_i64
// CHECK:           scf.if
// CHECK:             math.ctlz
// CHECK:             tensor<256xi64>
// CHECK:           else
// CHECK:             arith.cmpi sgt, %{{.*}} : i64
// CHECK:           scf.forall.in_parallel
// CHECK-COUNT-2:     tensor.parallel_insert_slice

// KERNEL:       sdx.call @[[KERNEL:k[0-9]+_forall]](
// KERNEL:       func.func private @[[KERNEL]](
// KERNEL:         scf.forall
func.func @main_graph(%x: tensor<8x1000xf32>) -> (tensor<8x3xf32>, tensor<8x3xi64>) {
  %k = onnx.Constant() {value = dense<3> : tensor<1xi64>} : () -> tensor<1xi64>
  %v, %i = onnx.TopK(%x, %k) {axis = 1, largest = 1, sorted = 1} : (tensor<8x1000xf32>, tensor<1xi64>) -> (tensor<8x3xf32>, tensor<8x3xi64>)
  return %v, %i : tensor<8x3xf32>, tensor<8x3xi64>
}
