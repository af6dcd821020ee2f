// RUN: onnx-opt %s -split-input-file -onnx-recompose | FileCheck %s

// CHECK-LABEL: func @matmul
// CHECK-NOT: onnx.DequantizeLinear
// CHECK: %[[SUM:.*]] = onnx.MatMulInteger(%arg0, %arg3, %arg2, %arg5) : (tensor<?x8xui8>, tensor<8x4xi8>, tensor<ui8>, tensor<4xi8>) -> tensor<?x4xi32>
// CHECK: %[[WHOLE:.*]] = onnx.Cast(%[[SUM]])
// CHECK: %[[SCALE:.*]] = onnx.Mul(%arg1, %arg4) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: %[[Y:.*]] = onnx.Mul(%[[WHOLE]], %[[SCALE]]) : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// CHECK: return %[[Y]]
func.func @matmul(%a: tensor<?x8xui8>, %as: tensor<f32>, %az: tensor<ui8>, %b: tensor<8x4xi8>, %bs: tensor<4xf32>, %bz: tensor<4xi8>) -> tensor<?x4xf32> {
  %0 = onnx.DequantizeLinear(%a, %as, %az) : (tensor<?x8xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x8xf32>
  %1 = onnx.DequantizeLinear(%b, %bs, %bz) {axis = 1} : (tensor<8x4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<8x4xf32>
  %2 = onnx.MatMul(%0, %1) : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  return %2 : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func @gemm
// CHECK: %[[T:.*]] = onnx.Transpose(%arg2) {{.*}} : (tensor<4x8xi8>) -> tensor<8x4xi8>
// CHECK: onnx.MatMulInteger(%arg0, %[[T]])
// CHECK: %[[P:.*]] = onnx.Mul
// CHECK: onnx.Add(%{{.*}}, %arg4)
func.func @gemm(%a: tensor<2x8xi8>, %as: tensor<f32>, %b: tensor<4x8xi8>, %bs: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = onnx.DequantizeLinear(%a, %as) : (tensor<2x8xi8>, tensor<f32>) -> tensor<2x8xf32>
  %1 = onnx.DequantizeLinear(%b, %bs) {axis = 0} : (tensor<4x8xi8>, tensor<4xf32>) -> tensor<4x8xf32>
  %2 = onnx.Gemm(%0, %1, %c) {transB = 1} : (tensor<2x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// A bias that was quantised by the product of both scales is added to the sums.
// CHECK-LABEL: func @gemm_with_integers
// CHECK: %[[P:.*]] = onnx.MatMulInteger(%arg0, %arg1
// CHECK: %[[S:.*]] = onnx.Add(%[[P]], %{{.*}}) : (tensor<2x8xi32>, tensor<8xi32>) -> tensor<2x8xi32>
// CHECK: %[[F:.*]] = onnx.Cast(%[[S]])
// CHECK: %[[Y:.*]] = onnx.Mul(%[[F]]
// CHECK: return %[[Y]]
func.func @gemm_with_integers(%a: tensor<2x4xui8>, %b: tensor<4x8xi8>) -> tensor<2x8xf32> {
  %as = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %bs = onnx.Constant() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %cs = onnx.Constant() {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
  %c = onnx.Constant() {value = dense<[1, -2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>} : () -> tensor<8xi32>
  %0 = onnx.DequantizeLinear(%a, %as) : (tensor<2x4xui8>, tensor<f32>) -> tensor<2x4xf32>
  %1 = onnx.DequantizeLinear(%b, %bs) : (tensor<4x8xi8>, tensor<f32>) -> tensor<4x8xf32>
  %2 = onnx.DequantizeLinear(%c, %cs) : (tensor<8xi32>, tensor<f32>) -> tensor<8xf32>
  %3 = onnx.Gemm(%0, %1, %2) : (tensor<2x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// A scale for each value of k cannot be taken out of the sum.
// CHECK-LABEL: func @along_the_depth
// CHECK-NOT: onnx.MatMulInteger
func.func @along_the_depth(%a: tensor<2x8xi8>, %as: tensor<f32>, %b: tensor<8x4xi8>, %bs: tensor<8xf32>) -> tensor<2x4xf32> {
  %0 = onnx.DequantizeLinear(%a, %as) : (tensor<2x8xi8>, tensor<f32>) -> tensor<2x8xf32>
  %1 = onnx.DequantizeLinear(%b, %bs) {axis = 0} : (tensor<8x4xi8>, tensor<8xf32>) -> tensor<8x4xf32>
  %2 = onnx.MatMul(%0, %1) : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

// Both sides may be computed, in batches.
// CHECK-LABEL: func @scores
// CHECK: onnx.MatMulInteger(%arg0, %{{.*}}, %arg2, %arg2) : (tensor<?x2x?x64xui8>, tensor<?x2x64x?xui8>, tensor<ui8>, tensor<ui8>) -> tensor<?x2x?x?xi32>
func.func @scores(%a: tensor<?x2x?x64xui8>, %s: tensor<f32>, %z: tensor<ui8>, %b: tensor<?x2x64x?xui8>) -> tensor<?x2x?x?xf32> {
  %0 = onnx.DequantizeLinear(%a, %s, %z) : (tensor<?x2x?x64xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2x?x64xf32>
  %1 = onnx.DequantizeLinear(%b, %s, %z) : (tensor<?x2x64x?xui8>, tensor<f32>, tensor<ui8>) -> tensor<?x2x64x?xf32>
  %2 = onnx.MatMul(%0, %1) : (tensor<?x2x?x64xf32>, tensor<?x2x64x?xf32>) -> tensor<?x2x?x?xf32>
  return %2 : tensor<?x2x?x?xf32>
}

// -----

// Sums over any number of probabilities are integers of 32 bits, for they add
// up to one; a zero point of 0 is none.
// CHECK-LABEL: func @weighted
// CHECK: onnx.MatMulInteger(%{{.*}}, %arg1, none, %arg3) : (tensor<2x?x?xui8>, tensor<2x?x64xui8>, tensor<ui8>) -> tensor<2x?x64xi32>
func.func @weighted(%x: tensor<2x?x?xf32>, %v: tensor<2x?x64xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<2x?x64xf32> {
  %scale = onnx.Constant() {value = dense<0.00390625> : tensor<f32>} : () -> tensor<f32>
  %zero = onnx.Constant() {value = dense<0> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.Softmax(%x) {axis = -1 : si64} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %1 = onnx.QuantizeLinear(%0, %scale, %zero) : (tensor<2x?x?xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x?x?xui8>
  %2 = onnx.DequantizeLinear(%1, %scale, %zero) : (tensor<2x?x?xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x?x?xf32>
  %3 = onnx.DequantizeLinear(%v, %s, %z) : (tensor<2x?x64xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x?x64xf32>
  %4 = onnx.MatMul(%2, %3) : (tensor<2x?x?xf32>, tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  return %4 : tensor<2x?x64xf32>
}

// -----

// Others may leave 32 bits.
// CHECK-LABEL: func @any_depth
// CHECK-NOT: onnx.MatMulInteger
func.func @any_depth(%x: tensor<2x?x?xui8>, %v: tensor<2x?x64xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<2x?x64xf32> {
  %2 = onnx.DequantizeLinear(%x, %s, %z) : (tensor<2x?x?xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x?x?xf32>
  %3 = onnx.DequantizeLinear(%v, %s, %z) : (tensor<2x?x64xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x?x64xf32>
  %4 = onnx.MatMul(%2, %3) : (tensor<2x?x?xf32>, tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  return %4 : tensor<2x?x64xf32>
}
