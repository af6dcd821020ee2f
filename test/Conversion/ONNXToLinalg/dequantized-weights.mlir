// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Weights of 4 bits with blocks along k become bytes of a column's blocks, and unsigned.

// CHECK-LABEL: func @blocks
// CHECK-DAG: %[[Q:.*]] = arith.constant dense<[1, 14, 3, 12, 5, 10, 7, 8]> : tensor<8xi8>
// CHECK-DAG: %[[S:.*]] = arith.constant dense<{{.*}}> : tensor<2x2xf32>
// CHECK: %[[SCALES:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<2x2xf32>)
// CHECK: %[[BYTES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x1xi8>)
// CHECK: tensor.extract %[[Q]]
// CHECK: arith.xori
// CHECK: sdx.dequant_matmul ins(%arg0, %[[BYTES]], %[[SCALES]] : tensor<?x4xf32>, tensor<2x2x1xi8>, tensor<2x2xf32>) {{.*}} {bits = 4 : i64, block = 2 : i64}
func.func @blocks(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<[[1, -2], [3, -4], [5, -6], [7, -8]]> : tensor<4x2xi4>} : () -> tensor<4x2xi4>
  %s = onnx.Constant() {value = dense<[[0.5, 0.25], [1.5, 2.5]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 0, block_size = 2} : (tensor<4x2xi4>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Numbers that lie in a file as products read them, several in a byte, are read from there.

// CHECK-LABEL: func @in_place
// CHECK: %[[W:.*]] = arith.constant {sdx.source = {{.*}}} dense_resource<w> : tensor<2x2x2xi8>
// CHECK-NOT: arith.xori
// CHECK: sdx.dequant_matmul ins(%{{.*}}, %[[W]], %{{.*}} : tensor<?x8xf32>, tensor<2x2x2xi8>, tensor<2x2xf32>)
// CHECK-SAME: {bits = 4 : i64, block = 4 : i64, element = f4E2M1FN}
func.func @in_place(%x: tensor<?x8xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense_resource<w> : tensor<2x8xf4E2M1FN>, sdx.source = {path = "m.onnx", offset = 64 : i64, length = 8 : i64}} : () -> tensor<2x8xf4E2M1FN>
  %s = onnx.Constant() {value = dense<0.5> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1, block_size = 4} : (tensor<2x8xf4E2M1FN>, tensor<2x2xf32>) -> tensor<2x8xf32>
  %y = onnx.Gemm(%x, %w) {transB = 1} : (tensor<?x8xf32>, tensor<2x8xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// A block with a NaN of 8 bits has NaN as its scale.

// CHECK-LABEL: func @floats_of_8_bits
// CHECK: %[[FLAGS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: arith.cmpi eq
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[FLAGS]] : tensor<2x1xf32>, tensor<2x1xi8>)
// CHECK: sdx.dequant_matmul {{.*}} {bits = 8 : i64, block = 4 : i64, element = f8E4M3FN}
func.func @floats_of_8_bits(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1.0> : tensor<4x2xf8E4M3FN>} : () -> tensor<4x2xf8E4M3FN>
  %s = onnx.Constant() {value = dense<[0.5, 1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1} : (tensor<4x2xf8E4M3FN>, tensor<2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Scales that are floats of 8 bits times one for all, which multiplies the product, and the order of the dimensions
// turned twice.

// CHECK-LABEL: func @scales_of_scales
// CHECK: %[[G:.*]] = arith.constant dense<2.500000e-01> : tensor<f32>
// CHECK: %[[P:.*]] = sdx.dequant_matmul ins({{.*}} tensor<2x2xbf16>){{.*}} {bits = 4 : i64, block = 2 : i64, element = f4E2M1FN}
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[G]]
func.func @scales_of_scales(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1.5> : tensor<4x2xf4E2M1FN>} : () -> tensor<4x2xf4E2M1FN>
  %t = onnx.Transpose(%q) {perm = array<i64: 1, 0>} : (tensor<4x2xf4E2M1FN>) -> tensor<2x4xf4E2M1FN>
  %b = onnx.Constant() {value = dense<0.5> : tensor<2x2xf8E4M3FN>} : () -> tensor<2x2xf8E4M3FN>
  %g = onnx.Constant() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %s = onnx.DequantizeLinear(%b, %g) : (tensor<2x2xf8E4M3FN>, tensor<f32>) -> tensor<2x2xf32>
  %w = onnx.DequantizeLinear(%t, %s) {axis = 1, block_size = 2} : (tensor<2x4xf4E2M1FN>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %u = onnx.Transpose(%w) {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %u) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Blocks along n, or a scale for each k, are nobody's.

// CHECK-LABEL: func @along_n
// CHECK-NOT: sdx.dequant_matmul
// CHECK: linalg.matmul
func.func @along_n(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi4>} : () -> tensor<4x2xi4>
  %s = onnx.Constant() {value = dense<0.5> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1, block_size = 2} : (tensor<4x2xi4>, tensor<4x1xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Rows that are bytes themselves multiply bytes as such.

// CHECK-LABEL: func @bytes_by_bytes
// CHECK-NOT: sdx.dequant_matmul
func.func @bytes_by_bytes(%a: tensor<?x4xi8>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xi8>} : () -> tensor<4x2xi8>
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %x = onnx.DequantizeLinear(%a, %s) : (tensor<?x4xi8>, tensor<f32>) -> tensor<?x4xf32>
  %w = onnx.DequantizeLinear(%q, %s) : (tensor<4x2xi8>, tensor<f32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// -----

// Zero points are integers in bytes, too; unsigned ones without are zero.

// CHECK-LABEL: func @zero_points
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2xi8>)
// CHECK: sdx.dequant_matmul ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x6xf32>, tensor<2x3x1xi8>, tensor<2x3xf32>, tensor<2x2xi8>)
func.func @zero_points(%x: tensor<?x6xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<6x2xi4>} : () -> tensor<6x2xi4>
  %s = onnx.Constant() {value = dense<0.5> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %z = onnx.Constant() {value = dense<[[1, -2], [3, -4], [5, -6]]> : tensor<3x2xi4>} : () -> tensor<3x2xi4>
  %w = onnx.DequantizeLinear(%q, %s, %z) {axis = 0, block_size = 2} : (tensor<6x2xi4>, tensor<3x2xf32>, tensor<3x2xi4>) -> tensor<6x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x6xf32>, tensor<6x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// CHECK-LABEL: func @unsigned
// CHECK: %[[Z:.*]] = linalg.fill ins(%c0_i8 : i8) outs(%{{.*}} : tensor<2x1xi8>)
// CHECK: sdx.dequant_matmul ins(%arg0, %{{.*}}, %{{.*}}, %[[Z]] : tensor<?x4xf32>, tensor<2x1x2xi8>, tensor<2x1xf32>, tensor<2x1xi8>)
func.func @unsigned(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
  %q = onnx.Constant() {value = dense<1> : tensor<4x2xui4>} : () -> tensor<4x2xui4>
  %s = onnx.Constant() {value = dense<[0.5, 1.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %w = onnx.DequantizeLinear(%q, %s) {axis = 1} : (tensor<4x2xui4>, tensor<2xf32>) -> tensor<4x2xf32>
  %y = onnx.MatMul(%x, %w) : (tensor<?x4xf32>, tensor<4x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

{-#
  dialect_resources: {
    builtin: {
      w: "0x040000000123456789ABCDEF"
    }
  }
#-}
