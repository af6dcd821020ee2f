// RUN: onnx-opt %s -split-input-file --cpu-share-init-packing-kernels --sdx-dedup-kernels | FileCheck %s

// CHECK-LABEL: func.func @init
// CHECK-SAME: (%[[A:.*]]: memref<64x16x1x1xf32>, %[[B:.*]]: memref<72x1x3x3xf32>, {{.*}}, %[[PA:.*]]: memref<1x8x16x8xf32>, %[[PB:.*]]: memref<72x1x9x8xf32>
func.func @init(%a: memref<64x16x1x1xf32>, %b: memref<72x1x3x3xf32>, %k: memref<64x16x3x3xf32>, %c: memref<32x24xf32>,
    %pa: memref<1x8x16x8xf32>, %pb: memref<72x1x9x8xf32>, %pk: memref<1x8x256x8xf32>, %pc: memref<1x32x32xf32>, %s: memref<1x1x1x32xf32>, %d: memref<64x24xf32>, %ps: memref<1x64x96xi8>, %pp: memref<1x8x32xf32>) {
  // CHECK: %[[IN:.*]] = memref.cast %[[A]] : memref<64x16x1x1xf32> to memref<?x?x?x?xf32>
  // CHECK: %[[OUT:.*]] = memref.cast %[[PA]] : memref<1x8x16x8xf32> to memref<?x?x?x8xf32>
  // CHECK: sdx.call @a(%[[IN]] : memref<?x?x?x?xf32>) outs(%[[OUT]] : memref<?x?x?x8xf32>)
  sdx.call @a(%a : memref<64x16x1x1xf32>) outs(%pa : memref<1x8x16x8xf32>)
  // CHECK: memref.cast %[[B]]
  // CHECK: memref.cast %[[PB]]
  // CHECK: sdx.call @a(
  sdx.call @b(%b : memref<72x1x3x3xf32>) outs(%pb : memref<72x1x9x8xf32>)
  // Winograd's algorithm keeps those that it is for,
  // CHECK: memref.cast %{{.*}} : memref<64x16x3x3xf32> to memref<?x?x3x3xf32>
  // CHECK: memref.cast %{{.*}} : memref<1x8x256x8xf32> to memref<1x?x?x8xf32>
  // CHECK: sdx.call @winograd(
  sdx.call @winograd(%k : memref<64x16x3x3xf32>) outs(%pk : memref<1x8x256x8xf32>)
  // what runs again all,
  // CHECK: sdx.call @again(%{{.*}} : memref<32x24xf32>)
  sdx.call @again(%c : memref<32x24xf32>) outs(%pc : memref<1x32x32xf32>)
  // and what packs a piece of a buffer
  // CHECK: sdx.call @piece(%{{.*}} : memref<8x24xf32, strided<[24, 1], offset: 192>>)
  %piece = memref.subview %c[8, 0] [8, 24] [1, 1] : memref<32x24xf32> to memref<8x24xf32, strided<[24, 1], offset: 192>>
  sdx.call @piece(%piece : memref<8x24xf32, strided<[24, 1], offset: 192>>) outs(%pp : memref<1x8x32xf32>)
  // or rounds weights.
  // CHECK: sdx.call @round(%{{.*}} : memref<64x24xf32>, memref<1x1x1x32xf32>)
  sdx.call @round(%d, %s : memref<64x24xf32>, memref<1x1x1x32xf32>) outs(%ps : memref<1x64x96xi8>)
  return
}
func.func @main(%c: memref<32x24xf32>, %pc: memref<1x32x32xf32>) {
  sdx.call @again(%c : memref<32x24xf32>) outs(%pc : memref<1x32x32xf32>)
  return
}

// CHECK: func.func private @a(%[[FROM:.*]]: memref<?x?x?x?xf32>, %[[TO:.*]]: memref<?x?x?x8xf32>) attributes {cpu.runs_once, sdx.kernel} {
// CHECK: %[[SOURCE:.*]] = bufferization.to_tensor %[[FROM]] restrict
// CHECK: %[[G:.*]] = memref.dim %[[TO]], %c0
// CHECK: %[[INIT:.*]] = tensor.empty(%[[G]], %{{.*}}, %{{.*}}) : tensor<?x?x?x8xf32>
// CHECK: %[[P:.*]] = cpu.pack_conv_weights ins(%[[SOURCE]] : tensor<?x?x?x?xf32>) outs(%[[INIT]] : tensor<?x?x?x8xf32>)
// CHECK: bufferization.materialize_in_destination %[[P]] in restrict writable %[[TO]]
func.func private @a(%w: memref<64x16x1x1xf32>, %out: memref<1x8x16x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x16x1x1xf32> to tensor<64x16x1x1xf32>
  %e = tensor.empty() : tensor<1x8x16x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<64x16x1x1xf32>) outs(%e : tensor<1x8x16x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x16x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x16x8xf32>, memref<1x8x16x8xf32>) -> ()
  return
}
// CHECK-NOT: @b
func.func private @b(%w: memref<72x1x3x3xf32>, %out: memref<72x1x9x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<72x1x3x3xf32> to tensor<72x1x3x3xf32>
  %e = tensor.empty() : tensor<72x1x9x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<72x1x3x3xf32>) outs(%e : tensor<72x1x9x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<72x1x9x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<72x1x9x8xf32>, memref<72x1x9x8xf32>) -> ()
  return
}
// CHECK: func.func private @winograd(%{{.*}}: memref<?x?x3x3xf32>, %{{.*}}: memref<1x?x?x8xf32>)
// CHECK: cpu.pack_conv_weights {{.*}}winograd = 2>} -> tensor<1x?x?x8xf32>
func.func private @winograd(%w: memref<64x16x3x3xf32>, %out: memref<1x8x256x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x16x3x3xf32> to tensor<64x16x3x3xf32>
  %e = tensor.empty() : tensor<1x8x256x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<64x16x3x3xf32>) outs(%e : tensor<1x8x256x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x8x256x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x256x8xf32>, memref<1x8x256x8xf32>) -> ()
  return
}
func.func private @piece(%w: memref<8x24xf32>, %out: memref<1x8x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<8x24xf32> to tensor<8x24xf32>
  %e = tensor.empty() : tensor<1x8x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<8x24xf32>) outs(%e : tensor<1x8x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x8x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x8x32xf32>, memref<1x8x32xf32>) -> ()
  return
}
// CHECK: func.func private @round(%{{.*}}: memref<64x24xf32>
func.func private @round(%w: memref<64x24xf32>, %s: memref<1x1x1x32xf32>, %out: memref<1x64x96xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<64x24xf32> to tensor<64x24xf32>
  %ts = bufferization.to_tensor %s restrict : memref<1x1x1x32xf32> to tensor<1x1x1x32xf32>
  %e = tensor.empty() : tensor<1x64x96xi8>
  %p = cpu.pack_rhs ins(%t, %ts : tensor<64x24xf32>, tensor<1x1x1x32xf32>) outs(%e : tensor<1x64x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<1x64x96xi8>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x64x96xi8>, memref<1x64x96xi8>) -> ()
  return
}
// CHECK: func.func private @again(%{{.*}}: memref<32x24xf32>
func.func private @again(%w: memref<32x24xf32>, %out: memref<1x32x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<32x24xf32> to tensor<32x24xf32>
  %e = tensor.empty() : tensor<1x32x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<32x24xf32>) outs(%e : tensor<1x32x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x32x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x32x32xf32>, memref<1x32x32xf32>) -> ()
  return
}

// -----

// Transposes and operations on elements are one for all sizes, too. Few bytes
// that move together stay so many, numbers become arguments, but for zeros and
// those of functions.
// CHECK-LABEL: func.func @init
// CHECK: sdx.call @move(%{{.*}} : memref<?x?x4xi8>) outs(%{{.*}} : memref<?x?x4xi8>)
// CHECK: sdx.call @move(
// CHECK: sdx.call @far(%{{.*}} : memref<?x?xi8>) outs(%{{.*}} : memref<?x?xi8>)
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: sdx.call @scale(%{{.*}}, %[[TWO]] : memref<?xf32>, f32) outs(%{{.*}} : memref<?xf32>)
// CHECK: %[[THREE:.*]] = arith.constant 3.0
// CHECK: sdx.call @scale(%{{.*}}, %[[THREE]] : memref<?xf32>, f32)
// CHECK: sdx.call @power(%{{.*}} : memref<?xf32>) outs(
// CHECK: sdx.call @fill() outs(%{{.*}} : memref<?x?xi8>)
// CHECK: sdx.call @rows(%{{.*}} : memref<8x16xi8>)
func.func @init(%a: memref<32x16x4xi8>, %b: memref<64x8x4xi8>, %c: memref<128x3xi8>, %f: memref<40xf32>, %g: memref<7xf32>,
    %ta: memref<16x32x4xi8>, %tb: memref<8x64x4xi8>, %tc: memref<3x128xi8>, %tf: memref<40xf32>, %tg: memref<7xf32>, %r: memref<8x16xi8>, %s: memref<8xi32>) {
  sdx.call @move(%a : memref<32x16x4xi8>) outs(%ta : memref<16x32x4xi8>)
  sdx.call @move_other(%b : memref<64x8x4xi8>) outs(%tb : memref<8x64x4xi8>)
  sdx.call @far(%c : memref<128x3xi8>) outs(%tc : memref<3x128xi8>)
  sdx.call @scale(%f : memref<40xf32>) outs(%tf : memref<40xf32>)
  sdx.call @scale_other(%g : memref<7xf32>) outs(%tg : memref<7xf32>)
  sdx.call @power(%g : memref<7xf32>) outs(%tg : memref<7xf32>)
  sdx.call @fill() outs(%r : memref<8x16xi8>)
  sdx.call @rows(%r : memref<8x16xi8>) outs(%s : memref<8xi32>)
  return
}
// CHECK: func.func private @move(
// CHECK: linalg.transpose ins(%{{.*}} : tensor<?x?x4xi8>) outs(%{{.*}} : tensor<?x?x4xi8>) permutation = [1, 0, 2]
func.func private @move(%x: memref<32x16x4xi8>, %out: memref<16x32x4xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<32x16x4xi8> to tensor<32x16x4xi8>
  %e = tensor.empty() : tensor<16x32x4xi8>
  %r = linalg.transpose ins(%t : tensor<32x16x4xi8>) outs(%e : tensor<16x32x4xi8>) permutation = [1, 0, 2]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<16x32x4xi8>, memref<16x32x4xi8>) -> ()
  return
}
// CHECK-NOT: @move_other
func.func private @move_other(%x: memref<64x8x4xi8>, %out: memref<8x64x4xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<64x8x4xi8> to tensor<64x8x4xi8>
  %e = tensor.empty() : tensor<8x64x4xi8>
  %r = linalg.transpose ins(%t : tensor<64x8x4xi8>) outs(%e : tensor<8x64x4xi8>) permutation = [1, 0, 2]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x64x4xi8>, memref<8x64x4xi8>) -> ()
  return
}
func.func private @far(%x: memref<128x3xi8>, %out: memref<3x128xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<128x3xi8> to tensor<128x3xi8>
  %e = tensor.empty() : tensor<3x128xi8>
  %r = linalg.transpose ins(%t : tensor<128x3xi8>) outs(%e : tensor<3x128xi8>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3x128xi8>, memref<3x128xi8>) -> ()
  return
}
// CHECK: func.func private @scale(%{{.*}}: memref<?xf32>, %[[BY:.*]]: f32, %{{.*}}: memref<?xf32>)
// CHECK: arith.mulf %{{.*}}, %[[BY]]
func.func private @scale(%x: memref<40xf32>, %out: memref<40xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<40xf32> to tensor<40xf32>
  %by = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%t : tensor<40xf32>) outs(%e : tensor<40xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.mulf %v, %by : f32
    linalg.yield %m : f32
  } -> tensor<40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<40xf32>, memref<40xf32>) -> ()
  return
}
// CHECK-NOT: @scale_other
func.func private @scale_other(%x: memref<7xf32>, %out: memref<7xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<7xf32> to tensor<7xf32>
  %by = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%t : tensor<7xf32>) outs(%e : tensor<7xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.mulf %v, %by : f32
    linalg.yield %m : f32
  } -> tensor<7xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<7xf32>, memref<7xf32>) -> ()
  return
}
// CHECK: func.func private @power(
// CHECK: arith.constant 2.5
func.func private @power(%x: memref<7xf32>, %out: memref<7xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<7xf32> to tensor<7xf32>
  %by = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]} ins(%t : tensor<7xf32>) outs(%e : tensor<7xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = math.powf %v, %by : f32
    linalg.yield %m : f32
  } -> tensor<7xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<7xf32>, memref<7xf32>) -> ()
  return
}
func.func private @fill(%out: memref<8x16xi8>) attributes {sdx.kernel} {
  %zero = arith.constant 0 : i8
  %e = tensor.empty() : tensor<8x16xi8>
  %r = linalg.fill ins(%zero : i8) outs(%e : tensor<8x16xi8>) -> tensor<8x16xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x16xi8>, memref<8x16xi8>) -> ()
  return
}
// Sums keep their sizes.
func.func private @rows(%x: memref<8x16xi8>, %out: memref<8xi32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<8x16xi8> to tensor<8x16xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8xi32>) -> tensor<8xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, m) -> (n, m)>, affine_map<(n, m) -> (n)>], iterator_types = ["parallel", "reduction"]} ins(%t : tensor<8x16xi8>) outs(%f : tensor<8xi32>) {
  ^bb0(%v: i8, %o: i32):
    %w = arith.extsi %v : i8 to i32
    %m = arith.addi %o, %w : i32
    linalg.yield %m : i32
  } -> tensor<8xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xi32>, memref<8xi32>) -> ()
  return
}
