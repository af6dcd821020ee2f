// RUN: onnx-opt %s -split-input-file -nv-round-operands=precision=f16 | FileCheck %s
// RUN: onnx-opt %s -split-input-file -nv-round-operands=precision=tf32 | FileCheck %s --check-prefix=TF32
// RUN: onnx-opt %s -split-input-file -nv-round-operands=precision=bf16x3 | FileCheck %s --check-prefix=BF16X3
// RUN: onnx-opt %s -split-input-file -nv-round-operands | FileCheck %s --check-prefix=F32
// RUN: onnx-opt %s -split-input-file -nv-round-operands=precision=bf16 -nv-prepare-products | FileCheck %s --check-prefix=BF16

#id = affine_map<(d0, d1) -> (d0, d1)>

// What is computed is rounded before it is transposed, for all who take it; an
// input is rounded for the product alone.
// CHECK-LABEL: func @product
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[W:.*]]: tensor<32x64xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK: arith.negf
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[N]] : tensor<?x64xf32>) outs(%{{.*}} : tensor<?x64xf16>)
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<?x64xf16>) outs(%{{.*}} : tensor<?x64xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]]
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: %[[V:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<64x32xf32>)
// CHECK: sdx.matmul ins(%[[R]], %[[V]]
// CHECK: linalg.generic {{.*}} ins(%[[R]] : tensor<?x64xf32>)
// CHECK: math.absf

// TF32-LABEL: func @product
// TF32-NOT: truncf
// TF32: sdx.matmul {{.*}} {nv.tf32}

// BF16X3-LABEL: func @product
// BF16X3-NOT: truncf
// BF16X3: sdx.matmul {{.*}} {nv.bf16x3}

// F32-LABEL: func @product
// F32-NOT: truncf
// F32-NOT: nv.tf32
// F32: return

// BF16-LABEL: func @product
// BF16: sdx.matmul ins(%{{.*}}, %{{.*}} : tensor<?x64xbf16>, tensor<64x32xbf16>)
func.func @product(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %e: tensor<?x64xf32>, %f: tensor<64x32xf32>,
                   %z: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x64xf32>) {
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  %t = linalg.transpose ins(%w : tensor<32x64xf32>) outs(%f : tensor<64x32xf32>) permutation = [1, 0]
  %r = sdx.matmul ins(%n, %t : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%n : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.absf %in : f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  return %r, %a : tensor<?x32xf32>, tensor<?x64xf32>
}

// -----

// What the caller gets stays as it is; f64 is not rounded.
// CHECK-LABEL: func @results
// CHECK: %[[N:.*]] = sdx.matmul
// CHECK: return %[[N]], %{{.*}}, %[[D:.*]] :
// F32-LABEL: func @results
func.func @results(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %z: tensor<8x64xf32>, %d: tensor<8x8xf64>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x8xf64>) {
  %n = sdx.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = sdx.matmul ins(%n, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
  // TF32: sdx.matmul ins(%{{.*}} : tensor<8x8xf64>, tensor<8x8xf64>) outs(%{{.*}} : tensor<8x8xf64>) ->
  // BF16: sdx.matmul ins(%{{.*}} : tensor<8x8xf64>, tensor<8x8xf64>)
  %e = sdx.matmul ins(%d, %d : tensor<8x8xf64>, tensor<8x8xf64>) outs(%d : tensor<8x8xf64>) -> tensor<8x8xf64>
  return %n, %r, %e : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x8xf64>
}

// -----

// Convolutions with few filters have no tiles.
// CHECK-LABEL: func @convs
// CHECK: sdx.conv ins(%{{.*}}, %{{.*}} : tensor<1x8x9x9xf32>, tensor<16x8x3x3xf32>)
// CHECK-NOT: truncf
// CHECK: sdx.conv
// BF16-LABEL: func @convs
// BF16: sdx.conv ins(%{{.*}}, %{{.*}} : tensor<1x8x9x9xbf16>, tensor<16x8x3x3xbf16>)
func.func @convs(%x: tensor<1x8x9x9xf32>, %w: tensor<16x8x3x3xf32>, %v: tensor<4x8x3x3xf32>,
                 %z: tensor<1x16x7x7xf32>, %y: tensor<1x4x7x7xf32>) -> (tensor<1x16x7x7xf32>, tensor<1x4x7x7xf32>) {
  %r = sdx.conv ins(%x, %w : tensor<1x8x9x9xf32>, tensor<16x8x3x3xf32>) outs(%z : tensor<1x16x7x7xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x16x7x7xf32>
  %s = sdx.conv ins(%x, %v : tensor<1x8x9x9xf32>, tensor<4x8x3x3xf32>) outs(%y : tensor<1x4x7x7xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x4x7x7xf32>
  return %r, %s : tensor<1x16x7x7xf32>, tensor<1x4x7x7xf32>
}
