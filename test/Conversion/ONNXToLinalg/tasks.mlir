// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Programs on elements are loops over tasks, so that each is a kernel.

// CHECK-LABEL: func.func @gather
// CHECK: scf.forall (%[[I:.*]]) in (5)
// CHECK: tensor.extract %{{.*}}[%[[I]]]
// CHECK: sdx.check
// CHECK: tensor.parallel_insert_slice
// CHECK: mapping = [#sdx.task]
func.func @gather(%x: tensor<100x64xf32>, %i: tensor<5xi64>) -> tensor<5x64xf32> {
  %0 = onnx.Gather(%x, %i) : (tensor<100x64xf32>, tensor<5xi64>) -> tensor<5x64xf32>
  return %0 : tensor<5x64xf32>
}

// -----

// One row is a view whose index the host reads.
// CHECK-LABEL: func.func @gather_one
// CHECK-NOT: scf.forall
// CHECK: tensor.extract %{{.*}}[%c0]
// CHECK: tensor.extract_slice
func.func @gather_one(%x: tensor<100x64xf32>, %i: tensor<1xi64>) -> tensor<1x64xf32> {
  %0 = onnx.Gather(%x, %i) : (tensor<100x64xf32>, tensor<1xi64>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// -----

// Rows before the axis are tasks; the order of updates is kept in each.
// CHECK-LABEL: func.func @scatter_rows
// CHECK: scf.forall (%[[ROW:.*]]) in (7) shared_outs(%[[ALL:.*]] = %{{.*}})
// CHECK: tensor.extract_slice %[[ALL]][%[[ROW]], 0, 0] [1, 20, 30]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tensor.parallel_insert_slice
func.func @scatter_rows(%x: tensor<10x20x30xf32>, %i: tensor<7x5x30xi64>, %u: tensor<7x5x30xf32>) -> tensor<10x20x30xf32> {
  %0 = onnx.ScatterElements(%x, %i, %u) {axis = 1 : si64} : (tensor<10x20x30xf32>, tensor<7x5x30xi64>, tensor<7x5x30xf32>) -> tensor<10x20x30xf32>
  return %0 : tensor<10x20x30xf32>
}

// -----

// Without such rows a task has a range of columns.
// CHECK-LABEL: func.func @scatter_columns
// CHECK: %[[THREADS:.*]] = sdx.thread_count
// CHECK: %[[FEWER:.*]] = arith.minsi %[[THREADS]], %c4
// CHECK: arith.maxsi %[[FEWER]], %c1
// CHECK: scf.forall (%{{.*}}) in (%{{.*}})
// CHECK: tensor.extract_slice %{{.*}}[0, 0, %{{.*}}] [1, 20, %{{.*}}]
func.func @scatter_columns(%x: tensor<20x256xf32>, %i: tensor<5x256xi64>, %u: tensor<5x256xf32>) -> tensor<20x256xf32> {
  %0 = onnx.ScatterElements(%x, %i, %u) {axis = 0 : si64, reduction = "add"} : (tensor<20x256xf32>, tensor<5x256xi64>, tensor<5x256xf32>) -> tensor<20x256xf32>
  return %0 : tensor<20x256xf32>
}

// -----

// Any update may name any element: one task.
// CHECK-LABEL: func.func @scatter_nd
// CHECK: scf.forall (%{{.*}}) in (1)
// CHECK: scf.for
func.func @scatter_nd(%x: tensor<20x30xf32>, %i: tensor<?x2xi64>, %u: tensor<?xf32>) -> tensor<20x30xf32> {
  %0 = onnx.ScatterND(%x, %i, %u) : (tensor<20x30xf32>, tensor<?x2xi64>, tensor<?xf32>) -> tensor<20x30xf32>
  return %0 : tensor<20x30xf32>
}

// -----

// Counted, added up, read by the host, written.
// CHECK-LABEL: func.func @nonzero
// CHECK: scf.forall
// CHECK: %[[SUMS:.*]]:2 = scf.forall (%{{.*}}) in (1)
// CHECK: tensor.extract %{{.*}}[%c0]
// CHECK: tensor.empty(%{{.*}}) : tensor<2x?xi64>
// CHECK: scf.forall
func.func @nonzero(%x: tensor<?x30xf32>) -> tensor<2x?xi64> {
  %0 = onnx.NonZero(%x) : (tensor<?x30xf32>) -> tensor<2x?xi64>
  return %0 : tensor<2x?xi64>
}

// -----

// The places of what is true are gathered.
// CHECK-LABEL: func.func @compress
// CHECK: scf.forall
// CHECK: scf.forall
// CHECK: tensor.extract %{{.*}}[%c0]
// CHECK: scf.forall
// CHECK: scf.forall
// CHECK: mapping = [#sdx.task]
func.func @compress(%x: tensor<20x30xf32>, %c: tensor<20xi1>) -> tensor<?x30xf32> {
  %0 = onnx.Compress(%x, %c) {axis = 0 : si64} : (tensor<20x30xf32>, tensor<20xi1>) -> tensor<?x30xf32>
  return %0 : tensor<?x30xf32>
}

// -----

// CHECK-LABEL: func.func @det
// CHECK: scf.forall (%{{.*}}) in (7)
func.func @det(%x: tensor<7x5x5xf32>) -> tensor<7xf32> {
  %0 = onnx.Det(%x) : (tensor<7x5x5xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// CHECK-LABEL: func.func @sums_of_rows
// CHECK: scf.forall (%{{.*}}) in (7)
func.func @sums_of_rows(%x: tensor<7x500xf32>) -> tensor<7x500xf32> {
  %axis = onnx.Constant() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %0 = onnx.CumSum(%x, %axis) : (tensor<7x500xf32>, tensor<i64>) -> tensor<7x500xf32>
  return %0 : tensor<7x500xf32>
}

// -----

// CHECK-LABEL: func.func @sums_of_columns
// CHECK: sdx.thread_count
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (7, %{{.*}})
func.func @sums_of_columns(%x: tensor<7x500x256xf32>) -> tensor<7x500x256xf32> {
  %axis = onnx.Constant() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %0 = onnx.CumSum(%x, %axis) : (tensor<7x500x256xf32>, tensor<i64>) -> tensor<7x500x256xf32>
  return %0 : tensor<7x500x256xf32>
}

// -----

// Indices count in the whole result: one task.
// CHECK-LABEL: func.func @unpool
// CHECK: linalg.fill
// CHECK: scf.forall (%{{.*}}) in (1)
func.func @unpool(%x: tensor<1x4x8x8xf32>, %i: tensor<1x4x8x8xi64>) -> tensor<1x4x16x16xf32> {
  %0 = onnx.MaxUnpool(%x, %i) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x4x8x8xf32>, tensor<1x4x8x8xi64>) -> tensor<1x4x16x16xf32>
  return %0 : tensor<1x4x16x16xf32>
}
