// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization | FileCheck %s

// One convolution for all four phases, whose bytes become blocks.
// CHECK-LABEL: func @phases
// CHECK-DAG: %[[S:.*]] = onnx.Constant() {value = dense<[5.000000e-01, 2.500000e-01, 5.000000e-01, 2.500000e-01, 5.000000e-01, 2.500000e-01, 5.000000e-01, 2.500000e-01]> : tensor<8xf32>}
// CHECK: onnx.Transpose({{.*}}) {perm = array<i64: 3, 5, 1, 0, 2, 4>} : (tensor<3x2x1x2x1x2xi8>) -> tensor<2x2x2x3x1x1xi8>
// CHECK: %[[W:.*]] = onnx.DequantizeLinear(%{{.*}}, %[[S]]) {axis = 0} : (tensor<8x3x1x1xi8>, tensor<8xf32>) -> tensor<8x3x1x1xf32>
// CHECK: %[[Y:.*]] = onnx.Conv(%{{.*}}, %[[W]])
// CHECK-SAME: -> tensor<1x8x?x5xf32>
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[Y]]
// CHECK: onnx.DepthToSpace(%[[Q]]) {blocksize = 2} : (tensor<1x8x?x5xui8>) -> tensor<1x2x?x10xui8>
func.func @phases(%x: tensor<1x3x?x5xui8>) -> tensor<1x2x?x10xui8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %w = onnx.Constant() {value = dense<3> : tensor<3x2x2x2xi8>} : () -> tensor<3x2x2x2xi8>
  %ws = onnx.Constant() {value = dense<[0.5, 0.25]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = onnx.DequantizeLinear(%x, %s, %z) : (tensor<1x3x?x5xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x3x?x5xf32>
  %1 = onnx.DequantizeLinear(%w, %ws) {axis = 1} : (tensor<3x2x2x2xi8>, tensor<2xf32>) -> tensor<3x2x2x2xf32>
  %2 = onnx.ConvTranspose(%0, %1) {strides = array<i64: 2, 2>} : (tensor<1x3x?x5xf32>, tensor<3x2x2x2xf32>) -> tensor<1x2x?x10xf32>
  %3 = onnx.QuantizeLinear(%2, %s, %z) : (tensor<1x2x?x10xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x2x?x10xui8>
  return %3 : tensor<1x2x?x10xui8>
}

// -----

// Phases of two taps each, of which pads are cut off.
// CHECK-LABEL: func @pads
// CHECK: onnx.Slice(%{{.*}}) : (tensor<3x1x2x2x2x2xi8>
// CHECK: onnx.Conv({{.*}}pads = array<i64: 1, 1, 1, 1>
// CHECK-SAME: -> tensor<1x4x6x6xf32>
// CHECK: onnx.DepthToSpace
// CHECK: onnx.Slice(%{{.*}}) : (tensor<1x1x12x12xf32>, {{.*}}) -> tensor<1x1x10x10xf32>
func.func @pads(%x: tensor<1x3x5x5xi8>) -> tensor<1x1x10x10xf32> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %w = onnx.Constant() {value = dense<3> : tensor<3x1x4x4xi8>} : () -> tensor<3x1x4x4xi8>
  %0 = onnx.DequantizeLinear(%x, %s) : (tensor<1x3x5x5xi8>, tensor<f32>) -> tensor<1x3x5x5xf32>
  %1 = onnx.DequantizeLinear(%w, %s) : (tensor<3x1x4x4xi8>, tensor<f32>) -> tensor<3x1x4x4xf32>
  %2 = onnx.ConvTranspose(%0, %1) {pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x3x5x5xf32>, tensor<3x1x4x4xf32>) -> tensor<1x1x10x10xf32>
  return %2 : tensor<1x1x10x10xf32>
}

// -----

// Phases with different numbers of taps stay as they are.
// CHECK-LABEL: func @uneven
// CHECK: onnx.ConvTranspose
func.func @uneven(%x: tensor<1x3x5x5xi8>) -> tensor<1x1x11x11xf32> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %w = onnx.Constant() {value = dense<3> : tensor<3x1x3x3xi8>} : () -> tensor<3x1x3x3xi8>
  %0 = onnx.DequantizeLinear(%x, %s) : (tensor<1x3x5x5xi8>, tensor<f32>) -> tensor<1x3x5x5xf32>
  %1 = onnx.DequantizeLinear(%w, %s) : (tensor<3x1x3x3xi8>, tensor<f32>) -> tensor<3x1x3x3xf32>
  %2 = onnx.ConvTranspose(%0, %1) {strides = array<i64: 2, 2>} : (tensor<1x3x5x5xf32>, tensor<3x1x3x3xf32>) -> tensor<1x1x11x11xf32>
  return %2 : tensor<1x1x11x11xf32>
}
