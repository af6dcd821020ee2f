// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func @attention_scores
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
// CHECK: linalg.batch_matmul ins({{.*}} : tensor<6x4x8xf32>, tensor<6x8x5xf32>)
func.func @attention_scores(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x5x8xf32>) -> tensor<2x3x4x5xf32> {
  %0 = onnx.Einsum(%q, %k) {equation = "bhqd,bhkd->bhqk"} : (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x4x5xf32>
  return %0 : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: func @trace
// CHECK-NOT: linalg.matmul
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]
func.func @trace(%x: tensor<4x4xf32>) -> tensor<f32> {
  %0 = onnx.Einsum(%x) {equation = "ii->"} : (tensor<4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
