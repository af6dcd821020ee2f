// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Batches that share the right-hand side are rows of one product.
// CHECK-LABEL: func @shared_rhs
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2]]
// CHECK: linalg.matmul ins(%[[ROWS]], %{{.*}} : tensor<?x8xf32>, tensor<8x6xf32>)
// CHECK: tensor.expand_shape
func.func @shared_rhs(%a: tensor<?x4x8xf32>, %b: tensor<8x6xf32>) -> tensor<?x4x6xf32> {
  %0 = onnx.MatMul(%a, %b) : (tensor<?x4x8xf32>, tensor<8x6xf32>) -> tensor<?x4x6xf32>
  return %0 : tensor<?x4x6xf32>
}

// -----

// So are the last batches that share one, and no right-hand side is repeated.
// CHECK-LABEL: func @shared_by_groups
// CHECK-DAG: %[[ROWS:.*]] = tensor.collapse_shape %arg0 {{\[}}[0, 1], [2, 3], [4]] : tensor<2x8x4x?x16xf32> into tensor<16x?x16xf32>
// CHECK-DAG: %[[K:.*]] = tensor.collapse_shape %arg1 {{\[}}[0, 1, 2], [3], [4]] : tensor<2x8x1x?x16xf32> into tensor<16x?x16xf32>
// CHECK: %[[KT:.*]] = linalg.transpose ins(%[[K]] : {{.*}} permutation = [0, 2, 1]
// CHECK: %[[R:.*]] = linalg.batch_matmul ins(%[[ROWS]], %[[KT]] :
// CHECK: tensor.expand_shape %[[R]] {{\[}}[0, 1], [2, 3], [4]] {{.*}} into tensor<2x8x4x?x?xf32>
func.func @shared_by_groups(%q: tensor<2x8x4x?x16xf32>, %k: tensor<2x8x1x?x16xf32>) -> tensor<2x8x4x?x?xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 2, 4, 3>} : (tensor<2x8x1x?x16xf32>) -> tensor<2x8x1x16x?xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<2x8x4x?x16xf32>, tensor<2x8x1x16x?xf32>) -> tensor<2x8x4x?x?xf32>
  return %1 : tensor<2x8x4x?x?xf32>
}

// -----

// A transposition stands right before the product, behind the reshape of the
// batches, for packing to absorb it.
// CHECK-LABEL: func @transposed_rhs
// CHECK: %[[K:.*]] = tensor.collapse_shape %arg1 {{\[}}[0, 1], [2], [3]]
// CHECK: %[[KT:.*]] = linalg.transpose ins(%[[K]] : {{.*}} permutation = [0, 2, 1]
// CHECK: linalg.batch_matmul ins(%{{.*}}, %[[KT]] : tensor<24x5x8xf32>, tensor<24x8x5xf32>)
func.func @transposed_rhs(%q: tensor<2x12x5x8xf32>, %k: tensor<2x12x5x8xf32>) -> tensor<2x12x5x5xf32> {
  %0 = onnx.Transpose(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<2x12x5x8xf32>) -> tensor<2x12x8x5xf32>
  %1 = onnx.MatMul(%q, %0) : (tensor<2x12x5x8xf32>, tensor<2x12x8x5xf32>) -> tensor<2x12x5x5xf32>
  return %1 : tensor<2x12x5x5xf32>
}

// -----

// CHECK-LABEL: func @unknown_batches
// CHECK: sdx.check %{{.*}}, "MatMul: batch sizes of the operands cannot be broadcast: {0} and {1}"(%[[M:.*]], %[[N:.*]])
// CHECK: %[[A:.*]] = scf.if
// CHECK: %[[B:.*]] = scf.if
// CHECK: linalg.batch_matmul ins(%[[A]], %[[B]] :
func.func @unknown_batches(%a: tensor<?x3x4xf32>, %b: tensor<?x4x5xf32>) -> tensor<?x3x5xf32> {
  %0 = onnx.MatMul(%a, %b) : (tensor<?x3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x5xf32>
  return %0 : tensor<?x3x5xf32>
}

// -----

// CHECK-LABEL: func @vectors
// CHECK: linalg.matmul ins({{.*}} : tensor<1x4xf64>, tensor<4x1xf64>)
// CHECK: return %{{.*}} : tensor<f64>
func.func @vectors(%a: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<f64> {
  %0 = onnx.MatMul(%a, %b) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// -----

// Halves are multiplied and summed in f32.
// CHECK-LABEL: func @half
// CHECK: arith.extf
// CHECK: linalg.matmul {{.*}} outs(%{{.*}} : tensor<3x5xf32>)
// CHECK: arith.truncf
func.func @half(%a: tensor<3x4xf16>, %b: tensor<4x5xf16>) -> tensor<3x5xf16> {
  %0 = onnx.MatMul(%a, %b) : (tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<3x5xf16>
  return %0 : tensor<3x5xf16>
}

// -----

// The bias is no initial value but a loop behind the product.
// CHECK-LABEL: func @gemm
// CHECK: %[[BT:.*]] = linalg.transpose ins(%arg1
// CHECK: %[[P:.*]] = linalg.matmul ins(%arg0, %[[BT]]
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 : tensor<?x6xf32>, tensor<6xf32>)
// CHECK-NOT: arith.mulf
// CHECK: arith.addf
func.func @gemm(%a: tensor<?x8xf32>, %b: tensor<6x8xf32>, %c: tensor<6xf32>) -> tensor<?x6xf32> {
  %0 = onnx.Gemm(%a, %b, %c) {transB = 1} : (tensor<?x8xf32>, tensor<6x8xf32>, tensor<6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}

// -----

// Products of 8-bit integers are of unsigned with signed ones; what that and the
// zero points add to them is taken off again.
// CHECK-LABEL: func @quantised
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg3 : tensor<4x3xi8>)
// CHECK: arith.xori %{{.*}}, %c-128_i8
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%arg0, %[[S]] : tensor<2x4xi8>, tensor<4x3xi8>) outs({{.*}} : tensor<2x3xi32>)
// CHECK: arith.extui
// CHECK: arith.extsi
// CHECK: %[[COLUMNS:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<4x3xi8>) outs({{.*}} : tensor<3xi32>)
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<2x4xi8>) outs({{.*}} : tensor<2xi32>)
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2, %arg5, %[[COLUMNS]], %[[ROWS]] :
// CHECK: math.roundeven
func.func @quantised(%a: tensor<2x4xui8>, %as: tensor<f32>, %az: tensor<ui8>, %b: tensor<4x3xui8>, %bs: tensor<f32>, %bz: tensor<ui8>, %ys: tensor<f32>, %yz: tensor<ui8>) -> tensor<2x3xui8> {
  %0 = onnx.QLinearMatMul(%a, %as, %az, %b, %bs, %bz, %ys, %yz) : (tensor<2x4xui8>, tensor<f32>, tensor<ui8>, tensor<4x3xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
  return %0 : tensor<2x3xui8>
}

// -----

// Unsigned and signed already, and no zero points: nothing but the product.
// CHECK-LABEL: func @plain_bytes
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @plain_bytes(%a: tensor<2x600xui8>, %b: tensor<600x3xi8>) -> tensor<2x3xi32> {
  %0 = onnx.MatMulInteger(%a, %b) : (tensor<2x600xui8>, tensor<600x3xi8>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// CHECK-LABEL: func @wide
// CHECK: linalg.matmul ins({{.*}} : tensor<2x4xi32>, tensor<4x3xi32>)
func.func @wide(%a: tensor<2x4xi32>, %b: tensor<4x3xi32>) -> tensor<2x3xi32> {
  %0 = onnx.MatMul(%a, %b) : (tensor<2x4xi32>, tensor<4x3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// CHECK-LABEL: func @determinant
// CHECK-COUNT-3: scf.for
func.func @determinant(%x: tensor<2x3x3xf32>) -> tensor<2xf32> {
  %0 = onnx.Det(%x) : (tensor<2x3x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
