// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func @max
// CHECK-DAG: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-NOT: tensor.pad
// CHECK: %[[INIT:.*]] = linalg.fill ins(%[[LOW]] : f32)
// CHECK: sdx.max_pool ins(%arg0 : tensor<1x2x8x8xf32>) outs(%[[INIT]] : tensor<1x2x4x4xf32>)
// CHECK-SAME: kernel_shape = array<i64: 3, 3>, pads_begin = array<i64: 1, 1>, strides = array<i64: 2, 2>
func.func @max(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %0 = onnx.MaxPool(%x) {kernel_shape = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  return %0 : tensor<1x2x4x4xf32>
}

// -----

// With dilations a border is padded.
// CHECK-LABEL: func @max_dilated
// CHECK: tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: linalg.generic
// CHECK: arith.maximumf
// CHECK-LABEL: func @max_open
// CHECK-NOT: tensor.pad
// CHECK: sdx.max_pool ins(%arg0 : tensor<1x2x?x8xf32>)
func.func @max_dilated(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %0 = onnx.MaxPool(%x) {kernel_shape = array<i64: 2, 2>, dilations = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  return %0 : tensor<1x2x8x8xf32>
}

func.func @max_open(%x: tensor<1x2x?x8xf32>) -> tensor<1x2x?x4xf32> {
  %0 = onnx.MaxPool(%x) {kernel_shape = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x2x?x8xf32>) -> tensor<1x2x?x4xf32>
  return %0 : tensor<1x2x?x4xf32>
}

// -----

// CHECK-LABEL: func @max_indices
// CHECK: linalg.generic
// CHECK: linalg.index
// CHECK: arith.cmpf ugt
// CHECK: -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>)
func.func @max_indices(%x: tensor<1x1x4x4xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>) {
  %0, %1 = onnx.MaxPool(%x) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>)
  return %0, %1 : tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>
}

// -----

// Every window lies inside, so the divisor is a constant.
// CHECK-LABEL: func @average
// CHECK-NOT: tensor.pad
// CHECK: sdx.average_pool {{.*}}count_include_pad
func.func @average(%x: tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32> {
  %0 = onnx.AveragePool(%x) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  return %0 : tensor<1x1x2x2xf32>
}

// -----

// CHECK-LABEL: func @global
// CHECK: linalg.generic
// CHECK-SAME: ["parallel", "parallel", "reduction", "reduction"]
// CHECK: tensor.expand_shape
func.func @global(%x: tensor<?x8x7x7xf32>) -> tensor<?x8x1x1xf32> {
  %0 = onnx.GlobalAveragePool(%x) : (tensor<?x8x7x7xf32>) -> tensor<?x8x1x1xf32>
  return %0 : tensor<?x8x1x1xf32>
}

// -----

// CHECK-LABEL: func @unpool
// CHECK: scf.for
// CHECK: sdx.check %{{.*}}, "MaxUnpool: index {0} lies outside of an output of {1} elements"(
// CHECK: tensor.insert
func.func @unpool(%x: tensor<1x1x2x2xf32>, %i: tensor<1x1x2x2xi64>) -> tensor<1x1x4x4xf32> {
  %0 = onnx.MaxUnpool(%x, %i) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi64>) -> tensor<1x1x4x4xf32>
  return %0 : tensor<1x1x4x4xf32>
}
