// RUN: onnx-opt %s -split-input-file -pass-pipeline="builtin.module(func.func(cpu-split-depth))" | FileCheck %s

// Slices of 3 x 32 channels of images whose pads along the depth are in place; what is added to sums, and a maximum, are
// computed slice by slice.

// CHECK-LABEL: func.func @volume
// CHECK-SAME:    (%[[X:.*]]: tensor<?x32x7x14x14xf32>, %[[W:.*]]: tensor<32x32x3x3x3xf32>, %[[BIAS:.*]]: tensor<32xf32>, %[[OTHER:.*]]: tensor<?x32x4x14x14xf32>)
// CHECK:         %[[PADDED:.*]] = tensor.empty(%{{.*}}) : tensor<?x9x32x14x14xf32>
// CHECK:         %[[FRONT:.*]] = tensor.extract_slice %[[PADDED]][0, 0, 0, 0, 0] [%{{.*}}, 1, 32, 14, 14] [1, 1, 1, 1, 1]
// CHECK:         linalg.fill {{.*}} outs(%[[FRONT]]
// CHECK:         tensor.extract_slice %{{.*}}[0, 8, 0, 0, 0] [%{{.*}}, 1, 32, 14, 14] [1, 1, 1, 1, 1]
// CHECK:         linalg.transpose ins(%[[X]] : {{.*}} permutation = [0, 2, 1, 3, 4]
// CHECK:         %[[IMAGES:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 1, 0, 0, 0] [%{{.*}}, 7, 32, 14, 14] [1, 1, 1, 1, 1]
// CHECK:         %[[TURNED:.*]] = linalg.transpose ins(%[[W]] : {{.*}} permutation = [0, 2, 1, 3, 4]
// CHECK:         %[[FILTERS:.*]] = tensor.collapse_shape %[[TURNED]] {{\[}}[0], [1, 2], [3], [4]] : tensor<32x3x32x3x3xf32> into tensor<32x96x3x3xf32>
// CHECK:         %[[Y:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} iter_args(%[[TO:.*]] = %{{.*}}) -> (tensor<?x32x4x14x14xf32>)
// CHECK:           %[[FIRST:.*]] = arith.muli %[[I]], %c2
// CHECK:           %[[WINDOW:.*]] = tensor.extract_slice %[[IMAGES]][0, %[[FIRST]], 0, 0, 0] [%{{.*}}, 3, 32, 14, 14] [1, 1, 1, 1, 1]
// CHECK:           %[[PLANE:.*]] = tensor.collapse_shape %[[WINDOW]] {{\[}}[0], [1, 2], [3], [4]]
// CHECK:           %[[SUM:.*]] = sdx.conv ins(%[[PLANE]], %[[FILTERS]] : tensor<?x96x14x14xf32>, tensor<32x96x3x3xf32>)
// CHECK-SAME:        pads_begin = array<i64: 1, 1>
// CHECK-SAME:        strides = array<i64: 1, 1>
// CHECK:           %[[SLICE:.*]] = tensor.extract_slice %[[OTHER]][0, 0, %[[I]], 0, 0] [%{{.*}}, 32, 1, 14, 14] [1, 1, 1, 1, 1] : tensor<?x32x4x14x14xf32> to tensor<?x32x14x14xf32>
// CHECK:           %[[ADDED:.*]] = linalg.generic {{.*}} ins(%[[SUM]], %[[BIAS]], %[[SLICE]] : tensor<?x32x14x14xf32>, tensor<32xf32>, tensor<?x32x14x14xf32>)
// CHECK:           %[[BOUNDED:.*]] = linalg.generic {{.*}} ins(%[[ADDED]]
// CHECK:             arith.maximumf
// CHECK:           %[[NEXT:.*]] = tensor.insert_slice %[[BOUNDED]] into %[[TO]][0, 0, %[[I]], 0, 0]
// CHECK:           scf.yield %[[NEXT]]
// CHECK-NOT:     sdx.conv
// CHECK:         return %[[Y]]
#same = affine_map<(n, c, d, h, w) -> (n, c, d, h, w)>
func.func @volume(%x: tensor<?x32x7x14x14xf32>, %w: tensor<32x32x3x3x3xf32>, %bias: tensor<32xf32>, %other: tensor<?x32x4x14x14xf32>) -> tensor<?x32x4x14x14xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32x7x14x14xf32>
  %e = tensor.empty(%n) : tensor<?x32x4x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32x4x14x14xf32>) -> tensor<?x32x4x14x14xf32>
  %y = sdx.conv ins(%x, %w : tensor<?x32x7x14x14xf32>, tensor<32x32x3x3x3xf32>) outs(%f : tensor<?x32x4x14x14xf32>)
      {strides = array<i64: 2, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 1, 1, 1>, pads_end = array<i64: 1, 1, 1>, group = 1 : i64} -> tensor<?x32x4x14x14xf32>
  %s = linalg.generic {indexing_maps = [#same, affine_map<(n, c, d, h, w) -> (c)>, #same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %bias, %other : tensor<?x32x4x14x14xf32>, tensor<32xf32>, tensor<?x32x4x14x14xf32>) outs(%e : tensor<?x32x4x14x14xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<?x32x4x14x14xf32>
  %r = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<?x32x4x14x14xf32>) outs(%e : tensor<?x32x4x14x14xf32>) {
  ^bb0(%a: f32, %out: f32):
    %0 = arith.maximumf %a, %zero : f32
    linalg.yield %0 : f32
  } -> tensor<?x32x4x14x14xf32>
  return %r : tensor<?x32x4x14x14xf32>
}

// -----

// What Winograd's algorithm does not compute stays, and what must not round.

// CHECK-LABEL: func.func @others
// CHECK-NOT:     scf.for
// CHECK-COUNT-3: sdx.conv
func.func @others(%x: tensor<1x32x7x14x14xf32>, %w: tensor<32x32x3x3x3xf32>, %point: tensor<32x32x3x1x1xf32>, %small: tensor<1x32x7x7x7xf32>, %init: tensor<1x32x7x14x14xf32>)
    -> (tensor<1x32x7x7x7xf32>, tensor<1x32x7x14x14xf32>, tensor<1x32x7x14x14xf32>) {
  %0 = sdx.conv ins(%x, %w : tensor<1x32x7x14x14xf32>, tensor<32x32x3x3x3xf32>) outs(%small : tensor<1x32x7x7x7xf32>)
      {strides = array<i64: 1, 2, 2>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 1, 1, 1>, pads_end = array<i64: 1, 1, 1>, group = 1 : i64} -> tensor<1x32x7x7x7xf32>
  %1 = sdx.conv ins(%x, %point : tensor<1x32x7x14x14xf32>, tensor<32x32x3x1x1xf32>) outs(%init : tensor<1x32x7x14x14xf32>)
      {strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 1, 0, 0>, pads_end = array<i64: 1, 0, 0>, group = 1 : i64} -> tensor<1x32x7x14x14xf32>
  %2 = sdx.conv ins(%x, %w : tensor<1x32x7x14x14xf32>, tensor<32x32x3x3x3xf32>) outs(%init : tensor<1x32x7x14x14xf32>)
      {strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 1, 1, 1>, pads_end = array<i64: 1, 1, 1>, group = 1 : i64, exact} -> tensor<1x32x7x14x14xf32>
  return %0, %1, %2 : tensor<1x32x7x7x7xf32>, tensor<1x32x7x14x14xf32>, tensor<1x32x7x14x14xf32>
}
