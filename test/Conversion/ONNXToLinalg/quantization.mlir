// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// CHECK: #[[$CHANNEL:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @per_axis
func.func @per_axis(%x: tensor<4x8xf32>, %s: tensor<8xf32>, %z: tensor<8xui8>) -> tensor<4x8xui8> {
  // CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$CHANNEL]], #[[$CHANNEL]], #{{.*}}]
  // CHECK: arith.divf
  // CHECK: math.roundeven
  // CHECK: arith.fptosi
  %y = onnx.QuantizeLinear(%x, %s, %z) {axis = 1} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xui8>) -> tensor<4x8xui8>
  return %y : tensor<4x8xui8>
}

// -----

// Blocks are a dimension of their own.
// CHECK-LABEL: func.func @blocked
func.func @blocked(%x: tensor<4x8xi8>, %s: tensor<4x2xf32>) -> tensor<4x8xf32> {
  // CHECK: tensor.expand_shape %{{.*}} {{\[}}[0], [1, 2]] output_shape [4, 2, 4]
  // CHECK: arith.sitofp
  // CHECK: arith.mulf
  %y = onnx.DequantizeLinear(%x, %s) {axis = 1, block_size = 4} : (tensor<4x8xi8>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Four-bit integers are stored in the low bits of a byte.
// CHECK-LABEL: func.func @four_bits(
// CHECK-SAME:    tensor<8xi8> {onnx.type = tensor<8xi4>}
func.func @four_bits(%x: tensor<8xi4>) -> tensor<8xf32> {
  // CHECK: arith.shli
  // CHECK: arith.shrsi
  // CHECK: arith.sitofp
  %y = onnx.Cast(%x) {to = 1} : (tensor<8xi4>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A byte is a place in a table of 256 elements, whatever its sign: no check.
// CHECK-LABEL: func.func @table_of_bytes(
// CHECK-SAME:    %[[T:.*]]: tensor<256xi8>
func.func @table_of_bytes(%t: tensor<256xui8>, %x: tensor<4x?xi8>) -> tensor<4x?xui8> {
  // CHECK-NOT: sdx.check
  // CHECK: linalg.generic
  // CHECK: %[[I:.*]] = arith.index_castui %{{.*}} : i8 to index
  // CHECK: tensor.extract %[[T]][%[[I]]]
  %i = onnx.Cast(%x) {to = 6} : (tensor<4x?xi8>) -> tensor<4x?xi32>
  %y = onnx.Gather(%t, %i) : (tensor<256xui8>, tensor<4x?xi32>) -> tensor<4x?xui8>
  return %y : tensor<4x?xui8>
}

// -----

// In a table of another size a negative number is another place.
// CHECK-LABEL: func.func @other_table(
// CHECK: sdx.check
func.func @other_table(%t: tensor<128xui8>, %x: tensor<4xi8>) -> tensor<4xui8> {
  %i = onnx.Cast(%x) {to = 6} : (tensor<4xi8>) -> tensor<4xi32>
  %y = onnx.Gather(%t, %i) : (tensor<128xui8>, tensor<4xi32>) -> tensor<4xui8>
  return %y : tensor<4xui8>
}
