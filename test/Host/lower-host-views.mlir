// RUN: onnx-opt %s --sdx-lower-host-views | FileCheck %s

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

// CHECK-LABEL: func.func @a_part(
// CHECK-SAME:      %[[M:.*]]: memref<?xf32, strided<[2], offset: 3>>, %[[B:.*]]: index, %[[S:.*]]: index
func.func @a_part(%m: memref<?xf32, strided<[2], offset: 3>>, %b: index, %s: index)
    -> memref<?x?xf32, strided<[?, 2], offset: 3>> {
  // CHECK: %[[STRIDE:.*]] = arith.muli %{{.*}}, %[[S]]
  // CHECK: memref.reinterpret_cast %[[M]] to offset: [3], sizes: [%[[B]], %[[S]]], strides: [%[[STRIDE]], 2]
  %v = memref.expand_shape %m [[0, 1]] output_shape [%b, %s]
      : memref<?xf32, strided<[2], offset: 3>> into memref<?x?xf32, strided<[?, 2], offset: 3>>
  return %v : memref<?x?xf32, strided<[?, 2], offset: 3>>
}

// CHECK-LABEL: func.func @a_part_somewhere(
// CHECK-SAME:      %[[M:.*]]: memref<?xf32, strided<[?], offset: ?>>
func.func @a_part_somewhere(%m: memref<?xf32, strided<[?], offset: ?>>, %b: index, %s: index)
    -> memref<?x?xf32, strided<[?, ?], offset: ?>> {
  // CHECK: %{{.*}}, %[[OFFSET:.*]], %{{.*}}, %[[LAST:.*]] = memref.extract_strided_metadata %[[M]]
  // CHECK: %[[STRIDE:.*]] = arith.muli %[[LAST]]
  // CHECK: memref.reinterpret_cast %[[M]] to offset: [%[[OFFSET]]], {{.*}} strides: [%[[STRIDE]], %[[LAST]]]
  %v = memref.expand_shape %m [[0, 1]] output_shape [%b, %s]
      : memref<?xf32, strided<[?], offset: ?>> into memref<?x?xf32, strided<[?, ?], offset: ?>>
  return %v : memref<?x?xf32, strided<[?, ?], offset: ?>>
}

// CHECK-LABEL: func.func @one_element(
func.func @one_element(%m: memref<f32, strided<[], offset: 5>>) -> memref<1x1xf32, strided<[1, 1], offset: 5>> {
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [5], sizes: [1, 1], strides: [1, 1]
  %v = memref.expand_shape %m [] output_shape [1, 1]
      : memref<f32, strided<[], offset: 5>> into memref<1x1xf32, strided<[1, 1], offset: 5>>
  return %v : memref<1x1xf32, strided<[1, 1], offset: 5>>
}
