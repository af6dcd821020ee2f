// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-decompose-packed-ops))" | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-decompose-packed-ops,cpu-lower-rows,cpu-lower-loops))" | FileCheck %s --check-prefix=LOOPS

// Each packing and each layout of filters becomes an unpacking and a loop nest, of scalars in the end. test/Python/test_plain_loops.py
// computes them.

// LOOPS-NOT: vector.
// LOOPS-NOT: cpu.plan

// CHECK-LABEL: func.func private @f32
// CHECK: tensor.empty() : tensor<40x7xf32>
// CHECK: %[[N:.*]] = linalg.index 0
// CHECK: %[[K:.*]] = linalg.index 1
// CHECK: %[[PANEL:.*]] = arith.divui %[[N]], %c32
// CHECK: %[[COLUMN:.*]] = arith.remui %[[N]], %c32
// CHECK: tensor.extract %{{.*}}[%[[PANEL]],
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @f32(%a: memref<5x7xf32>, %b: memref<2x7x32xf32>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x7xf32> to tensor<5x7xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x7x32xf32> to tensor<2x7x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<5x7xf32>, tensor<2x7x32xf32>) outs(%f : tensor<5x40xf32>)
      {packing = #cpu.packing<f32, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @batches
// CHECK: tensor.empty() : tensor<3x40x7xf32>
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @batches(%a: memref<3x5x7xf32>, %b: memref<3x2x7x32xf32>, %out: memref<3x5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<3x5x7xf32> to tensor<3x5x7xf32>
  %tb = bufferization.to_tensor %b restrict : memref<3x2x7x32xf32> to tensor<3x2x7x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5x40xf32>) -> tensor<3x5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<3x5x7xf32>, tensor<3x2x7x32xf32>) outs(%f : tensor<3x5x40xf32>)
      {packing = #cpu.packing<f32, panel = 32>} -> tensor<3x5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3x5x40xf32>, memref<3x5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @bf16
// CHECK: tensor.empty() : tensor<40x7xbf16>
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @bf16(%a: memref<5x7xbf16>, %b: memref<2x4x64xbf16>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x7xbf16> to tensor<5x7xbf16>
  %tb = bufferization.to_tensor %b restrict : memref<2x4x64xbf16> to tensor<2x4x64xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<5x7xbf16>, tensor<2x4x64xbf16>) outs(%f : tensor<5x40xf32>)
      {packing = #cpu.packing<bf16, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @i8
// CHECK: tensor.empty() : tensor<40x7xi8>
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @i8(%a: memref<5x7xi8>, %b: memref<2x2x128xi8>, %out: memref<5x40xi32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x7xi8> to tensor<5x7xi8>
  %tb = bufferization.to_tensor %b restrict : memref<2x2x128xi8> to tensor<2x2x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<5x40xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<5x40xi32>) -> tensor<5x40xi32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<5x7xi8>, tensor<2x2x128xi8>) outs(%f : tensor<5x40xi32>)
      {packing = #cpu.packing<i8, panel = 32>} -> tensor<5x40xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xi32>, memref<5x40xi32>) -> ()
  return
}

// CHECK-LABEL: func.func private @u2
// CHECK: tensor.empty() : tensor<40x32xf32>
// CHECK: arith.shrui
// CHECK: arith.uitofp
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @u2(%a: memref<5x32xf32>, %b: memref<2x8x32xi8>, %s: memref<2x2x2x32xf32>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x32xf32> to tensor<5x32xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x8x32xi8> to tensor<2x8x32xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x2x2x32xf32> to tensor<2x2x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<5x32xf32>, tensor<2x8x32xi8>, tensor<2x2x2x32xf32>) outs(%f : tensor<5x40xf32>)
      {block = 16 : i64, packing = #cpu.packing<u2, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @u4
// CHECK: tensor.empty() : tensor<40x32xf32>
// CHECK: arith.shrui
// CHECK: arith.uitofp
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @u4(%a: memref<5x32xf32>, %b: memref<2x8x64xi8>, %s: memref<2x2x2x32xf32>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x32xf32> to tensor<5x32xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x8x64xi8> to tensor<2x8x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x2x2x32xf32> to tensor<2x2x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<5x32xf32>, tensor<2x8x64xi8>, tensor<2x2x2x32xf32>) outs(%f : tensor<5x40xf32>)
      {block = 16 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @u8
// CHECK: tensor.empty() : tensor<40x32xf32>
// CHECK: arith.shrui
// CHECK: arith.uitofp
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @u8(%a: memref<5x32xf32>, %b: memref<2x8x128xi8>, %s: memref<2x2x2x32xf32>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x32xf32> to tensor<5x32xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x8x128xi8> to tensor<2x8x128xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x2x2x32xf32> to tensor<2x2x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<5x32xf32>, tensor<2x8x128xi8>, tensor<2x2x2x32xf32>) outs(%f : tensor<5x40xf32>)
      {block = 16 : i64, packing = #cpu.packing<u8, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @u4_without_zeros
// CHECK: arith.uitofp
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @u4_without_zeros(%a: memref<5x32xf32>, %b: memref<2x8x64xi8>, %s: memref<2x2x1x32xf32>, %out: memref<5x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<5x32xf32> to tensor<5x32xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x8x64xi8> to tensor<2x8x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x2x1x32xf32> to tensor<2x2x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x40xf32>) -> tensor<5x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<5x32xf32>, tensor<2x8x64xi8>, tensor<2x2x1x32xf32>) outs(%f : tensor<5x40xf32>)
      {block = 16 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<5x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x40xf32>, memref<5x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @w24
// CHECK-COUNT-3: tensor.extract
// CHECK: arith.sitofp
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @w24(%a: memref<1x7xf32>, %b: memref<2x7x96xi8>, %s: memref<2x1x1x32xf32>, %out: memref<1x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<1x7xf32> to tensor<1x7xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x7x96xi8> to tensor<2x7x96xi8>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<1x7xf32>, tensor<2x7x96xi8>, tensor<2x1x1x32xf32>) outs(%f : tensor<1x40xf32>)
      {block = 7 : i64, packing = #cpu.packing<w24, panel = 32>} -> tensor<1x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x40xf32>, memref<1x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @w21
// CHECK: arith.shrsi
// CHECK: arith.sitofp
// CHECK-NOT: cpu.packed_matmul
// CHECK: linalg.generic {{.*}}"reduction"]
func.func private @w21(%a: memref<1x7xf32>, %b: memref<2x3x32xi64>, %s: memref<2x1x1x32xf32>, %out: memref<1x40xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %ta = bufferization.to_tensor %a restrict : memref<1x7xf32> to tensor<1x7xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x3x32xi64> to tensor<2x3x32xi64>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %r = cpu.packed_matmul ins(%ta, %tb, %ts : tensor<1x7xf32>, tensor<2x3x32xi64>, tensor<2x1x1x32xf32>) outs(%f : tensor<1x40xf32>)
      {block = 7 : i64, packing = #cpu.packing<w21, panel = 32>} -> tensor<1x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x40xf32>, memref<1x40xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_f32
// CHECK-NOT: cpu.pack_rhs
// CHECK: linalg.generic
// CHECK: arith.cmpi slt
// CHECK: tensor.extract
// CHECK: arith.select
func.func private @pack_f32(%b: memref<7x40xf32>, %out: memref<2x7x32xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<7x40xf32> to tensor<7x40xf32>
  %e = tensor.empty() : tensor<2x7x32xf32>
  %r = cpu.pack_rhs ins(%tb : tensor<7x40xf32>) outs(%e : tensor<2x7x32xf32>)
      {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x7x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x7x32xf32>, memref<2x7x32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_transposed
// CHECK-NOT: cpu.pack_rhs
// CHECK: linalg.generic
func.func private @pack_transposed(%b: memref<40x7xf32>, %out: memref<2x7x32xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<40x7xf32> to tensor<40x7xf32>
  %e = tensor.empty() : tensor<2x7x32xf32>
  %r = cpu.pack_rhs transposed ins(%tb : tensor<40x7xf32>) outs(%e : tensor<2x7x32xf32>)
      {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x7x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x7x32xf32>, memref<2x7x32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_heads
// CHECK-NOT: cpu.pack_rhs
// CHECK: arith.divui %{{.*}}, %c3
func.func private @pack_heads(%b: memref<2x7x3x40xf32>, %out: memref<6x2x7x32xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<2x7x3x40xf32> to tensor<2x7x3x40xf32>
  %e = tensor.empty() : tensor<6x2x7x32xf32>
  %r = cpu.pack_rhs ins(%tb : tensor<2x7x3x40xf32>) outs(%e : tensor<6x2x7x32xf32>)
      {packing = #cpu.packing<f32, panel = 32>} -> tensor<6x2x7x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<6x2x7x32xf32>, memref<6x2x7x32xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_w24
// CHECK-NOT: cpu.pack_rhs
// CHECK: math.roundeven
// CHECK: arith.trunci
func.func private @pack_w24(%b: memref<7x40xf32>, %s: memref<2x1x1x32xf32>, %out: memref<2x7x96xi8>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<7x40xf32> to tensor<7x40xf32>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %e = tensor.empty() : tensor<2x7x96xi8>
  %r = cpu.pack_rhs ins(%tb, %ts : tensor<7x40xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x7x96xi8>)
      {packing = #cpu.packing<w24, panel = 32>} -> tensor<2x7x96xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x7x96xi8>, memref<2x7x96xi8>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_w21
// CHECK-NOT: cpu.pack_rhs
// CHECK-COUNT-3: math.roundeven
func.func private @pack_w21(%b: memref<7x40xf32>, %s: memref<2x1x1x32xf32>, %out: memref<2x3x32xi64>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<7x40xf32> to tensor<7x40xf32>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %e = tensor.empty() : tensor<2x3x32xi64>
  %r = cpu.pack_rhs ins(%tb, %ts : tensor<7x40xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x3x32xi64>)
      {packing = #cpu.packing<w21, panel = 32>} -> tensor<2x3x32xi64>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x3x32xi64>, memref<2x3x32xi64>) -> ()
  return
}

// CHECK-LABEL: func.func private @filters
// CHECK: tensor.empty() : tensor<12x4x3x3xf32>
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @filters(%x: memref<1x4x9x9xf32>, %w: memref<1x2x36x8xf32>, %out: memref<1x12x9x9xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x9x9xf32> to tensor<1x4x9x9xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x36x8xf32> to tensor<1x2x36x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x12x9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x12x9x9xf32>) -> tensor<1x12x9x9xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x9x9xf32>, tensor<1x2x36x8xf32>) outs(%f : tensor<1x12x9x9xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x12x9x9xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x12x9x9xf32>, memref<1x12x9x9xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @groups
// CHECK: tensor.empty() : tensor<15x2x3xf32>
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @groups(%x: memref<1x6x9xf32>, %w: memref<3x1x6x8xf32>, %out: memref<1x15x9xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x6x9xf32> to tensor<1x6x9xf32>
  %tw = bufferization.to_tensor %w restrict : memref<3x1x6x8xf32> to tensor<3x1x6x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x15x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x15x9xf32>) -> tensor<1x15x9xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x6x9xf32>, tensor<3x1x6x8xf32>) outs(%f : tensor<1x15x9xf32>)
      {kernel_shape = array<i64: 3>, strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 1>, pads_end = array<i64: 1>, group = 3 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x15x9xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x15x9xf32>, memref<1x15x9xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @in_lanes
// CHECK: tensor.empty() : tensor<40x4x3x3xf32>
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @in_lanes(%x: memref<1x4x9x9xf32>, %w: memref<1x2x36x32xf32>, %out: memref<1x40x9x9xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x9x9xf32> to tensor<1x4x9x9xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x36x32xf32> to tensor<1x2x36x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40x9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40x9x9xf32>) -> tensor<1x40x9x9xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x9x9xf32>, tensor<1x2x36x32xf32>) outs(%f : tensor<1x40x9x9xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<1x40x9x9xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x40x9x9xf32>, memref<1x40x9x9xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @bf16x2
// CHECK-COUNT-2: arith.extf
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @bf16x2(%x: memref<1x40x9x9xf32>, %w: memref<1x2x18x2048xbf16>, %out: memref<1x40x9x9xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x40x9x9xf32> to tensor<1x40x9x9xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x18x2048xbf16> to tensor<1x2x18x2048xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40x9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40x9x9xf32>) -> tensor<1x40x9x9xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x40x9x9xf32>, tensor<1x2x18x2048xbf16>) outs(%f : tensor<1x40x9x9xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x40x9x9xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x40x9x9xf32>, memref<1x40x9x9xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @winograd2_stride1
// CHECK-COUNT-16: tensor.extract
// CHECK: arith.truncf
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @winograd2_stride1(%x: memref<1x4x8x8xf32>, %w: memref<1x2x64x8xf32>, %out: memref<1x12x8x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x8x8xf32> to tensor<1x4x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x64x8xf32> to tensor<1x2x64x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x12x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x12x8x8xf32>) -> tensor<1x12x8x8xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x8x8xf32>, tensor<1x2x64x8xf32>) outs(%f : tensor<1x12x8x8xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x12x8x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x12x8x8xf32>, memref<1x12x8x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @winograd4_stride1
// CHECK-COUNT-36: tensor.extract
// CHECK: arith.truncf
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @winograd4_stride1(%x: memref<1x4x8x8xf32>, %w: memref<1x2x144x8xf32>, %out: memref<1x12x8x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x8x8xf32> to tensor<1x4x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x144x8xf32> to tensor<1x2x144x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x12x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x12x8x8xf32>) -> tensor<1x12x8x8xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x8x8xf32>, tensor<1x2x144x8xf32>) outs(%f : tensor<1x12x8x8xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x12x8x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x12x8x8xf32>, memref<1x12x8x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @winograd2_stride2
// CHECK-COUNT-16: tensor.extract
// CHECK: arith.truncf
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @winograd2_stride2(%x: memref<1x4x8x8xf32>, %w: memref<1x2x64x8xf32>, %out: memref<1x12x4x4xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x8x8xf32> to tensor<1x4x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x64x8xf32> to tensor<1x2x64x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x12x4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x8x8xf32>, tensor<1x2x64x8xf32>) outs(%f : tensor<1x12x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2, stride = 2>} -> tensor<1x12x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x12x4x4xf32>, memref<1x12x4x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @winograd4_stride2
// CHECK-COUNT-36: tensor.extract
// CHECK: arith.truncf
// CHECK-NOT: cpu.conv
// CHECK: linalg.generic {{.*}}"reduction"
func.func private @winograd4_stride2(%x: memref<1x4x8x8xf32>, %w: memref<1x2x144x8xf32>, %out: memref<1x12x4x4xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x8x8xf32> to tensor<1x4x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x144x8xf32> to tensor<1x2x144x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x12x4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
  %r = cpu.conv ins(%tx, %tw : tensor<1x4x8x8xf32>, tensor<1x2x144x8xf32>) outs(%f : tensor<1x12x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4, stride = 2>} -> tensor<1x12x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x12x4x4xf32>, memref<1x12x4x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_filters
// CHECK-NOT: cpu.pack_conv_weights
// CHECK: tensor.collapse_shape
// CHECK: tensor.extract
func.func private @pack_filters(%w: memref<12x4x3x3xf32>, %out: memref<1x2x36x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tw = bufferization.to_tensor %w restrict : memref<12x4x3x3xf32> to tensor<12x4x3x3xf32>
  %e = tensor.empty() : tensor<1x2x36x8xf32>
  %r = cpu.pack_conv_weights ins(%tw : tensor<12x4x3x3xf32>) outs(%e : tensor<1x2x36x8xf32>)
      {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x2x36x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x2x36x8xf32>, memref<1x2x36x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_bf16x2
// CHECK-NOT: cpu.pack_conv_weights
// CHECK-COUNT-2: arith.truncf
func.func private @pack_bf16x2(%w: memref<40x40x3x3xf32>, %out: memref<1x2x18x2048xbf16>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tw = bufferization.to_tensor %w restrict : memref<40x40x3x3xf32> to tensor<40x40x3x3xf32>
  %e = tensor.empty() : tensor<1x2x18x2048xbf16>
  %r = cpu.pack_conv_weights ins(%tw : tensor<40x40x3x3xf32>) outs(%e : tensor<1x2x18x2048xbf16>)
      {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x2x18x2048xbf16>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x2x18x2048xbf16>, memref<1x2x18x2048xbf16>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_winograd
// CHECK-NOT: cpu.pack_conv_weights
// CHECK-COUNT-9: tensor.extract
// CHECK: arith.truncf
func.func private @pack_winograd(%w: memref<12x4x3x3xf32>, %out: memref<1x2x144x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tw = bufferization.to_tensor %w restrict : memref<12x4x3x3xf32> to tensor<12x4x3x3xf32>
  %e = tensor.empty() : tensor<1x2x144x8xf32>
  %r = cpu.pack_conv_weights ins(%tw : tensor<12x4x3x3xf32>) outs(%e : tensor<1x2x144x8xf32>)
      {filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x2x144x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x2x144x8xf32>, memref<1x2x144x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pool
// CHECK-NOT: sdx.max_pool
// CHECK: linalg.pooling_nchw_max
func.func private @pool(%x: memref<1x4x8x8xf32>, %out: memref<1x4x4x4xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x8x8xf32> to tensor<1x4x8x8xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %r = sdx.max_pool ins(%tx : tensor<1x4x8x8xf32>) outs(%f : tensor<1x4x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x4x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x4x4x4xf32>, memref<1x4x4x4xf32>) -> ()
  return
}

// LOOPS-LABEL: func.func private @elements
// LOOPS: scf.parallel
// LOOPS: math.exp %{{.*}} : f32
// LOOPS-NOT: vector.
// CHECK-LABEL: func.func private @elements
// CHECK: linalg.exp
func.func private @elements(%x: memref<4x8xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tx = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.exp ins(%tx : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// An operation at a time, but over vectors.
// LOOPS-LABEL: func.func private @on_vectors
// LOOPS: math.exp %{{.*}} : vector<16xf32>
// CHECK-LABEL: func.func private @on_vectors
// CHECK: linalg.exp
func.func private @on_vectors(%x: memref<4x8xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops<vectors = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.exp ins(%tx : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pack_bytes
// CHECK-NOT: cpu.pack_rhs
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK: arith.select {{.*}} : i8
// CHECK: arith.extsi {{.*}} : i8 to i16
func.func private @pack_bytes(%b: memref<7x40xi8>, %out: memref<2x4x64xi16>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %tb = bufferization.to_tensor %b restrict : memref<7x40xi8> to tensor<7x40xi8>
  %e = tensor.empty() : tensor<2x4x64xi16>
  %r = cpu.pack_rhs ins(%tb : tensor<7x40xi8>) outs(%e : tensor<2x4x64xi16>)
      {packing = #cpu.packing<i16, panel = 32>} -> tensor<2x4x64xi16>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x4x64xi16>, memref<2x4x64xi16>) -> ()
  return
}
