// RUN: onnx-opt %s -sdx-canonicalize | FileCheck %s
// RUN: onnx-opt %s -sdx-canonicalize | onnx-opt -sdx-canonicalize | FileCheck %s

// The size 0 becomes known on the way, and with it the product has no depth.
// CHECK-LABEL: func.func @learns_size
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-NOT:     linalg.matmul
// CHECK:         return %[[ZERO]]
func.func @learns_size(%a: tensor<2x4xf32>, %b: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<2x4xf32>
  %none = arith.subi %n, %n : index
  %left = tensor.extract_slice %a[0, 0] [2, %none] [1, 1] : tensor<2x4xf32> to tensor<2x?xf32>
  %right = tensor.extract_slice %b[0, 0] [%none, 3] [1, 1] : tensor<4x3xf32> to tensor<?x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = linalg.matmul ins(%left, %right : tensor<2x?xf32>, tensor<?x3xf32>) outs(%f : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

// A slice of nothing that begins behind the end of its tensor.
// CHECK-LABEL: func.func @behind_the_end
// CHECK-NOT:     extract_slice
// CHECK:         %[[NONE:.*]] = tensor.empty() : tensor<0xf32>
// CHECK:         return %[[NONE]]
func.func @behind_the_end(%a: tensor<4xf32>) -> tensor<0xf32> {
  %c5 = arith.constant 5 : index
  %r = tensor.extract_slice %a[%c5] [0] [1] : tensor<4xf32> to tensor<0xf32>
  return %r : tensor<0xf32>
}

// What upstream's canonicalizer does is done, too.
// CHECK-LABEL: func.func @upstream
// CHECK-NEXT:    return %arg0
func.func @upstream(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.cast %a : tensor<4xf32> to tensor<?xf32>
  %1 = tensor.cast %0 : tensor<?xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
