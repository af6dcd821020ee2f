// RUN: onnx-opt %s --target=haswell -cpu-round-operands=precision=f16 -cpu-pack-contractions | FileCheck %s
// RUN: onnx-opt %s --target=x86-64 -cpu-round-operands=precision=f16 -cpu-pack-contractions | FileCheck %s --check-prefix=NONE
// RUN: onnx-opt %s --target=sapphirerapids -cpu-round-operands=precision=f16 -cpu-pack-contractions | FileCheck %s --check-prefix=TILES

// Weights of a row are rounded, and stay in f16 until they are multiplied.
// CHECK-LABEL: func @row
// CHECK:       arith.truncf {{.*}} f32 to f16
// CHECK-NOT:   arith.extf
// CHECK:       cpu.packed_matmul ins(%arg0, %{{.*}} : tensor<1x64xf32>, tensor<3x64x32xf16>) {{.*}}packing = #cpu.packing<f16, panel = 32>
// No instruction makes f32 of f16.
// NONE-LABEL:  func @row
// NONE-NOT:    f16
// NONE-LABEL:  func @rows
// TILES-LABEL: func @row
// TILES:       cpu.packed_matmul {{.*}}packing = #cpu.packing<f16, panel = 32>
func.func @row(%x: tensor<1x64xf32>, %e: tensor<1x96xf32>) -> tensor<1x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<1x96xf32>) -> tensor<1x96xf32>
  %0 = sdx.matmul ins(%x, %w : tensor<1x64xf32>, tensor<64x96xf32>) outs(%z : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %0 : tensor<1x96xf32>
}

// Many rows compute longer than weights take to come.
// CHECK-LABEL: func @rows
// CHECK-NOT:   f16
func.func @rows(%x: tensor<100x64xf32>, %e: tensor<100x96xf32>) -> tensor<100x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<v> : tensor<64x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<100x96xf32>) -> tensor<100x96xf32>
  %0 = sdx.matmul ins(%x, %w : tensor<100x64xf32>, tensor<64x96xf32>) outs(%z : tensor<100x96xf32>) -> tensor<100x96xf32>
  return %0 : tensor<100x96xf32>
}

// A model's own are kept for any number of rows; tile registers multiply many
// by f32.
// CHECK-LABEL: func @halves
// CHECK:       cpu.packed_matmul {{.*}}tensor<3x64x32xf16>) {{.*}}packing = #cpu.packing<f16, panel = 32>
// TILES-LABEL: func @halves
// TILES:       cpu.packed_matmul {{.*}}tensor<3x64x32xf32>)
func.func @halves(%x: tensor<?x64xf32>, %e: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %c0 = arith.constant 0.0 : f32
  %h = arith.constant dense_resource<h> : tensor<64x96xf16>
  %f = tensor.empty() : tensor<64x96xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<64x96xf16>) outs(%f : tensor<64x96xf32>) {
  ^bb0(%in: f16, %out: f32):
    %wide = arith.extf %in : f16 to f32
    linalg.yield %wide : f32
  } -> tensor<64x96xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %0 = sdx.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%z : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %0 : tensor<?x96xf32>
}
