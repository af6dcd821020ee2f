// RUN: onnx-opt %s --sdx-decompose-dense-ops --split-input-file --mlir-print-local-scope | FileCheck %s
// RUN: onnx-opt %s --sdx-decompose-dense-ops --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --split-input-file | FileCheck %s --check-prefix=BUFFERS

// CHECK-LABEL: @matmul
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: (d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME: ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%arg0, %arg1 : tensor<?x5xf32>, tensor<5x7xf32>) outs(%arg2 : tensor<?x7xf32>)
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[C]], %[[P]]
// CHECK-NEXT: linalg.yield %[[S]]
// CHECK: return %[[R]]

// Sums stay where they start from.
// BUFFERS-LABEL: @matmul
// BUFFERS-NOT: memref.alloc
// BUFFERS: linalg.generic {{.*}} outs(%arg2 : memref<?x7xf32>)
// BUFFERS-NOT: memref.copy
// BUFFERS: return %arg2
func.func @matmul(%a: tensor<?x5xf32>, %b: tensor<5x7xf32>, %c: tensor<?x7xf32>) -> tensor<?x7xf32> {
  %0 = sdx.matmul ins(%a, %b : tensor<?x5xf32>, tensor<5x7xf32>) outs(%c : tensor<?x7xf32>) -> tensor<?x7xf32>
  return %0 : tensor<?x7xf32>
}

// -----

// CHECK-LABEL: @transposed
// CHECK: linalg.generic
// CHECK-SAME: (d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME: ins(%arg0, %arg1 : tensor<3x?xf32>, tensor<?x?xf32>)
func.func @transposed(%a: tensor<3x?xf32>, %b: tensor<?x?xf32>, %c: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %0 = sdx.matmul ins(%a, %b : tensor<3x?xf32>, tensor<?x?xf32>) outs(%c : tensor<3x?xf32>) {transposed} -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}

// -----

// CHECK-LABEL: @batched
// CHECK: linalg.generic
// CHECK-SAME: (d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]
// CHECK-SAME: ["parallel", "parallel", "parallel", "reduction"]
func.func @batched(%a: tensor<?x3x5xf32>, %b: tensor<?x7x5xf32>, %c: tensor<?x3x7xf32>) -> tensor<?x3x7xf32> {
  %0 = sdx.matmul ins(%a, %b : tensor<?x3x5xf32>, tensor<?x7x5xf32>) outs(%c : tensor<?x3x7xf32>) {transposed} -> tensor<?x3x7xf32>
  return %0 : tensor<?x3x7xf32>
}

// -----

// All batches have one right-hand side.
// CHECK-LABEL: @shared_rhs
// CHECK: linalg.generic
// CHECK-SAME: (d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]
// CHECK-SAME: ins(%arg0, %arg1 : tensor<4x?x5xf32>, tensor<5x7xf32>)
func.func @shared_rhs(%a: tensor<4x?x5xf32>, %b: tensor<5x7xf32>, %c: tensor<4x?x7xf32>) -> tensor<4x?x7xf32> {
  %0 = sdx.matmul ins(%a, %b : tensor<4x?x5xf32>, tensor<5x7xf32>) outs(%c : tensor<4x?x7xf32>) -> tensor<4x?x7xf32>
  return %0 : tensor<4x?x7xf32>
}

// -----

// Integers are extended as their attributes say.
// CHECK-LABEL: @bytes
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %[[C:.*]]: i32):
// CHECK-NEXT: %[[X:.*]] = arith.extui %[[A]] : i8 to i32
// CHECK-NEXT: %[[Y:.*]] = arith.extsi %[[B]] : i8 to i32
// CHECK-NEXT: %[[P:.*]] = arith.muli %[[X]], %[[Y]] : i32
// CHECK-NEXT: arith.addi %[[C]], %[[P]] : i32
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %{{.*}}: i32):
// CHECK-NEXT: arith.extsi %[[A]]
// CHECK-NEXT: arith.extui %[[B]]
func.func @bytes(%a: tensor<3x5xi8>, %b: tensor<5x7xi8>, %c: tensor<3x7xi32>) -> tensor<3x7xi32> {
  %0 = sdx.matmul ins(%a, %b : tensor<3x5xi8>, tensor<5x7xi8>) outs(%c : tensor<3x7xi32>) {lhs_unsigned} -> tensor<3x7xi32>
  %1 = sdx.matmul ins(%a, %b : tensor<3x5xi8>, tensor<5x7xi8>) outs(%0 : tensor<3x7xi32>) {rhs_unsigned} -> tensor<3x7xi32>
  return %1 : tensor<3x7xi32>
}

// -----

// CHECK-LABEL: @bf16
// CHECK: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %[[C:.*]]: f32):
// CHECK-NEXT: %[[X:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT: %[[Y:.*]] = arith.extf %[[B]] : bf16 to f32
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT: arith.addf %[[C]], %[[P]] : f32
func.func @bf16(%a: tensor<3x5xbf16>, %b: tensor<5x7xbf16>, %c: tensor<3x7xf32>) -> tensor<3x7xf32> {
  %0 = sdx.matmul ins(%a, %b : tensor<3x5xbf16>, tensor<5x7xbf16>) outs(%c : tensor<3x7xf32>) -> tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}

// -----

// Operations on buffers stay.
// CHECK-LABEL: @buffers
// CHECK: sdx.matmul
func.func @buffers(%a: memref<3x5xf32>, %b: memref<5x7xf32>, %c: memref<3x7xf32>) {
  sdx.matmul ins(%a, %b : memref<3x5xf32>, memref<5x7xf32>) outs(%c : memref<3x7xf32>)
  return
}

// -----

// The loops are (image, group, filter, position, channel, kernel); pads are
// zeros around the input. Images and a spatial dimension are open.
// CHECK-LABEL: @conv
// CHECK: %[[N:.*]] = tensor.dim %arg0, %c0
// CHECK: %[[H:.*]] = tensor.dim %arg0, %c2
// CHECK: %[[OUTER:.*]] = affine.apply affine_map<()[s0] -> (s0 + 3)>()[%[[H]]]
// CHECK: %[[E:.*]] = tensor.empty(%[[N]], %[[OUTER]]) : tensor<?x6x?x12xf32>
// CHECK: %[[ZEROS:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[E]] :
// CHECK: %[[PADDED:.*]] = tensor.insert_slice %arg0 into %[[ZEROS]][0, 0, 1, 0] [%[[N]], 6, %[[H]], 9] [1, 1, 1, 1]
// CHECK: %[[X:.*]] = tensor.expand_shape %[[PADDED]] {{\[\[}}0], [1, 2], [3], [4]] {{.*}} into tensor<?x2x3x?x12xf32>
// CHECK: %[[W:.*]] = tensor.expand_shape %arg1 {{.*}} into tensor<2x4x3x3x2xf32>
// CHECK: %[[C:.*]] = tensor.expand_shape %arg2 {{.*}} into tensor<?x2x4x?x4xf32>
// CHECK: %[[R:.*]] = linalg.generic
// CHECK-SAME: (d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6 * 2, d4 * 3 + d7)>
// CHECK-SAME: (d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
// CHECK-SAME: (d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>]
// CHECK-SAME: ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
// CHECK-SAME: ins(%[[X]], %[[W]] : {{.*}}) outs(%[[C]] :
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: tensor.collapse_shape %[[R]] {{\[\[}}0], [1, 2], [3], [4]] : tensor<?x2x4x?x4xf32> into tensor<?x8x?x4xf32>

// BUFFERS-LABEL: @conv
// BUFFERS: %[[PADDED:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<?x6x?x12xf32>
// BUFFERS: %[[INNER:.*]] = memref.subview %[[PADDED]]
// BUFFERS: memref.copy %arg0, %[[INNER]]
// BUFFERS: linalg.generic {{.*}} outs(%{{.*}} : memref<?x2x4x?x4xf32>)
func.func @conv(%x: tensor<?x6x?x9xf32>, %w: tensor<8x3x3x2xf32>, %c: tensor<?x8x?x4xf32>) -> tensor<?x8x?x4xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<?x6x?x9xf32>, tensor<8x3x3x2xf32>) outs(%c : tensor<?x8x?x4xf32>)
      {strides = array<i64: 1, 3>, dilations = array<i64: 2, 1>, pads_begin = array<i64: 1, 0>, pads_end = array<i64: 2, 3>,
       group = 2 : i64} -> tensor<?x8x?x4xf32>
  return %0 : tensor<?x8x?x4xf32>
}

// -----

// An input without pads is read as it is.
// CHECK-LABEL: @conv_1d
// CHECK-NOT: linalg.fill
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{\[\[}}0], [1, 2], [3]] {{.*}} into tensor<1x1x6x9xf64>
// CHECK: linalg.generic
// CHECK-SAME: (d0, d1, d2, d3, d4, d5) -> (d0, d1, d4, d3 * 2 + d5)>
// CHECK-SAME: (d0, d1, d2, d3, d4, d5) -> (d1, d2, d4, d5)>
// CHECK-SAME: (d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>]
// CHECK-SAME: ins(%[[X]],
// CHECK: arith.mulf {{.*}} : f64
func.func @conv_1d(%x: tensor<1x6x9xf64>, %w: tensor<8x6x3xf64>, %c: tensor<1x8x4xf64>) -> tensor<1x8x4xf64> {
  %0 = sdx.conv ins(%x, %w : tensor<1x6x9xf64>, tensor<8x6x3xf64>) outs(%c : tensor<1x8x4xf64>)
      {strides = array<i64: 2>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64} -> tensor<1x8x4xf64>
  return %0 : tensor<1x8x4xf64>
}

// -----

// CHECK-LABEL: @conv_3d
// CHECK: tensor.insert_slice %arg0 into %{{.*}}[0, 0, 0, 1, 0] [1, 2, 4, 5, 6] {{.*}} into tensor<1x2x5x6x7xf32>
// CHECK: linalg.generic
// CHECK-SAME: -> (d0, d1, d6, d3 + d7, d4 * 2 + d8, d5 + d9 * 2)>
// CHECK-SAME: -> (d1, d2, d6, d7, d8, d9)>
// CHECK-SAME: -> (d0, d1, d2, d3, d4, d5)>]
func.func @conv_3d(%x: tensor<1x2x4x5x6xf32>, %w: tensor<4x2x2x3x2xf32>, %c: tensor<1x4x4x2x5xf32>) -> tensor<1x4x4x2x5xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x2x4x5x6xf32>, tensor<4x2x2x3x2xf32>) outs(%c : tensor<1x4x4x2x5xf32>)
      {strides = array<i64: 1, 2, 1>, dilations = array<i64: 1, 1, 2>, pads_begin = array<i64: 0, 1, 0>, pads_end = array<i64: 1, 0, 1>,
       group = 1 : i64} -> tensor<1x4x4x2x5xf32>
  return %0 : tensor<1x4x4x2x5xf32>
}

// -----

// Pads are of the type of the input.
// CHECK-LABEL: @conv_of_bytes
// CHECK: linalg.fill ins(%{{.*}} : i8) outs(%{{.*}} : tensor<1x4x11xi8>)
// CHECK: ^bb0(%[[A:.*]]: i8, %[[B:.*]]: i8, %{{.*}}: i32):
// CHECK-NEXT: arith.extsi %[[A]] : i8 to i32
// CHECK-NEXT: arith.extsi %[[B]] : i8 to i32
func.func @conv_of_bytes(%x: tensor<1x4x9xi8>, %w: tensor<8x2x3xi8>, %c: tensor<1x8x9xi32>) -> tensor<1x8x9xi32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x4x9xi8>, tensor<8x2x3xi8>) outs(%c : tensor<1x8x9xi32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 1>, pads_end = array<i64: 1>,
       group = 2 : i64} -> tensor<1x8x9xi32>
  return %0 : tensor<1x8x9xi32>
}

// -----

// What a group has of open channels and filters is computed.
// CHECK-LABEL: @conv_of_open_channels
// CHECK: %[[C:.*]] = tensor.dim %arg0, %c1
// CHECK: affine.apply affine_map<()[s0] -> (s0 floordiv 2)>()[%[[C]]]
// CHECK: tensor.expand_shape %arg0 {{.*}} : tensor<1x?x9xf32> into tensor<1x2x?x9xf32>
// CHECK: tensor.expand_shape %arg1 {{.*}} : tensor<?x?x3xf32> into tensor<2x?x?x3xf32>
// CHECK: tensor.collapse_shape %{{.*}} : tensor<1x2x?x7xf32> into tensor<1x?x7xf32>
func.func @conv_of_open_channels(%x: tensor<1x?x9xf32>, %w: tensor<?x?x3xf32>, %c: tensor<1x?x7xf32>) -> tensor<1x?x7xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x?x9xf32>, tensor<?x?x3xf32>) outs(%c : tensor<1x?x7xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 2 : i64} -> tensor<1x?x7xf32>
  return %0 : tensor<1x?x7xf32>
}

// -----

// The lowest number lies around the input, at the end as far as windows see.
// CHECK-LABEL: @max_pool
// CHECK: %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[FILLED:.*]] = linalg.fill ins(%[[LOWEST]] : f32) outs(%{{.*}} : tensor<?x3x8x11xf32>)
// CHECK: %[[X:.*]] = tensor.insert_slice %arg0 into %[[FILLED]][0, 0, 0, 1] [%{{.*}}, 3, 8, 9]
// CHECK: linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%[[X]], %{{.*}} : tensor<?x3x8x11xf32>, tensor<2x3xf32>) outs(%arg1 : tensor<?x3x4x5xf32>)

// BUFFERS-LABEL: @max_pool
// BUFFERS: memref.copy %arg0, %{{.*}}
// BUFFERS: linalg.pooling_nchw_max {{.*}} outs(%arg1 : memref<?x3x4x5xf32>)
func.func @max_pool(%x: tensor<?x3x8x9xf32>, %c: tensor<?x3x4x5xf32>) -> tensor<?x3x4x5xf32> {
  %0 = sdx.max_pool ins(%x : tensor<?x3x8x9xf32>) outs(%c : tensor<?x3x4x5xf32>)
      {kernel_shape = array<i64: 2, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 1>} -> tensor<?x3x4x5xf32>
  return %0 : tensor<?x3x4x5xf32>
}

// -----

// No window sees the last rows: nothing is around the input.
// CHECK-LABEL: @max_pool_inside
// CHECK-NOT: tensor.insert_slice
// CHECK: linalg.pooling_nchw_max {{.*}} strides = dense<[2, 3]> {{.*}} ins(%arg0, %{{.*}} : tensor<1x3x9x9xf32>,
func.func @max_pool_inside(%x: tensor<1x3x9x9xf32>, %c: tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %0 = sdx.max_pool ins(%x : tensor<1x3x9x9xf32>) outs(%c : tensor<1x3x3x3xf32>)
      {kernel_shape = array<i64: 2, 3>, strides = array<i64: 2, 3>, pads_begin = array<i64: 0, 0>} -> tensor<1x3x3x3xf32>
  return %0 : tensor<1x3x3x3xf32>
}

// -----

// A border of zeros, as far as windows reach in an input whose size is open, the
// sums, and how many elements each window sees.
// CHECK-LABEL: @average_pool
// CHECK: %[[H:.*]] = tensor.dim %arg0
// CHECK: affine.max affine_map<()[s0, s1] -> ((s1 - 1) * 2 - s0 + 2, 0)>()[%[[H]], %{{.*}}]
// CHECK: %[[X:.*]] = tensor.insert_slice %arg0 into
// CHECK: %[[SUMS:.*]] = linalg.pooling_nchw_sum {{.*}} ins(%[[X]], %{{.*}} : tensor<?x3x?x11xf32>, tensor<2x3xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]]
// CHECK: linalg.index 2
// CHECK: linalg.index 3
// CHECK: arith.sitofp
// CHECK: arith.divf
func.func @average_pool(%x: tensor<?x3x?x9xf32>, %c: tensor<?x3x?x5xf32>) -> tensor<?x3x?x5xf32> {
  %0 = sdx.average_pool ins(%x : tensor<?x3x?x9xf32>) outs(%c : tensor<?x3x?x5xf32>)
      {kernel_shape = array<i64: 2, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 1>} -> tensor<?x3x?x5xf32>
  return %0 : tensor<?x3x?x5xf32>
}

// -----

// Weights become numbers once, then they are multiplied. Where no zero points are
// given the middle of the integers is zero.
// CHECK-LABEL: @dequant
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<40x48xf32>)
// CHECK-DAG: %[[N:.*]] = linalg.index 0
// CHECK-DAG: %[[K:.*]] = linalg.index 1
// CHECK-DAG: %[[BLOCK:.*]] = arith.divui %[[K]], %c32
// CHECK-DAG: %[[IN:.*]] = arith.remui %[[K]], %c32
// CHECK: %[[BIT:.*]] = arith.muli %[[IN]], %c4
// CHECK: %[[BYTE:.*]] = arith.divui %[[BIT]], %c8
// CHECK: %[[LOW:.*]] = arith.remui %[[BIT]], %c8
// CHECK: %[[SHIFT:.*]] = arith.index_cast %[[LOW]]
// CHECK: %[[RAW:.*]] = tensor.extract %arg1[%[[N]], %[[BLOCK]], %[[BYTE]]]
// CHECK: %[[WIDE:.*]] = arith.extui %[[RAW]] : i8 to i32
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[WIDE]], %[[SHIFT]]
// CHECK: %[[INTEGER:.*]] = arith.andi %[[SHIFTED]], %c15_i32
// CHECK: %[[NUMBER:.*]] = arith.sitofp %[[INTEGER]]
// CHECK: %[[HALF:.*]] = tensor.extract %arg2[%[[N]], %[[BLOCK]]]
// CHECK: %[[SCALE:.*]] = arith.extf %[[HALF]] : f16 to f32
// CHECK: %[[MIDDLE:.*]] = arith.constant 8.000000e+00 : f32
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[NUMBER]], %[[MIDDLE]]
// CHECK: arith.mulf %[[SCALE]], %[[DIFFERENCE]]
// CHECK: linalg.generic
// CHECK-SAME: (d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME: ins(%arg0, %[[W]] : tensor<?x48xf32>, tensor<40x48xf32>) outs(%arg3 : tensor<?x40xf32>)
// CHECK-NOT: sdx.matmul

// BUFFERS-LABEL: @dequant
// BUFFERS: %[[W:.*]] = memref.alloc() {{.*}} : memref<40x48xf32>
// BUFFERS: linalg.generic {{.*}} outs(%[[W]] :
// BUFFERS: linalg.generic {{.*}} ins(%arg0, %[[W]] : {{.*}}) outs(%arg3 :
func.func @dequant(%a: tensor<?x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf16>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf16>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

// CHECK-LABEL: @dequant_with_float_zero_points
// CHECK: %[[N:.*]] = linalg.index 0
// CHECK: %[[BLOCK:.*]] = arith.divui
// CHECK: arith.andi %{{.*}}, %c255_i32
// CHECK: %[[NUMBER:.*]] = arith.sitofp
// CHECK: %[[DOUBLE:.*]] = tensor.extract %arg2[%[[N]], %[[BLOCK]]]
// CHECK: %[[SCALE:.*]] = arith.truncf %[[DOUBLE]] : f64 to f32
// CHECK: %[[ZERO:.*]] = tensor.extract %arg3[%[[N]], %[[BLOCK]]] : tensor<40x3xf32>
// CHECK: %[[DIFFERENCE:.*]] = arith.subf %[[NUMBER]], %[[ZERO]]
// CHECK: arith.mulf %[[SCALE]], %[[DIFFERENCE]]
func.func @dequant_with_float_zero_points(%a: tensor<?x40xf32>, %w: tensor<40x3x16xi8>, %s: tensor<40x3xf64>, %z: tensor<40x3xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<?x40xf32>, tensor<40x3x16xi8>, tensor<40x3xf64>, tensor<40x3xf32>) outs(%c : tensor<?x40xf32>)
      {bits = 8 : i64, block = 16 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

// Zero points lie in bytes like weights: those of four blocks of 2 bits in one.
// CHECK-LABEL: @dequant_with_packed_zero_points
// CHECK: %[[N:.*]] = linalg.index 0
// CHECK: %[[BLOCK:.*]] = arith.divui %{{.*}}, %c16
// CHECK: arith.andi %{{.*}}, %c3_i32
// CHECK: %[[NUMBER:.*]] = arith.sitofp
// CHECK: tensor.extract %arg2[%[[N]], %[[BLOCK]]]
// CHECK: %[[BIT:.*]] = arith.muli %[[BLOCK]], %c2
// CHECK: %[[BYTE:.*]] = arith.divui %[[BIT]], %c8
// CHECK: %[[RAW:.*]] = tensor.extract %arg3[%[[N]], %[[BYTE]]] : tensor<40x2xi8>
// CHECK: arith.andi %{{.*}}, %c3_i32
// CHECK: %[[ZERO:.*]] = arith.sitofp
// CHECK: arith.subf %[[NUMBER]], %[[ZERO]]
func.func @dequant_with_packed_zero_points(%a: tensor<?x72xf32>, %w: tensor<40x5x4xi8>, %s: tensor<40x5xf32>, %z: tensor<40x2xi8>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<?x72xf32>, tensor<40x5x4xi8>, tensor<40x5xf32>, tensor<40x2xi8>) outs(%c : tensor<?x40xf32>)
      {bits = 2 : i64, block = 16 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (m, h, e)>

// Scores, what the body makes of them, their largest, exponentials, the sums of
// these, quotients, sums of values, and the result in its order.
// CHECK-LABEL: @attention
// CHECK-COUNT-8: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @attention(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x4xf32>, %init: tensor<?x2x4xf32>) -> tensor<?x2x4xf32> {
  %half = arith.constant 0.5 : f32
  %0 = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%q, %k, %v : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x4xf32>) outs(%init : tensor<?x2x4xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    %1 = arith.mulf %score, %half : f32
    sdx.yield %1 : f32
  } -> tensor<?x2x4xf32>
  return %0 : tensor<?x2x4xf32>
}

// Bytes of keys and values count as the numbers that they are.
// CHECK-LABEL: @attention_of_bytes
// CHECK: arith.sitofp {{.*}} : i8 to f32
// CHECK: arith.sitofp {{.*}} : i8 to f32
// CHECK: return
func.func @attention_of_bytes(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xi8>, %v: tensor<2x?x4xi8>, %init: tensor<?x2x4xf32>) -> tensor<?x2x4xf32> {
  %0 = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%q, %k, %v : tensor<2x?x8xf32>, tensor<2x?x8xi8>, tensor<2x?x4xi8>) outs(%init : tensor<?x2x4xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<?x2x4xf32>
  return %0 : tensor<?x2x4xf32>
}
