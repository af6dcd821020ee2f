// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -cpu-select-plans | FileCheck %s --check-prefix=PLAN
// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -cpu-lower-contractions -canonicalize -cse | FileCheck %s
// RUN: onnx-opt %s --target=skylake-avx512 -split-input-file -cpu-select-plans | FileCheck %s --check-prefix=VECTORS
// RUN: onnx-opt %s --target=skylake-avx512 -split-input-file -cpu-lower-contractions -canonicalize -cse | FileCheck %s --check-prefix=UNPACKED

// Many rows by integers of few bits: these less whole zero points are bf16
// exactly, so three products of parts make 32 values of k, of a block of scales;
// those of four blocks are scaled at a time.
// PLAN-LABEL: func.func private @whole_zeros
// PLAN-SAME: <"amx_bf16x3", rows = 64, tile_rows = 8, tile_columns = 32, {{.*}}part_rows = 64, part_depth = 256
// CHECK-LABEL: func.func private @whole_zeros
// CHECK: memref.alloc() {{.*}} : memref<2x8x3x32x32xbf16>
// CHECK: memref.alloc() {{.*}} : memref<2x8x1x2x16x32xbf16>
// CHECK: memref.alloc() {{.*}} : memref<4x32x32xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK-COUNT-12: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: tdpbf16ps
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1
// CHECK-COUNT-4: vector.fma
// CHECK: vector.store

// Without tile registers panels become f32 once for the rows of a chunk.
// VECTORS-LABEL: func.func private @whole_zeros
// VECTORS-SAME: <"fma", rows = 64, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 11>
// UNPACKED-LABEL: func.func private @whole_zeros
// UNPACKED: %[[PANELS:.*]] = memref.alloc() {{.*}} : memref<2x256x32xf32>
// UNPACKED: scf.for %{{.*}} = %c0 to %c64 step %c1
// UNPACKED-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// UNPACKED-COUNT-4: vector.store %{{.*}}, %[[PANELS]]
// UNPACKED: vector.load %[[PANELS]]
// UNPACKED-COUNT-12: vector.fma
func.func private @whole_zeros(%x: memref<64x256xf32>, %w: memref<16x64x64xi8>, %s: memref<16x8x2x32xf32>, %out: memref<64x512xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<64x256xf32> to tensor<64x256xf32>
  %tw = bufferization.to_tensor %w restrict : memref<16x64x64xi8> to tensor<16x64x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<16x8x2x32xf32> to tensor<16x8x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<64x256xf32>, tensor<16x64x64xi8>, tensor<16x8x2x32xf32>) outs(%f : tensor<64x512xf32>) {packing = #cpu.packing<u4, panel = 32>, block = 32 : i64, whole_zeros} -> tensor<64x512xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<64x512xf32>, memref<64x512xf32>) -> ()
  return
}

// -----

// Others are f32 first, which are split into three bf16.
// PLAN-LABEL: func.func private @zeros_of_floats
// PLAN-SAME: <"amx_bf16x6", rows = 64
// CHECK-LABEL: func.func private @zeros_of_floats
// CHECK: memref.alloc() {{.*}} : memref<2x8x3x2x16x32xbf16>
// CHECK-COUNT-24: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: tdpbf16ps
func.func private @zeros_of_floats(%x: memref<64x256xf32>, %w: memref<16x64x64xi8>, %s: memref<16x8x2x32xf32>, %out: memref<64x512xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<64x256xf32> to tensor<64x256xf32>
  %tw = bufferization.to_tensor %w restrict : memref<16x64x64xi8> to tensor<16x64x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<16x8x2x32xf32> to tensor<16x8x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<64x256xf32>, tensor<16x64x64xi8>, tensor<16x8x2x32xf32>) outs(%f : tensor<64x512xf32>) {packing = #cpu.packing<u4, panel = 32>, block = 32 : i64} -> tensor<64x512xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<64x512xf32>, memref<64x512xf32>) -> ()
  return
}

// -----

// Where rows may be rounded, one product does, of numbers with their scales;
// few rows are multiplied as bytes, four values of k at a time, of all blocks.
// PLAN-LABEL: func.func private @rounded
// PLAN-SAME: <"dequant_vnni", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32, panels = 4>
// PLAN-SAME: <"dequant_vnni", rows = 16, max_rows = 32
// PLAN-SAME: <"amx_bf16x1", rows = 128
// CHECK-LABEL: func.func private @rounded
// CHECK: memref.alloc() {{.*}} : memref<1x528xi8>
// CHECK: memref.alloc() {{.*}} : memref<1x16x2xf32>
// CHECK: arith.maximumf
// CHECK: math.roundeven
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK-NOT: vpdpbusd
// CHECK-COUNT-8: vector.fma
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
func.func private @rounded(%x: memref<?x512xf32>, %w: memref<16x128x64xi8>, %s: memref<16x16x1x32xf32>, %out: memref<?x512xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<?x512xf32> to tensor<?x512xf32>
  %tw = bufferization.to_tensor %w restrict : memref<16x128x64xi8> to tensor<16x128x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<16x16x1x32xf32> to tensor<16x16x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  %e = tensor.empty(%rows) : tensor<?x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<?x512xf32>, tensor<16x128x64xi8>, tensor<16x16x1x32xf32>) outs(%f : tensor<?x512xf32>) {packing = #cpu.packing<u4, panel = 32>, block = 32 : i64, whole_zeros, sdx.rounded = i8} -> tensor<?x512xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x512xf32>, memref<?x512xf32>) -> ()
  return
}
