// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-select-plans))" | FileCheck %s
// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-lower-contractions))" -o /dev/null

// The loops of products by sizes, packing and machine. What is wrong with a plan by hand is told by the pass that selects and by the one
// that lowers.

// CHECK-LABEL: func.func private @many_rows
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 128, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 8, prefetch = near>]>
func.func private @many_rows(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @one_row
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, tile_rows = 8, tile_columns = 32, panels = 4, prefetch = near>]>
func.func private @one_row(%x: memref<1x768xf32>, %w: memref<24x768x32xf32>, %out: memref<1x768xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x768xf32> to tensor<1x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x768xf32>) -> tensor<1x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<1x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<1x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x768xf32>, memref<1x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @open_rows
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32, panels = 4, prefetch = near>,
// CHECK-SAME: <"fma", rows = 16, max_rows = 32, tile_rows = 8, tile_columns = 32, chunk_tiles = 2, prefetch = l2>,
// CHECK-SAME: <"fma", rows = 128, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 8, prefetch = near>]>
func.func private @open_rows(%x: memref<?x768xf32>, %w: memref<24x768x32xf32>, %out: memref<?x768xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<?x768xf32> to tensor<?x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %tx, %c0 : tensor<?x768xf32>
  %e = tensor.empty(%m) : tensor<?x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x768xf32>) -> tensor<?x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<?x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<?x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x768xf32>, memref<?x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @open_rows_of_a_small_matrix
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 128, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 10>]>
func.func private @open_rows_of_a_small_matrix(%x: memref<?x64xf32>, %w: memref<2x64x32xf32>, %out: memref<?x64xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<?x64xf32> to tensor<?x64xf32>
  %tw = bufferization.to_tensor %w restrict : memref<2x64x32xf32> to tensor<2x64x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %tx, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<?x64xf32>, tensor<2x64x32xf32>) outs(%f : tensor<?x64xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x64xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x64xf32>, memref<?x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @bytes
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"vnni", rows = 64, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 4, prefetch = near>]>
func.func private @bytes(%x: memref<64x768xi8>, %w: memref<24x192x128xi8>, %out: memref<64x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<int8 = vnni>} {
  %tx = bufferization.to_tensor %x restrict : memref<64x768xi8> to tensor<64x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<64x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<64x768xi32>) -> tensor<64x768xi32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<64x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<64x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<64x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<64x768xi32>, memref<64x768xi32>) -> ()
  return
}

// All rows of a panel are a chunk of tile registers.
// CHECK-LABEL: func.func private @bytes_by_tile_registers
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 128, tile_rows = 8, tile_columns = 32, chunk_tiles = 16, prefetch = near>]>
func.func private @bytes_by_tile_registers(%x: memref<128x768xi8>, %w: memref<24x192x128xi8>, %out: memref<128x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<int8 = amx>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xi8> to tensor<128x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// CHECK-LABEL: func.func private @bytes_of_few_rows
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"vnni", rows = 8, tile_rows = 8, tile_columns = 32, prefetch = l2>]>
func.func private @bytes_of_few_rows(%x: memref<8x768xi8>, %w: memref<24x192x128xi8>, %out: memref<8x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<int8 = amx>} {
  %tx = bufferization.to_tensor %x restrict : memref<8x768xi8> to tensor<8x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<8x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x768xi32>) -> tensor<8x768xi32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<8x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<8x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<8x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<8x768xi32>, memref<8x768xi32>) -> ()
  return
}

// CHECK-LABEL: func.func private @bf16
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"dot_bf16", rows = 64, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 4, prefetch = near>]>
func.func private @bf16(%x: memref<64x768xbf16>, %w: memref<24x384x64xbf16>, %out: memref<64x768xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<bf16 = dot>} {
  %tx = bufferization.to_tensor %x restrict : memref<64x768xbf16> to tensor<64x768xbf16>
  %tw = bufferization.to_tensor %w restrict : memref<24x384x64xbf16> to tensor<24x384x64xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x768xf32>) -> tensor<64x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<64x768xbf16>, tensor<24x384x64xbf16>) outs(%f : tensor<64x768xf32>) {packing = #cpu.packing<bf16, panel = 32>} -> tensor<64x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<64x768xf32>, memref<64x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @split_into_bf16
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"amx_bf16x6", rows = 256, tile_rows = 8, tile_columns = 32, chunk_tiles = 16, order = rows_outer, part_rows = 256, part_depth = 256, part_panels = 4>]>
func.func private @split_into_bf16(%x: memref<256x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<256x1024xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx>} {
  %tx = bufferization.to_tensor %x restrict : memref<256x1024xf32> to tensor<256x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<256x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<256x1024xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<256x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<256x1024xf32>, memref<256x1024xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @open_rows_split_into_bf16
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32, panels = 4, prefetch = near>,
// CHECK-SAME: <"fma", rows = 16, max_rows = 32, tile_rows = 8, tile_columns = 32, chunk_tiles = 2, prefetch = l2>,
// CHECK-SAME: <"amx_bf16x6", rows = 128, tile_rows = 8, tile_columns = 32, chunk_tiles = 16, part_rows = 256, part_depth = 256, part_panels = 4>]>
func.func private @open_rows_split_into_bf16(%x: memref<?x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<?x1024xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx>} {
  %tx = bufferization.to_tensor %x restrict : memref<?x1024xf32> to tensor<?x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %tx, %c0 : tensor<?x1024xf32>
  %e = tensor.empty(%m) : tensor<?x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1024xf32>) -> tensor<?x1024xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<?x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<?x1024xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?x1024xf32>, memref<?x1024xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @strassen
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 512, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 21, order = rows_outer, prefetch = near, strassen = 1024>],
// CHECK-SAME: direct = <"fma", rows = 512, tile_rows = 6, tile_columns = 32, panels = 2, chunk_tiles = 21, order = rows_outer, prefetch = near>>
func.func private @strassen(%x: memref<512x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<512x1024xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<512x1024xf32> to tensor<512x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<512x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<512x1024xf32>) {packing = #cpu.packing<f32, panel = 32>, strassen = 1024 : i64} -> tensor<512x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<512x1024xf32>, memref<512x1024xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @few_bits
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"dequant", rows = 1, tile_rows = 8, tile_columns = 32, panels = 4>]>
func.func private @few_bits(%x: memref<1x768xf32>, %w: memref<24x192x64xi8>, %s: memref<24x24x2x32xf32>, %out: memref<1x768xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x768xf32> to tensor<1x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x64xi8> to tensor<24x192x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<24x24x2x32xf32> to tensor<24x24x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x768xf32>) -> tensor<1x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<1x768xf32>, tensor<24x192x64xi8>, tensor<24x24x2x32xf32>) outs(%f : tensor<1x768xf32>) {packing = #cpu.packing<u4, panel = 32>, block = 32 : i64} -> tensor<1x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x768xf32>, memref<1x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @compressed
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"w21", rows = 1, tile_rows = 8, tile_columns = 32, panels = 2>]>
func.func private @compressed(%x: memref<1x768xf32>, %w: memref<24x256x32xi64>, %s: memref<24x1x1x32xf32>, %out: memref<1x768xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x768xf32> to tensor<1x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x256x32xi64> to tensor<24x256x32xi64>
  %ts = bufferization.to_tensor %s restrict : memref<24x1x1x32xf32> to tensor<24x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x768xf32>) -> tensor<1x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<1x768xf32>, tensor<24x256x32xi64>, tensor<24x1x1x32xf32>) outs(%f : tensor<1x768xf32>) {packing = #cpu.packing<w21, panel = 32>, block = 768 : i64} -> tensor<1x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<1x768xf32>, memref<1x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @narrow_vectors
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 128, tile_rows = 6, tile_columns = 16, chunk_tiles = 11, prefetch = near>]>
func.func private @narrow_vectors(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<vector_bits = 256>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @by_hand
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 7, tile_rows = 5, tile_columns = 8, chunk_tiles = 3, order = rows_outer>]>
func.func private @by_hand(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 7, tile_rows = 5, tile_columns = 8, chunk_tiles = 3, order = rows_outer>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @without_strassen
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"fma", rows = 512, tile_rows = 8, tile_columns = 32, chunk_tiles = 4>]>
func.func private @without_strassen(%x: memref<512x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<512x1024xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 512, tile_rows = 8, tile_columns = 32, chunk_tiles = 4>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<512x1024xf32> to tensor<512x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<512x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<512x1024xf32>) {packing = #cpu.packing<f32, panel = 32>, strassen = 1024 : i64} -> tensor<512x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<512x1024xf32>, memref<512x1024xf32>) -> ()
  return
}

// -----

func.func private @no_such_micro(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fast", rows = 8, tile_rows = 8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'no_such_micro' does not fit: there is no micro-kernel 'fast'}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @micro_of_bytes(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<int8 = vnni>, cpu.plan = #cpu.matmul_plan<[<"vnni", rows = 8, tile_rows = 8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'micro_of_bytes' does not fit: micro-kernel 'vnni' does not take weights of f32}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @no_instructions(%x: memref<128x768xi8>, %w: memref<24x192x128xi8>, %out: memref<128x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<int8 = maddwd>, cpu.plan = #cpu.matmul_plan<[<"vnni", rows = 8, tile_rows = 8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xi8> to tensor<128x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  // expected-error@+1 {{of kernel 'no_instructions' does not fit: the processor has no instructions for micro-kernel 'vnni'}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// -----

func.func private @no_rows(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 0, tile_rows = 8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'no_rows' does not fit: 'rows' is 1 to 1048576}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @no_chunk(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, chunk_tiles = 0>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'no_chunk' does not fit: 'chunk_tiles' is 1 to 65536}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @broken_panel(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 24>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'broken_panel' does not fit: a panel of 32 columns has no whole tiles of 24}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @half_panels(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 4, tile_columns = 16, panels = 2>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'half_panels' does not fit: a tile of several panels has all of their columns}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @half_compressed(%x: memref<128x768xf32>, %w: memref<24x256x32xi64>, %s: memref<24x1x1x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"w21", rows = 8, tile_rows = 4, tile_columns = 16>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x256x32xi64> to tensor<24x256x32xi64>
  %ts = bufferization.to_tensor %s restrict : memref<24x1x1x32xf32> to tensor<24x1x1x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'half_compressed' does not fit: a tile has all columns of a compressed panel}}
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<128x768xf32>, tensor<24x256x32xi64>, tensor<24x1x1x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<w21, panel = 32>, block = 768 : i64} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @too_large_tile(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 40, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'too_large_tile' does not fit: a tile takes one to 64 vector registers of sums}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @negative_tile(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = -8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'negative_tile' does not fit: a tile takes one to 64 vector registers of sums}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @no_panels(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, panels = 0>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'no_panels' does not fit: a tile has one panel or more}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @prefetch_of_scaled(%x: memref<128x768xf32>, %w: memref<24x192x64xi8>, %s: memref<24x24x2x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"dequant", rows = 8, tile_rows = 8, tile_columns = 32, prefetch = near>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x64xi8> to tensor<24x192x64xi8>
  %ts = bufferization.to_tensor %s restrict : memref<24x24x2x32xf32> to tensor<24x24x2x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'prefetch_of_scaled' does not fit: only panels of known size, without scales, that come from memory are fetched}}
  %p = cpu.packed_matmul ins(%tx, %tw, %ts : tensor<128x768xf32>, tensor<24x192x64xi8>, tensor<24x24x2x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<u4, panel = 32>, block = 32 : i64} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @parts_of_vectors(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, part_rows = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'parts_of_vectors' does not fit: parts of rows, values of k and panels are for split tiles}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @uneven_weights(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, strassen = 768>], direct = <"fma", rows = 8, tile_rows = 8, tile_columns = 32>>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'uneven_weights' does not fit: its weights are not known to be even enough for Strassen's algorithm}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @other_halves(%x: memref<512x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<512x1024xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, strassen = 512>], direct = <"fma", rows = 8, tile_rows = 8, tile_columns = 32>>} {
  %tx = bufferization.to_tensor %x restrict : memref<512x1024xf32> to tensor<512x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  // expected-error@+1 {{of kernel 'other_halves' does not fit: Strassen's algorithm adds halves of 1024 values of k of these weights}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<512x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<512x1024xf32>) {packing = #cpu.packing<f32, panel = 32>, strassen = 1024 : i64} -> tensor<512x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<512x1024xf32>, memref<512x1024xf32>) -> ()
  return
}

// -----

func.func private @strassen_alone(%x: memref<512x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<512x1024xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, strassen = 1024>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<512x1024xf32> to tensor<512x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  // expected-error@+1 {{of kernel 'strassen_alone' does not fit: a case by split tiles or Strassen's algorithm is the last, and wants a direct one beside it}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<512x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<512x1024xf32>) {packing = #cpu.packing<f32, panel = 32>, strassen = 1024 : i64} -> tensor<512x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<512x1024xf32>, memref<512x1024xf32>) -> ()
  return
}

// -----

func.func private @few_rows_for_strassen(%x: memref<20x1024xf32>, %w: memref<32x1024x32xf32>, %out: memref<20x1024xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32, strassen = 1024>], direct = <"fma", rows = 8, tile_rows = 8, tile_columns = 32>>} {
  %tx = bufferization.to_tensor %x restrict : memref<20x1024xf32> to tensor<20x1024xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1024x32xf32> to tensor<32x1024x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x1024xf32>) -> tensor<20x1024xf32>
  // expected-error@+1 {{of kernel 'few_rows_for_strassen' does not fit: there are too few rows for Strassen's algorithm}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<20x1024xf32>, tensor<32x1024x32xf32>) outs(%f : tensor<20x1024xf32>) {packing = #cpu.packing<f32, panel = 32>, strassen = 1024 : i64} -> tensor<20x1024xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<20x1024xf32>, memref<20x1024xf32>) -> ()
  return
}

// -----

func.func private @direct_for_nothing(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 8, tile_rows = 8, tile_columns = 32>], direct = <"fma", rows = 8, tile_rows = 8, tile_columns = 32>>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'direct_for_nothing' does not fit: no run takes its direct case}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @cases_of_known_rows(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32>, <"fma", rows = 8, tile_rows = 8, tile_columns = 32>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'cases_of_known_rows' does not fit: its number of rows is known, so that it has one case}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @chunk_of_tile_registers(%x: memref<128x768xi8>, %w: memref<24x192x128xi8>, %out: memref<128x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>, cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 64, tile_rows = 8, tile_columns = 32, chunk_tiles = 3>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xi8> to tensor<128x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  // expected-error@+1 {{of kernel 'chunk_of_tile_registers' does not fit: beside tile registers a chunk has a multiple of 32 rows}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// -----

func.func private @tile_beside_tile_registers(%x: memref<128x768xi8>, %w: memref<24x192x128xi8>, %out: memref<128x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>, cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 64, tile_rows = 6, tile_columns = 32, chunk_tiles = 16>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xi8> to tensor<128x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  // expected-error@+1 {{of kernel 'tile_beside_tile_registers' does not fit: beside tile registers a tile has 1, 2, 4, 8 or 16 rows}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// -----

func.func private @no_depth_for_tile_registers(%x: memref<128x60xi8>, %w: memref<24x15x128xi8>, %out: memref<128x768xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>, cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 64, tile_rows = 8, tile_columns = 32, chunk_tiles = 4>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x60xi8> to tensor<128x60xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x15x128xi8> to tensor<24x15x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  // expected-error@+1 {{of kernel 'no_depth_for_tile_registers' does not fit: there are too few values of k for tile registers}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x60xi8>, tensor<24x15x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// -----

func.func private @few_rows_to_split(%x: memref<8x768xf32>, %w: memref<24x768x32xf32>, %out: memref<8x768xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>, cpu.plan = #cpu.matmul_plan<[<"amx_bf16x6", rows = 8, tile_rows = 8, tile_columns = 32, part_rows = 32, part_depth = 32, part_panels = 1>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<8x768xf32> to tensor<8x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x768xf32>) -> tensor<8x768xf32>
  // expected-error@+1 {{of kernel 'few_rows_to_split' does not fit: tile registers take 32 rows or more of f32}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<8x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<8x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<8x768xf32>, memref<8x768xf32>) -> ()
  return
}

// -----

func.func private @uneven_parts(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>, cpu.plan = #cpu.matmul_plan<[<"amx_bf16x6", rows = 64, tile_rows = 8, tile_columns = 32, part_rows = 33, part_depth = 32, part_panels = 1>]>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'uneven_parts' does not fit: 'part_rows' and 'part_depth' are multiples of 32, of at most 64 MiB of bf16, and 'part_panels' is 1 or more}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

func.func private @plan_of_a_convolution(%x: memref<128x768xf32>, %w: memref<24x768x32xf32>, %out: memref<128x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xf32> to tensor<128x768xf32>
  %tw = bufferization.to_tensor %w restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x768xf32>) -> tensor<128x768xf32>
  // expected-error@+1 {{of kernel 'plan_of_a_convolution' does not fit: it is for another kind of kernel}}
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xf32>, tensor<24x768x32xf32>) outs(%f : tensor<128x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x768xf32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xf32>, memref<128x768xf32>) -> ()
  return
}

// -----

// expected-error@+1 {{'max_rows' must grow from case to case, but 1 comes after 1}}
func.func private @shrinking_cases() attributes {cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32>, <"fma", rows = 8, tile_rows = 8, tile_columns = 32>]>}

// -----

// expected-error@+1 {{the last case and 'direct' have no 'max_rows'}}
func.func private @bounded_last_case() attributes {cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32>]>}

// -----

// expected-error@+1 {{'max_rows' is at most 2147483648, not 9223372036854775807}}
func.func private @endless_case() attributes {cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 9223372036854775807, tile_rows = 8, tile_columns = 32>, <"fma", rows = 8, tile_rows = 8, tile_columns = 32>]>}

// -----

// expected-error@+1 {{a plan has 1 to 16 cases, not 17}}
func.func private @many_cases() attributes {cpu.plan = #cpu.matmul_plan<[<"fma", rows = 1, max_rows = 1, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 2, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 3, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 4, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 5, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 6, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 7, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 8, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 9, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 10, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 11, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 12, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 13, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 14, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 15, tile_rows = 8, tile_columns = 32>, <"fma", rows = 1, max_rows = 16, tile_rows = 8, tile_columns = 32>, <"fma", rows = 8, tile_rows = 8, tile_columns = 32>]>}

// -----

// Of an open number of values of k most are expected to fill tile registers.
// CHECK-LABEL: func.func private @open_depth_of_bytes
// CHECK-SAME: cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 64, tile_rows = 8, tile_columns = 32,
func.func private @open_depth_of_bytes(%x: memref<4x64x?xi8>, %w: memref<4x2x?x128xi8>, %out: memref<4x64x64xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx, int8 = amx>} {
  %zero = arith.constant 0 : i32
  %tx = bufferization.to_tensor %x restrict : memref<4x64x?xi8> to tensor<4x64x?xi8>
  %tw = bufferization.to_tensor %w restrict : memref<4x2x?x128xi8> to tensor<4x2x?x128xi8>
  %e = tensor.empty() : tensor<4x64x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4x64x64xi32>) -> tensor<4x64x64xi32>
  %r = cpu.packed_matmul ins(%tx, %tw : tensor<4x64x?xi8>, tensor<4x2x?x128xi8>) outs(%f : tensor<4x64x64xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<4x64x64xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x64x64xi32>, memref<4x64x64xi32>) -> ()
  return
}
