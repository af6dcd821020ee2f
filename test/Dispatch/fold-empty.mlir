// RUN: onnx-opt %s -split-input-file -sdx-fold-empty | FileCheck %s

// A product without depth is what it starts from.
// CHECK-LABEL: func.func @no_depth
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-NOT:     linalg.matmul
// CHECK:         return %[[ZERO]]
func.func @no_depth(%a: tensor<2x0xf32>, %b: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2x0xf32>, tensor<0x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// Nothing is computed where there are no elements; open sizes are kept.
// CHECK-LABEL: func.func @no_columns
// CHECK-SAME:    %[[X:.*]]: tensor<?x0xf32>
// CHECK-DAG:     %[[N:.*]] = tensor.dim %[[X]]
// CHECK-NOT:     linalg.generic
// CHECK:         tensor.empty(%{{.*}}) : tensor<?x0xf32>
// CHECK:         return
func.func @no_columns(%x: tensor<?x0xf32>) -> tensor<?x0xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x0xf32>
  %e = tensor.empty(%n) : tensor<?x0xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<?x0xf32>) outs(%e : tensor<?x0xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.negf %in : f32
    linalg.yield %y : f32
  } -> tensor<?x0xf32>
  return %r : tensor<?x0xf32>
}

// -----

// The border around nothing is all there is.
// CHECK-LABEL: func.func @pad
// CHECK-NOT:     tensor.pad
// CHECK:         %[[FILLED:.*]] = linalg.fill
// CHECK:         return %[[FILLED]] : tensor<2x3xf32>
func.func @pad(%x: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %r = tensor.pad %x low[1, 0] high[1, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<0x3xf32> to tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// -----

// A loop has other results and effects: it stays.
// CHECK-LABEL: func.func @loop
// CHECK:         scf.for
// CHECK:         return
func.func @loop(%x: tensor<0xf32>, %s: f32) -> (tensor<0xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r:2 = scf.for %i = %c0 to %c5 step %c1 iter_args(%t = %x, %v = %s) -> (tensor<0xf32>, f32) {
    %w = arith.addf %v, %v : f32
    scf.yield %t, %w : tensor<0xf32>, f32
  }
  return %r#0, %r#1 : tensor<0xf32>, f32
}

// -----

// A part of nothing is nothing, though the types leave that open.
// CHECK-LABEL: func.func @slice
// CHECK-SAME:      %[[N:.*]]: index, %[[M:.*]]: index
// CHECK:         %[[EMPTY:.*]] = tensor.empty(%[[M]], %[[N]]) : tensor<?x?xf32>
// CHECK:         return %[[EMPTY]]
func.func @slice(%n: index, %m: index) -> tensor<?x?xf32> {
  %e = tensor.empty(%n) : tensor<0x?xf32>
  %x = tensor.cast %e : tensor<0x?xf32> to tensor<?x?xf32>
  %r = tensor.extract_slice %x[0, 0] [%m, %n] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @insert
// CHECK-NOT:     tensor.insert_slice
// CHECK:         return
func.func @insert(%p: tensor<?x2xf32>, %m: index) -> tensor<?x2xf32> {
  %e = tensor.empty() : tensor<0x2xf32>
  %x = tensor.cast %e : tensor<0x2xf32> to tensor<?x2xf32>
  %r = tensor.insert_slice %p into %x[0, 0] [%m, 2] [1, 1] : tensor<?x2xf32> into tensor<?x2xf32>
  return %r : tensor<?x2xf32>
}

// -----

// What an open size and none are together is none.
// CHECK-LABEL: func.func @collapse
// CHECK-NOT:     tensor.collapse_shape
// CHECK:         return
func.func @collapse(%x: tensor<?x3x0xf32>) -> tensor<?xf32> {
  %r = tensor.collapse_shape %x [[0, 1, 2]] : tensor<?x3x0xf32> into tensor<?xf32>
  return %r : tensor<?xf32>
}
