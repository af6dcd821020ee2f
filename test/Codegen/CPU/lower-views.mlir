// RUN: onnx-opt %s --sdx-cpu-lower-views | FileCheck %s

// CHECK-LABEL: func.func @two_open_sizes(
// CHECK-SAME:      %[[M:.*]]: memref<?x384xf32>, %[[B:.*]]: index, %[[S:.*]]: index
func.func @two_open_sizes(%m: memref<?x384xf32>, %b: index, %s: index)
    -> memref<?x?x12x32xf32> {
  // CHECK: %[[STRIDE:.*]] = arith.muli %{{.*}}, %[[S]]
  // CHECK: memref.reinterpret_cast %[[M]] to offset: [0],
  // CHECK-SAME: sizes: [%[[B]], %[[S]], 12, 32], strides: [%[[STRIDE]], 384, 32, 1]
  %v = memref.expand_shape %m [[0, 1], [2, 3]] output_shape [%b, %s, 12, 32]
      : memref<?x384xf32> into memref<?x?x12x32xf32>
  return %v : memref<?x?x12x32xf32>
}
