// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func @conv
// CHECK: %[[Y:.*]] = sdx.conv ins(%arg0, %arg1 : tensor<?x8x?x?xf32>, tensor<12x4x3x3xf32>)
// CHECK-SAME: group = 2
// CHECK-SAME: pads_begin = array<i64: 1, 0>, pads_end = array<i64: 1, 2>
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %arg2
// CHECK: arith.addf
func.func @conv(%x: tensor<?x8x?x?xf32>, %w: tensor<12x4x3x3xf32>, %b: tensor<12xf32>) -> tensor<?x12x?x?xf32> {
  %0 = onnx.Conv(%x, %w, %b) {group = 2, pads = array<i64: 1, 0, 1, 2>, strides = array<i64: 2, 1>} : (tensor<?x8x?x?xf32>, tensor<12x4x3x3xf32>, tensor<12xf32>) -> tensor<?x12x?x?xf32>
  return %0 : tensor<?x12x?x?xf32>
}

// -----

// Taps that see pads wherever the window is are left out.
// CHECK-LABEL: func @taps_in_pads
// CHECK: %[[W:.*]] = tensor.extract_slice %arg1[0, 0, 1, 0] [6, 4, 1, 3] [1, 1, 1, 1]
// CHECK: sdx.conv ins(%arg0, %[[W]] : tensor<1x4x9x9xf32>, tensor<6x4x1x3xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 8>, pads_end = array<i64: 0, 8>
func.func @taps_in_pads(%x: tensor<1x4x9x9xf32>, %w: tensor<6x4x3x3xf32>) -> tensor<1x6x9x9xf32> {
  %0 = onnx.Conv(%x, %w) {pads = array<i64: 9, 8, 9, 8>, dilations = array<i64: 9, 8>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x9x9xf32>
  return %0 : tensor<1x6x9x9xf32>
}

// -----

// How much "same" pads depends on a size that only the run knows.
// CHECK-LABEL: func @same_dynamic
// CHECK: %[[P:.*]] = tensor.pad
// CHECK: sdx.conv ins(%[[P]],
// CHECK-SAME: pads_begin = array<i64: 0>
func.func @same_dynamic(%x: tensor<1x2x?xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x?xf32> {
  %0 = onnx.Conv(%x, %w) {auto_pad = "SAME_LOWER", strides = array<i64: 2>} : (tensor<1x2x?xf32>, tensor<3x2x3xf32>) -> tensor<1x3x?xf32>
  return %0 : tensor<1x3x?xf32>
}

// -----

// CHECK-LABEL: func @double
// CHECK: sdx.conv ins(%arg0, %arg1 : tensor<1x2x5xf64>, tensor<3x2x3xf64>)
func.func @double(%x: tensor<1x2x5xf64>, %w: tensor<3x2x3xf64>) -> tensor<1x3x5xf64> {
  %0 = onnx.Conv(%x, %w) {pads = array<i64: 1, 1>} : (tensor<1x2x5xf64>, tensor<3x2x3xf64>) -> tensor<1x3x5xf64>
  return %0 : tensor<1x3x5xf64>
}

// -----

// The input's zero point times the sums of the weights is taken off each result.
// CHECK-LABEL: func @integer
// CHECK: sdx.conv ins(%arg0, %arg1 : tensor<1x1x3x3xi8>, tensor<1x1x2x2xi8>)
// CHECK-SAME: input_unsigned
// CHECK-SAME: weights_unsigned
// CHECK: iterator_types = ["parallel", "reduction", "reduction", "reduction"]{{.*}} ins(%arg1
// CHECK: arith.addi
// CHECK: arith.muli
// CHECK: arith.subi
func.func @integer(%x: tensor<1x1x3x3xui8>, %w: tensor<1x1x2x2xui8>, %z: tensor<ui8>) -> tensor<1x1x2x2xi32> {
  %0 = onnx.ConvInteger(%x, %w, %z) : (tensor<1x1x3x3xui8>, tensor<1x1x2x2xui8>, tensor<ui8>) -> tensor<1x1x2x2xi32>
  return %0 : tensor<1x1x2x2xi32>
}

// -----

// The 16 phases of a stride of four are filters of a convolution without zeros
// in its input, of two of the eight taps in each direction.
// CHECK-LABEL: func @transposed
// CHECK: %[[P:.*]] = sdx.conv ins(%arg0, %{{.*}} : tensor<1x2x5x5xf32>, tensor<48x2x2x2xf32>)
// CHECK-SAME: pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, strides = array<i64: 1, 1>
// CHECK-SAME: -> tensor<1x48x6x6xf32>
// CHECK: tensor.expand_shape %[[P]] {{.*}} into tensor<1x3x4x4x6x6xf32>
// CHECK: linalg.transpose {{.*}} permutation = [0, 1, 4, 2, 5, 3]
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 2, 2] [1, 3, 20, 20] [1, 1, 1, 1]
func.func @transposed(%x: tensor<1x2x5x5xf32>, %w: tensor<2x3x8x8xf32>) -> tensor<1x3x20x20xf32> {
  %0 = onnx.ConvTranspose(%x, %w) {strides = array<i64: 4, 4>, pads = array<i64: 2, 2, 2, 2>} : (tensor<1x2x5x5xf32>, tensor<2x3x8x8xf32>) -> tensor<1x3x20x20xf32>
  return %0 : tensor<1x3x20x20xf32>
}

// -----

// Of three taps some phases have two and some one: four convolutions, whose results are interleaved.
// CHECK-LABEL: func @transposed_uneven
// CHECK: %[[A:.*]] = sdx.conv ins(%arg0, %{{.*}} tensor<3x2x1x1xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, strides = array<i64: 1, 1>
// CHECK: sdx.conv ins(%arg0, %{{.*}} tensor<3x2x1x2xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 1>
// CHECK: sdx.conv ins(%arg0, %{{.*}} tensor<3x2x2x1xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 0>, pads_end = array<i64: 1, 0>
// CHECK: sdx.conv ins(%arg0, %{{.*}} tensor<3x2x2x2xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 0>, pads_end = array<i64: 1, 1>
// CHECK: %[[ALL:.*]] = tensor.concat dim(0) {{.*}} -> tensor<4x1x3x5x5xf32>
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[ALL]] {{.*}} into tensor<2x2x1x3x5x5xf32>
// CHECK: linalg.transpose ins(%[[SPLIT]] {{.*}} permutation = [2, 3, 4, 0, 5, 1]
// CHECK: tensor.collapse_shape {{.*}} into tensor<1x3x10x10xf32>
func.func @transposed_uneven(%x: tensor<1x2x5x5xf32>, %w: tensor<2x3x3x3xf32>) -> tensor<1x3x10x10xf32> {
  %0 = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 1, 1>} : (tensor<1x2x5x5xf32>, tensor<2x3x3x3xf32>) -> tensor<1x3x10x10xf32>
  return %0 : tensor<1x3x10x10xf32>
}

// -----

// With dilations there are zeros in the input.
// CHECK-LABEL: func @transposed_dilated
// CHECK: sdx.conv
// CHECK-SAME: tensor<1x2x9x9xf32>
func.func @transposed_dilated(%x: tensor<1x2x5x5xf32>, %w: tensor<2x3x2x2xf32>) -> tensor<1x3x11x11xf32> {
  %0 = onnx.ConvTranspose(%x, %w) {strides = array<i64: 2, 2>, dilations = array<i64: 2, 2>} : (tensor<1x2x5x5xf32>, tensor<2x3x2x2xf32>) -> tensor<1x3x11x11xf32>
  return %0 : tensor<1x3x11x11xf32>
}
