// RUN: onnx-opt %s -split-input-file -nv-prepare-products | FileCheck %s

// Two parts of a product, whose columns lie behind each other after a bias and a
// transpose, are two products by parts of the weights. What is computed of the
// elements of a part comes right behind it.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: (%[[X:.*]]: tensor<40x32xf16>)
// CHECK-DAG: %[[W:.*]] = arith.constant dense<1.0{{.*}}> : tensor<32x128xf16>
// CHECK-DAG: %[[B:.*]] = arith.constant dense<2.0{{.*}}> : tensor<128xf32>
// CHECK: %[[W0:.*]] = tensor.extract_slice %[[W]][0, 0] [32, 64] [1, 1]
// CHECK: %[[P0:.*]] = sdx.matmul ins(%[[X]], %[[W0]] : tensor<40x32xf16>, tensor<32x64xf16>) outs({{.*}}) -> tensor<40x64xf32>
// CHECK: %[[B0:.*]] = tensor.extract_slice %[[B]][0] [64] [1]
// CHECK: %[[S0:.*]] = linalg.generic {{.*}} ins(%[[P0]], %[[B0]] :
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W]][0, 64] [32, 64] [1, 1]
// CHECK: sdx.matmul ins(%[[X]], %[[W1]] :
// CHECK-NOT: sdx.matmul
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%[[S0]] : tensor<40x64xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.truncf
// CHECK: return
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func @parts(%x: tensor<40x32xf16>) -> (tensor<1x40x64xf16>, tensor<1x40x64xf32>) {
  %w = arith.constant dense<1.0> : tensor<32x128xf16>
  %bias = arith.constant dense<2.0> : tensor<128xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x128xf32>) -> tensor<40x128xf32>
  %p = sdx.matmul ins(%x, %w : tensor<40x32xf16>, tensor<32x128xf16>) outs(%f : tensor<40x128xf32>) -> tensor<40x128xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %bias : tensor<40x128xf32>, tensor<128xf32>) outs(%e : tensor<40x128xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %q = arith.addf %a, %c : f32
    linalg.yield %q : f32
  } -> tensor<40x128xf32>
  %r = tensor.expand_shape %s [[0], [1, 2]] output_shape [40, 2, 64] : tensor<40x128xf32> into tensor<40x2x64xf32>
  %et = tensor.empty() : tensor<2x40x64xf32>
  %t = linalg.transpose ins(%r : tensor<40x2x64xf32>) outs(%et : tensor<2x40x64xf32>) permutation = [1, 0, 2]
  %first = tensor.extract_slice %t[0, 0, 0] [1, 40, 64] [1, 1, 1] : tensor<2x40x64xf32> to tensor<1x40x64xf32>
  %second = tensor.extract_slice %t[1, 0, 0] [1, 40, 64] [1, 1, 1] : tensor<2x40x64xf32> to tensor<1x40x64xf32>
  %eh = tensor.empty() : tensor<1x40x64xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%first : tensor<1x40x64xf32>) outs(%eh : tensor<1x40x64xf16>) {
  ^bb0(%a: f32, %o: f16):
    %q = arith.truncf %a : f32 to f16
    linalg.yield %q : f16
  } -> tensor<1x40x64xf16>
  return %h, %second : tensor<1x40x64xf16>, tensor<1x40x64xf32>
}
}

// -----

// Not where somebody reads all of it, or where a column is in no part.
// CHECK-LABEL: func.func @whole
// CHECK-COUNT-1: sdx.matmul
// CHECK-NOT: sdx.matmul
// CHECK-LABEL: func.func @some
// CHECK-COUNT-1: sdx.matmul
// CHECK-NOT: sdx.matmul
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func @whole(%x: tensor<40x32xf16>) -> (tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x128xf32>) {
  %w = arith.constant dense<1.0> : tensor<32x128xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x128xf32>) -> tensor<40x128xf32>
  %p = sdx.matmul ins(%x, %w : tensor<40x32xf16>, tensor<32x128xf16>) outs(%f : tensor<40x128xf32>) -> tensor<40x128xf32>
  %first = tensor.extract_slice %p[0, 0] [40, 64] [1, 1] : tensor<40x128xf32> to tensor<40x64xf32>
  %second = tensor.extract_slice %p[0, 64] [40, 64] [1, 1] : tensor<40x128xf32> to tensor<40x64xf32>
  return %first, %second, %p : tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x128xf32>
}
func.func @some(%x: tensor<40x32xf16>) -> (tensor<40x64xf32>, tensor<40x64xf32>) {
  %w = arith.constant dense<1.0> : tensor<32x192xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x192xf32>) -> tensor<40x192xf32>
  %p = sdx.matmul ins(%x, %w : tensor<40x32xf16>, tensor<32x192xf16>) outs(%f : tensor<40x192xf32>) -> tensor<40x192xf32>
  %first = tensor.extract_slice %p[0, 0] [40, 64] [1, 1] : tensor<40x192xf32> to tensor<40x64xf32>
  %second = tensor.extract_slice %p[0, 128] [40, 64] [1, 1] : tensor<40x192xf32> to tensor<40x64xf32>
  return %first, %second : tensor<40x64xf32>, tensor<40x64xf32>
}
}
