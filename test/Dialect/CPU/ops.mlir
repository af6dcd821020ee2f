// RUN: onnx-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @products
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<?x768xf32>, tensor<2x768x32xf32>) outs(%{{.*}} : tensor<?x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x40xf32>
// CHECK: cpu.packed_matmul {{.*}} -> tensor<4x?x40xf32>
// CHECK: cpu.packed_matmul {{.*}} outs(%{{.*}} : memref<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>}{{$}}
func.func @products(%a: tensor<?x768xf32>, %b: tensor<2x768x32xf32>, %c: tensor<?x40xf32>,
                    %a3: tensor<4x?x768xf32>, %b4: tensor<4x2x768x32xf32>, %c3: tensor<4x?x40xf32>,
                    %am: memref<8x768xf32>, %bm: memref<2x768x32xf32>, %cm: memref<8x40xf32>)
    -> (tensor<?x40xf32>, tensor<4x?x40xf32>) {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<?x768xf32>, tensor<2x768x32xf32>) outs(%c : tensor<?x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x40xf32>
  %1 = cpu.packed_matmul ins(%a3, %b4 : tensor<4x?x768xf32>, tensor<4x2x768x32xf32>) outs(%c3 : tensor<4x?x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<4x?x40xf32>
  cpu.packed_matmul ins(%am, %bm : memref<8x768xf32>, memref<2x768x32xf32>) outs(%cm : memref<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>}
  return %0, %1 : tensor<?x40xf32>, tensor<4x?x40xf32>
}

// All batches may share a right-hand side, of open sizes but for its panels.
// CHECK-LABEL: @shared_rhs
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<4x8x?xf32>, tensor<?x?x32xf32>)
func.func @shared_rhs(%a: tensor<4x8x?xf32>, %b: tensor<?x?x32xf32>, %c: tensor<4x8x?xf32>) -> tensor<4x8x?xf32> {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<4x8x?xf32>, tensor<?x?x32xf32>) outs(%c : tensor<4x8x?xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<4x8x?xf32>
  return %0 : tensor<4x8x?xf32>
}

// Bytes lie together in fours, bf16 in twos.
// CHECK-LABEL: @narrow_products
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<?x6xi8>, tensor<2x2x128xi8>) outs(%{{.*}} : tensor<?x40xi32>) {packing = #cpu.packing<i8, panel = 32>}
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<?x5xbf16>, tensor<2x3x64xbf16>) outs(%{{.*}} : tensor<?x40xf32>) {packing = #cpu.packing<bf16, panel = 32>}
func.func @narrow_products(%a: tensor<?x6xi8>, %b: tensor<2x2x128xi8>, %c: tensor<?x40xi32>,
                           %d: tensor<?x5xbf16>, %e: tensor<2x3x64xbf16>, %f: tensor<?x40xf32>) -> (tensor<?x40xi32>, tensor<?x40xf32>) {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<?x6xi8>, tensor<2x2x128xi8>) outs(%c : tensor<?x40xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<?x40xi32>
  %1 = cpu.packed_matmul ins(%d, %e : tensor<?x5xbf16>, tensor<2x3x64xbf16>) outs(%f : tensor<?x40xf32>) {packing = #cpu.packing<bf16, panel = 32>} -> tensor<?x40xf32>
  return %0, %1 : tensor<?x40xi32>, tensor<?x40xf32>
}

// CHECK-LABEL: @scaled_products
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x48xf32>, tensor<2x12x64xi8>, tensor<2x2x1x32xf32>) outs(%{{.*}} : tensor<?x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>, whole_zeros} -> tensor<?x40xf32>
// CHECK: cpu.packed_matmul {{.*}} {block = 32 : i64, packing = #cpu.packing<u2, panel = 32>}
// CHECK: cpu.packed_matmul {{.*}} {block = 32 : i64, packing = #cpu.packing<u8, panel = 32>}
// CHECK: cpu.packed_matmul {{.*}} {block = 48 : i64, packing = #cpu.packing<w24, panel = 32>}
// CHECK: cpu.packed_matmul {{.*}} {block = 48 : i64, packing = #cpu.packing<w21, panel = 32>}
func.func @scaled_products(%a: tensor<?x48xf32>, %u4: tensor<2x12x64xi8>, %u2: tensor<2x12x32xi8>, %u8: tensor<2x12x128xi8>,
                           %w24: tensor<2x48x96xi8>, %w21: tensor<2x16x32xi64>, %s: tensor<2x2x1x32xf32>, %o: tensor<2x2x2x32xf32>,
                           %t: tensor<2x1x1x32xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = cpu.packed_matmul ins(%a, %u4, %s : tensor<?x48xf32>, tensor<2x12x64xi8>, tensor<2x2x1x32xf32>)
      outs(%c : tensor<?x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>, whole_zeros} -> tensor<?x40xf32>
  %1 = cpu.packed_matmul ins(%a, %u2, %o : tensor<?x48xf32>, tensor<2x12x32xi8>, tensor<2x2x2x32xf32>)
      outs(%0 : tensor<?x40xf32>) {block = 32 : i64, packing = #cpu.packing<u2, panel = 32>} -> tensor<?x40xf32>
  %2 = cpu.packed_matmul ins(%a, %u8, %o : tensor<?x48xf32>, tensor<2x12x128xi8>, tensor<2x2x2x32xf32>)
      outs(%1 : tensor<?x40xf32>) {block = 32 : i64, packing = #cpu.packing<u8, panel = 32>} -> tensor<?x40xf32>
  %3 = cpu.packed_matmul ins(%a, %w24, %t : tensor<?x48xf32>, tensor<2x48x96xi8>, tensor<2x1x1x32xf32>)
      outs(%2 : tensor<?x40xf32>) {block = 48 : i64, packing = #cpu.packing<w24, panel = 32>} -> tensor<?x40xf32>
  %4 = cpu.packed_matmul ins(%a, %w21, %t : tensor<?x48xf32>, tensor<2x16x32xi64>, tensor<2x1x1x32xf32>)
      outs(%3 : tensor<?x40xf32>) {block = 48 : i64, packing = #cpu.packing<w21, panel = 32>} -> tensor<?x40xf32>
  return %4 : tensor<?x40xf32>
}

// CHECK-LABEL: @strassen
// CHECK: cpu.packed_matmul {{.*}}, strassen = 64 : i64}
func.func @strassen(%a: tensor<?x128xf32>, %b: tensor<2x128x32xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<?x128xf32>, tensor<2x128x32xf32>) outs(%c : tensor<?x40xf32>)
      {strassen = 64 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// CHECK-LABEL: @packs
// CHECK: cpu.pack_rhs ins(%{{.*}} : tensor<768x40xf32>) outs(%{{.*}} : tensor<2x768x32xf32>) {packing = #cpu.packing<f32, panel = 32>}
// CHECK: cpu.pack_rhs transposed ins(%{{.*}} : tensor<40x768xf32>)
// CHECK: cpu.pack_rhs transposed ins(%{{.*}} : tensor<2x100x12x64xf32>) outs(%{{.*}} : tensor<24x4x64x32xf32>)
// CHECK: cpu.pack_rhs ins(%{{.*}}, %{{.*}} : tensor<768x40xf32>, tensor<2x1x1x32xf32>) outs(%{{.*}} : tensor<2x256x32xi64>) {packing = #cpu.packing<w21, panel = 32>}
func.func @packs(%b: tensor<768x40xf32>, %bt: tensor<40x768xf32>, %keys: tensor<2x100x12x64xf32>, %s: tensor<2x1x1x32xf32>,
                 %e: tensor<2x768x32xf32>, %ek: tensor<24x4x64x32xf32>, %es: tensor<2x256x32xi64>)
    -> (tensor<2x768x32xf32>, tensor<2x768x32xf32>, tensor<24x4x64x32xf32>, tensor<2x256x32xi64>) {
  %0 = cpu.pack_rhs ins(%b : tensor<768x40xf32>) outs(%e : tensor<2x768x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x768x32xf32>
  %1 = cpu.pack_rhs transposed ins(%bt : tensor<40x768xf32>) outs(%e : tensor<2x768x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x768x32xf32>
  %2 = cpu.pack_rhs transposed ins(%keys : tensor<2x100x12x64xf32>) outs(%ek : tensor<24x4x64x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<24x4x64x32xf32>
  %3 = cpu.pack_rhs ins(%b, %s : tensor<768x40xf32>, tensor<2x1x1x32xf32>) outs(%es : tensor<2x256x32xi64>) {packing = #cpu.packing<w21, panel = 32>} -> tensor<2x256x32xi64>
  return %0, %1, %2, %3 : tensor<2x768x32xf32>, tensor<2x768x32xf32>, tensor<24x4x64x32xf32>, tensor<2x256x32xi64>
}

// CHECK-LABEL: @conv
// CHECK: cpu.conv ins(%{{.*}}, %{{.*}} : tensor<?x3x224x224xf32>, tensor<1x8x147x8xf32>) {{.*}} filters = #cpu.filters<f32, rows = 8>,
func.func @conv(%x: tensor<?x3x224x224xf32>, %w: tensor<1x8x147x8xf32>, %e: tensor<?x64x112x112xf32>) -> tensor<?x64x112x112xf32> {
  %0 = cpu.conv ins(%x, %w : tensor<?x3x224x224xf32>, tensor<1x8x147x8xf32>) outs(%e : tensor<?x64x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x64x112x112xf32>
  return %0 : tensor<?x64x112x112xf32>
}

// CHECK-LABEL: @winograd_conv
// CHECK: cpu.pack_conv_weights {{.*}} {filters = #cpu.filters<f32, rows = 32, in_lanes = true, winograd = 2, stride = 2>}
// CHECK: cpu.conv {{.*}} filters = #cpu.filters<f32, rows = 32, in_lanes = true, winograd = 2, stride = 2>
func.func @winograd_conv(%x: tensor<1x16x8x8xf32>, %w: tensor<64x16x3x3xf32>, %p: tensor<1x2x?x32xf32>, %e: tensor<1x64x4x4xf32>) -> tensor<1x64x4x4xf32> {
  %0 = cpu.pack_conv_weights ins(%w : tensor<64x16x3x3xf32>) outs(%p : tensor<1x2x?x32xf32>)
      {filters = #cpu.filters<f32, rows = 32, in_lanes = true, winograd = 2, stride = 2>} -> tensor<1x2x?x32xf32>
  %1 = cpu.conv ins(%x, %0 : tensor<1x16x8x8xf32>, tensor<1x2x?x32xf32>) outs(%e : tensor<1x64x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64,
       filters = #cpu.filters<f32, rows = 32, in_lanes = true, winograd = 2, stride = 2>} -> tensor<1x64x4x4xf32>
  return %1 : tensor<1x64x4x4xf32>
}

// CHECK-LABEL: @pack_filters
// CHECK: cpu.pack_conv_weights {{.*}} {filters = #cpu.filters<f32, rows = 8>} -> tensor<2x1x27x8xf32>
// CHECK: cpu.pack_conv_weights {{.*}} {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x1x18x2048xbf16>
func.func @pack_filters(%w: tensor<12x3x3x3xf32>, %e: tensor<2x1x27x8xf32>, %v: tensor<32x40x3x3xf32>, %f: tensor<1x1x18x2048xbf16>)
    -> (tensor<2x1x27x8xf32>, tensor<1x1x18x2048xbf16>) {
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<2x1x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<2x1x27x8xf32>
  %1 = cpu.pack_conv_weights ins(%v : tensor<32x40x3x3xf32>) outs(%f : tensor<1x1x18x2048xbf16>) {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x1x18x2048xbf16>
  return %0, %1 : tensor<2x1x27x8xf32>, tensor<1x1x18x2048xbf16>
}
