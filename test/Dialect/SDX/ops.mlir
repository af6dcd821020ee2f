// RUN: onnx-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @products
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}} : tensor<?x768xf32>, tensor<2x768x32xf32>) outs(%{{.*}} : tensor<?x40xf32>) -> tensor<?x40xf32>
// CHECK: cpu.packed_matmul {{.*}} -> tensor<4x?x40xf32>
// CHECK: cpu.packed_matmul {{.*}} outs(%{{.*}} : memref<8x40xf32>){{$}}
func.func @products(%a: tensor<?x768xf32>, %b: tensor<2x768x32xf32>, %c: tensor<?x40xf32>,
                    %a3: tensor<4x?x768xf32>, %b4: tensor<4x2x768x32xf32>, %c3: tensor<4x?x40xf32>,
                    %am: memref<8x768xf32>, %bm: memref<2x768x32xf32>, %cm: memref<8x40xf32>)
    -> (tensor<?x40xf32>, tensor<4x?x40xf32>) {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<?x768xf32>, tensor<2x768x32xf32>) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  %1 = cpu.packed_matmul ins(%a3, %b4 : tensor<4x?x768xf32>, tensor<4x2x768x32xf32>) outs(%c3 : tensor<4x?x40xf32>) -> tensor<4x?x40xf32>
  cpu.packed_matmul ins(%am, %bm : memref<8x768xf32>, memref<2x768x32xf32>) outs(%cm : memref<8x40xf32>)
  return %0, %1 : tensor<?x40xf32>, tensor<4x?x40xf32>
}

// CHECK-LABEL: @scaled_product
// CHECK: cpu.packed_matmul ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x48xf32>, tensor<2x48x16xi8>, tensor<2x2x1x32xf32>) outs(%{{.*}} : tensor<?x40xf32>) {block = 32 : i64} -> tensor<?x40xf32>
func.func @scaled_product(%a: tensor<?x48xf32>, %b: tensor<2x48x16xi8>, %s: tensor<2x2x1x32xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<?x48xf32>, tensor<2x48x16xi8>, tensor<2x2x1x32xf32>)
      outs(%c : tensor<?x40xf32>) {block = 32 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// CHECK-LABEL: @strassen
// CHECK: cpu.packed_matmul {{.*}} {strassen = 64 : i64}
// CHECK: sdx.thread_count : index
func.func @strassen(%a: tensor<?x128xf32>, %b: tensor<2x128x32xf32>, %c: tensor<?x40xf32>) -> (tensor<?x40xf32>, index) {
  %0 = cpu.packed_matmul ins(%a, %b : tensor<?x128xf32>, tensor<2x128x32xf32>) outs(%c : tensor<?x40xf32>) {strassen = 64 : i64} -> tensor<?x40xf32>
  %n = sdx.thread_count : index
  return %0, %n : tensor<?x40xf32>, index
}

// CHECK-LABEL: @packs
// CHECK: cpu.pack_rhs ins
// CHECK: cpu.pack_rhs transposed ins
// CHECK: cpu.pack_conv_weights {{.*}}
func.func @packs(%b: tensor<768x40xf32>, %bt: tensor<40x768xf32>, %e: tensor<2x768x32xf32>,
                 %w: tensor<12x3x3x3xf32>, %we: tensor<2x1x27x8xf32>)
    -> (tensor<2x768x32xf32>, tensor<2x768x32xf32>, tensor<2x1x27x8xf32>) {
  %0 = cpu.pack_rhs ins(%b : tensor<768x40xf32>) outs(%e : tensor<2x768x32xf32>) -> tensor<2x768x32xf32>
  %1 = cpu.pack_rhs transposed ins(%bt : tensor<40x768xf32>) outs(%e : tensor<2x768x32xf32>) -> tensor<2x768x32xf32>
  %2 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%we : tensor<2x1x27x8xf32>) -> tensor<2x1x27x8xf32>
  return %0, %1, %2 : tensor<2x768x32xf32>, tensor<2x768x32xf32>, tensor<2x1x27x8xf32>
}

// CHECK-LABEL: @max_pool
// CHECK: sdx.max_pool ins(%{{.*}} : tensor<?x64x112x112xf32>) outs(%{{.*}} : tensor<?x64x56x56xf32>)
func.func @max_pool(%x: tensor<?x64x112x112xf32>, %e: tensor<?x64x56x56xf32>) -> tensor<?x64x56x56xf32> {
  %0 = sdx.max_pool ins(%x : tensor<?x64x112x112xf32>) outs(%e : tensor<?x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<?x64x56x56xf32>
  return %0 : tensor<?x64x56x56xf32>
}

// CHECK-LABEL: @conv
// CHECK: cpu.conv ins(%{{.*}}, %{{.*}} : tensor<?x3x224x224xf32>, tensor<1x8x147x8xf32>)
func.func @conv(%x: tensor<?x3x224x224xf32>, %w: tensor<1x8x147x8xf32>, %e: tensor<?x64x112x112xf32>) -> tensor<?x64x112x112xf32> {
  %0 = cpu.conv ins(%x, %w : tensor<?x3x224x224xf32>, tensor<1x8x147x8xf32>) outs(%e : tensor<?x64x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64} -> tensor<?x64x112x112xf32>
  return %0 : tensor<?x64x112x112xf32>
}

func.func private @kernel(memref<?x8xf32>, index, memref<?x8xf32>) attributes {sdx.kernel}

// CHECK-LABEL: @host
// CHECK: sdx.call @kernel(%{{.*}}, %{{.*}} : tensor<?x8xf32>, index) outs(%{{.*}} : tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: sdx.call @kernel(%{{.*}}, %{{.*}} : memref<?x8xf32>, index) outs(%{{.*}} : memref<?x8xf32>)
// CHECK: sdx.check %{{.*}}, "sizes differ"
// CHECK: sdx.check %{{.*}}, "sizes {0} and {1} differ"(%[[I:.*]], %[[I]])
// CHECK: sdx.check %{{.*}}, "no {0}"(%{{.*}}) as unsupported
// CHECK: sdx.output_buffer 0(%{{.*}}) : memref<?x8xf32>
// CHECK: sdx.arena : memref<1024xi8>
func.func @host(%t: tensor<?x8xf32>, %m: memref<?x8xf32>, %n: index, %c: i1) -> tensor<?x8xf32> {
  %0 = sdx.call @kernel(%t, %n : tensor<?x8xf32>, index) outs(%t : tensor<?x8xf32>) -> tensor<?x8xf32>
  sdx.call @kernel(%m, %n : memref<?x8xf32>, index) outs(%m : memref<?x8xf32>)
  sdx.check %c, "sizes differ"
  sdx.check %c, "sizes {0} and {1} differ" (%n, %n)
  sdx.check %c, "no {0}" (%n) as unsupported
  %1 = sdx.output_buffer 0(%n) : memref<?x8xf32>
  %2 = sdx.arena : memref<1024xi8>
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: @runtime
// CHECK: sdx.runtime_call "sdx_rt_list_length"(%{{.*}} : tensor<i64>) outs(%{{.*}} : tensor<i64>) -> tensor<i64>
// CHECK: sdx.runtime_call stateful "sdx_rt_list_erase"(%{{.*}}, %{{.*}}, %{{.*}} : memref<i64>, index, i64) outs(%{{.*}} : memref<i64>)
func.func @runtime(%t: tensor<i64>, %m: memref<i64>, %n: index, %i: i64) -> tensor<i64> {
  %0 = sdx.runtime_call "sdx_rt_list_length" (%t : tensor<i64>) outs(%t : tensor<i64>) -> tensor<i64>
  sdx.runtime_call stateful "sdx_rt_list_erase" (%m, %n, %i : memref<i64>, index, i64) outs(%m : memref<i64>)
  return %0 : tensor<i64>
}
