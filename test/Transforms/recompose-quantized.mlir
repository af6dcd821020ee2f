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

// A scale for each value of k cannot be taken out of the sum.
// CHECK-LABEL: func @along_the_depth
// CHECK-NOT: onnx.MatMulInteger
func.func @along_the_depth(%a: tensor<2x8xi8>, %as: tensor<f32>, %b: tensor<8x4xi8>, %bs: tensor<8xf32>) -> tensor<2x4xf32> {
  %0 = onnx.DequantizeLinear(%a, %as) : (tensor<2x8xi8>, tensor<f32>) -> tensor<2x8xf32>
  %1 = onnx.DequantizeLinear(%b, %bs) {axis = 0} : (tensor<8x4xi8>, tensor<8xf32>) -> tensor<8x4xf32>
  %2 = onnx.MatMul(%0, %1) : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
