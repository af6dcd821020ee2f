// RUN: onnx-opt %s -split-input-file -nv-assign-layouts -canonicalize | FileCheck %s

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// A region begins and ends with a transpose; what is elementwise goes over
// channels last, pools and depthwise convolutions take them so.
// CHECK: #[[ID:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-LABEL: func @region
// CHECK-SAME: %[[X:.*]]: tensor<?x16x9x9xf16>, %[[W:.*]]: tensor<32x16x3x3xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] {{.*}} permutation = [0, 2, 3, 1]
// CHECK: %[[V:.*]] = linalg.transpose ins(%[[W]] {{.*}} permutation = [0, 2, 3, 1]
// CHECK: %[[Y:.*]] = nv.conv ins(%[[T]], %[[V]] : tensor<?x9x9x16xf16>, tensor<32x3x3x16xf16>) outs(%{{.*}} : tensor<?x9x9x32xf32>) {dilations = array<i64: 1, 1>, group = 1 : i64, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, strides = array<i64: 1, 1>}
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[C]], #[[ID]]], {{.*}}} ins(%[[Y]], %{{.*}} : tensor<?x9x9x32xf32>, tensor<32xf32>)
// CHECK: %[[P:.*]] = nv.max_pool ins(%[[R]] : tensor<?x9x9x32xf32>)
// CHECK: %[[D:.*]] = nv.conv ins(%[[P]], %{{.*}} : tensor<?x9x9x32xf32>, tensor<32x3x3x1xf32>) {{.*}} group = 32
// CHECK: %[[E:.*]] = linalg.transpose ins(%[[D]] {{.*}} permutation = [0, 3, 1, 2]
// CHECK: return %[[E]]
func.func @region(%x: tensor<?x16x9x9xf16>, %w: tensor<32x16x3x3xf16>, %b: tensor<32xf32>, %v: tensor<32x1x3x3xf32>,
                  %e: tensor<?x32x9x9xf32>, %low: f32) -> tensor<?x32x9x9xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16x9x9xf16>
  %empty = tensor.empty(%n) : tensor<?x32x9x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x32x9x9xf32>) -> tensor<?x32x9x9xf32>
  %l = linalg.fill ins(%low : f32) outs(%empty : tensor<?x32x9x9xf32>) -> tensor<?x32x9x9xf32>
  %y = sdx.conv ins(%x, %w : tensor<?x16x9x9xf16>, tensor<32x16x3x3xf16>) outs(%z : tensor<?x32x9x9xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64} -> tensor<?x32x9x9xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %b : tensor<?x32x9x9xf32>, tensor<32xf32>) outs(%empty : tensor<?x32x9x9xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %0 = arith.addf %in, %bias : f32
    linalg.yield %0 : f32
  } -> tensor<?x32x9x9xf32>
  %p = sdx.max_pool ins(%r : tensor<?x32x9x9xf32>) outs(%l : tensor<?x32x9x9xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>} -> tensor<?x32x9x9xf32>
  %d = sdx.conv ins(%p, %v : tensor<?x32x9x9xf32>, tensor<32x1x3x3xf32>) outs(%z : tensor<?x32x9x9xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 32 : i64} -> tensor<?x32x9x9xf32>
  return %d : tensor<?x32x9x9xf32>
}

// -----

// Channels are filled up to whole pieces.
// CHECK-LABEL: func @three_channels
// CHECK: nv.conv ins(%{{.*}}, %{{.*}} : tensor<1x8x8x8xbf16>, tensor<8x3x3x8xbf16>)
func.func @three_channels(%x: tensor<1x3x8x8xbf16>, %w: tensor<8x3x3x3xbf16>, %z: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32> {
  %y = sdx.conv ins(%x, %w : tensor<1x3x8x8xbf16>, tensor<8x3x3x3xbf16>) outs(%z : tensor<1x8x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x8x6x6xf32>
  return %y : tensor<1x8x6x6xf32>
}

// -----

// f32 stays as it is, unless it may be rounded; so do sums over large images.
// CHECK-LABEL: func @exact
// CHECK-NOT: nv.conv
// CHECK: return
func.func @exact(%x: tensor<1x16x8x8xf32>, %w: tensor<8x16x3x3xf32>, %z: tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32> {
  %y = sdx.conv ins(%x, %w : tensor<1x16x8x8xf32>, tensor<8x16x3x3xf32>) outs(%z : tensor<1x8x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x8x6x6xf32>
  return %y : tensor<1x8x6x6xf32>
}

// -----

// CHECK-LABEL: func @sum_of_images
// CHECK: nv.conv {{.*}} nv.tf32
// CHECK: %[[T:.*]] = linalg.transpose {{.*}} permutation = [0, 3, 1, 2]
// CHECK: linalg.generic {{.*}} ins(%[[T]] : tensor<1x8x30x30xf32>)
func.func @sum_of_images(%x: tensor<1x16x32x32xf32>, %w: tensor<8x16x3x3xf32>, %z: tensor<1x8x30x30xf32>, %e: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = sdx.conv ins(%x, %w : tensor<1x16x32x32xf32>, tensor<8x16x3x3xf32>) outs(%z : tensor<1x8x30x30xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, nv.tf32} -> tensor<1x8x30x30xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%y : tensor<1x8x30x30xf32>) outs(%e : tensor<1x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// -----

// A region ends at the tokens of an image, which lie with channels last
// already, without a transpose.
// CHECK-LABEL: func @tokens
// CHECK: %[[Y:.*]] = nv.conv {{.*}} -> tensor<2x4x5x32xf32>
// CHECK-NEXT: %[[T:.*]] = tensor.collapse_shape %[[Y]] {{\[\[}}0], [1, 2], [3]] : tensor<2x4x5x32xf32> into tensor<2x20x32xf32>
// CHECK-NEXT: return %[[T]]
func.func @tokens(%x: tensor<2x8x8x10xf16>, %w: tensor<32x8x2x2xf16>, %z: tensor<2x32x4x5xf32>) -> tensor<2x20x32xf32> {
  %y = sdx.conv ins(%x, %w : tensor<2x8x8x10xf16>, tensor<32x8x2x2xf16>) outs(%z : tensor<2x32x4x5xf32>)
      {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<2x32x4x5xf32>
  %flat = tensor.collapse_shape %y [[0], [1], [2, 3]] : tensor<2x32x4x5xf32> into tensor<2x32x20xf32>
  %empty = tensor.empty() : tensor<2x20x32xf32>
  %t = linalg.transpose ins(%flat : tensor<2x32x20xf32>) outs(%empty : tensor<2x20x32xf32>) permutation = [0, 2, 1]
  return %t : tensor<2x20x32xf32>
}
