// RUN: onnx-opt %s -split-input-file -cpu-round-operands=precision=bf16 | FileCheck %s
// RUN: onnx-opt %s -split-input-file -cpu-round-operands=precision=f16 | FileCheck %s --check-prefix=F32
// RUN: onnx-opt %s -split-input-file -cpu-round-operands=precision=bf16 -cpu-pack-contractions | FileCheck %s --check-prefix=PACKED

module attributes {sdx.target = #cpu.target<bf16 = amx>} {
  // The weights of both are rounded before they are transposed, inputs where
  // they are made.
  // CHECK-LABEL: func @rounded
  // CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?x64xf32>) outs({{.*}} : tensor<?x64xbf16>)
  // CHECK: arith.truncf
  // CHECK: sdx.matmul ins(%[[X]], %{{.*}} : tensor<?x64xbf16>, tensor<64x32xbf16>)
  // CHECK: sdx.conv ins({{.*}} : tensor<1x8x9x9xbf16>, tensor<16x8x3x3xbf16>)
  // Narrow groups stay. A product of a caller's operands may round them itself.
  // CHECK: sdx.conv ins({{.*}} : tensor<1x8x9x9xf32>, tensor<16x4x3x3xf32>)
  // CHECK: sdx.matmul ins({{.*}} : tensor<?x64xf32>, tensor<64x32xf32>) {{.*}} {sdx.rounded = bf16}

  // Weights that are rounded are packed as bf16.
  // PACKED-LABEL: func @rounded
  // PACKED: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<?x64xbf16>, tensor<1x32x64xbf16>) {{.*}}packing = #cpu.packing<bf16, panel = 32>

  // F32-LABEL: func @rounded
  // F32-NOT: bf16
  func.func @rounded(%x: tensor<?x64xf32>, %e: tensor<?x32xf32>, %i: tensor<1x8x9x9xf32>, %c: tensor<1x16x7x7xf32>, %w: tensor<64x32xf32>)
      -> (tensor<?x32xf32>, tensor<1x16x7x7xf32>, tensor<1x16x7x7xf32>, tensor<?x32xf32>) {
    %c0 = arith.constant 0.0 : f32
    %v = arith.constant dense_resource<v> : tensor<64x32xf32>
    %f = arith.constant dense_resource<f> : tensor<16x8x3x3xf32>
    %g = arith.constant dense_resource<g> : tensor<16x4x3x3xf32>
    %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
    %y = linalg.fill ins(%c0 : f32) outs(%c : tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32>
    %0 = sdx.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
    %1 = sdx.conv ins(%i, %f : tensor<1x8x9x9xf32>, tensor<16x8x3x3xf32>) outs(%y : tensor<1x16x7x7xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x16x7x7xf32>
    %2 = sdx.conv ins(%i, %g : tensor<1x8x9x9xf32>, tensor<16x4x3x3xf32>) outs(%y : tensor<1x16x7x7xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 2 : i64} -> tensor<1x16x7x7xf32>
    %3 = sdx.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
    return %0, %1, %2, %3 : tensor<?x32xf32>, tensor<1x16x7x7xf32>, tensor<1x16x7x7xf32>, tensor<?x32xf32>
  }

  // Weights of a few bits are rounded when kernels unpack them.
  // CHECK-LABEL: func @few_bits
  // CHECK: sdx.dequant_matmul {{.*}} {{.*}}sdx.rounded = bf16
  // CHECK: sdx.dequant_matmul {{.*}} {{.*}}sdx.rounded = i8
  func.func @few_bits(%x: tensor<?x64xf32>, %w: tensor<32x2x16xi8>, %s: tensor<32x2xf32>, %z: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
    %0 = sdx.dequant_matmul ins(%x, %w, %s : tensor<?x64xf32>, tensor<32x2x16xi8>, tensor<32x2xf32>) outs(%z : tensor<?x32xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<?x32xf32>
    %1 = sdx.dequant_matmul ins(%x, %w, %s : tensor<?x64xf32>, tensor<32x2x16xi8>, tensor<32x2xf32>) outs(%z : tensor<?x32xf32>) {bits = 4 : i64, block = 32 : i64, sdx.rounded = i8} -> tensor<?x32xf32>
    return %0, %1 : tensor<?x32xf32>, tensor<?x32xf32>
  }
}

// -----

// Nothing multiplies bf16 here, or only vectors do.
// CHECK-LABEL: module attributes {sdx.target = #cpu.target<>}
// CHECK-NOT: bf16
module attributes {sdx.target = #cpu.target<>} {
  func.func @plain(%x: tensor<4x64xf32>, %z: tensor<4x32xf32>) -> tensor<4x32xf32> {
    %v = arith.constant dense_resource<v> : tensor<64x32xf32>
    %c0 = arith.constant 0.0 : f32
    %e = linalg.fill ins(%c0 : f32) outs(%z : tensor<4x32xf32>) -> tensor<4x32xf32>
    %0 = sdx.matmul ins(%x, %v : tensor<4x64xf32>, tensor<64x32xf32>) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
    return %0 : tensor<4x32xf32>
  }
}
