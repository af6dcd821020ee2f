// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -verify-diagnostics \
// RUN:   -cpu-lower-conv -canonicalize -cse | FileCheck %s

// A chunk splits the inputs of its panels, and each block of filters is
// multiplied by all of them: 20 products of parts make 32 channels of a block of
// 32 filters and positions. What is not allowed to be split is multiplied and
// added in f32. The last panel has four positions, in one tile register.
// CHECK-LABEL: func.func private @parts
// CHECK: %[[THREADS:.*]] = sdx.thread_count
// CHECK: scf.parallel
// CHECK: %[[INPUTS:.*]] = memref.alloc() {{.*}} : memref<7x8x3x2x16x32xbf16>
// CHECK: %[[BAD:.*]] = memref.alloc() {{.*}} : memref<7xi1>
// CHECK: %[[SUMS:.*]] = memref.alloc() {{.*}} : memref<32x32xf32>
// CHECK: scf.for
// CHECK-COUNT-6: vector.store %{{.*}}, %[[INPUTS]]
// CHECK: memref.store %{{.*}}, %[[BAD]]
// CHECK: scf.if
// CHECK-COUNT-3: vector.store %{{.*}}, %[[INPUTS]]
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK-COUNT-20: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: tdpbf16ps
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1
// CHECK-COUNT-2: vector.fma
// CHECK-NOT: vector.fma
// CHECK: else
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c8
// CHECK-COUNT-16: vector.load %[[SUMS]]
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK-COUNT-10: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: tdpbf16ps
func.func private @parts(%x: memref<1x256x14x14xf32>, %w: memref<1x32x8x2048xbf16>,
    %out: memref<1x1024x14x14xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x256x14x14xf32> to tensor<1x256x14x14xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x32x8x2048xbf16> to tensor<1x32x8x2048xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1024x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1024x14x14xf32>) -> tensor<1x1024x14x14xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x256x14x14xf32>, tensor<1x32x8x2048xbf16>)
      outs(%f : tensor<1x1024x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x1024x14x14xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x1024x14x14xf32>, memref<1x1024x14x14xf32>) -> ()
  return
}

// -----

// Parts of 4,608 values of two panels do not stay in the L2 cache: those of a
// range of channels do, and sums stay until the last.
// CHECK-LABEL: func.func private @ranges
// CHECK: memref.alloc() {{.*}} : memref<2x72x3x2x16x32xbf16>
// CHECK: memref.alloc(%{{.*}}) {{.*}} : memref<?x32xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c72 step %c1 iter_args
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: scf.for %{{.*}} = %c0 to %c72 step %c1 iter_args
func.func private @ranges(%x: memref<1x512x14x14xf32>, %w: memref<1x16x144x2048xbf16>,
    %out: memref<1x512x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x512x14x14xf32> to tensor<1x512x14x14xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x16x144x2048xbf16> to tensor<1x16x144x2048xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x512x14x14xf32>, tensor<1x16x144x2048xbf16>)
      outs(%f : tensor<1x512x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x512x7x7xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x512x7x7xf32>, memref<1x512x7x7xf32>) -> ()
  return
}

// -----

func.func private @open(%x: memref<1x64x?x?xf32>, %w: memref<1x2x2x2048xbf16>,
    %out: memref<1x64x?x?xf32>) attributes {sdx.kernel} {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %tx = bufferization.to_tensor %x restrict : memref<1x64x?x?xf32> to tensor<1x64x?x?xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x2x2048xbf16> to tensor<1x2x2x2048xbf16>
  %zero = arith.constant 0.0 : f32
  %h = tensor.dim %tx, %c2 : tensor<1x64x?x?xf32>
  %v = tensor.dim %tx, %c3 : tensor<1x64x?x?xf32>
  %e = tensor.empty(%h, %v) : tensor<1x64x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x?x?xf32>) -> tensor<1x64x?x?xf32>
  // expected-error@+1 {{does not fit: filters that are sums of bf16 are for vectors of 16 numbers and for sizes that are known}}
  %y = cpu.conv ins(%tx, %tw : tensor<1x64x?x?xf32>, tensor<1x2x2x2048xbf16>)
      outs(%f : tensor<1x64x?x?xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x64x?x?xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x64x?x?xf32>, memref<1x64x?x?xf32>) -> ()
  return
}
