// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(sdx-attach-target{cpu=znver4},func.func(cpu-select-plans))" | FileCheck %s

// CHECK: func.func private @chosen{{.*}}cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 6, tile_columns = 32, panels = 2, chunk_rows = {{[0-9]+}}, in_place = true>
func.func private @chosen(%x: memref<1x14x14x64xi8>, %w: memref<2x16x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x16x128xi8> to tensor<2x16x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x16x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @no_unit(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"amx_int8", tile_rows = 8, tile_columns = 32, chunk_rows = 32>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{the machine has no micro-kernel 'amx_int8' for such numbers}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @other(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"fma", tile_rows = 8, tile_columns = 32, chunk_rows = 32>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{the machine has no micro-kernel 'fma' for such numbers}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @high(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 17, tile_columns = 32, chunk_rows = 34>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{'tile_rows' must be 1 to 16}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @odd(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 4, tile_columns = 24, chunk_rows = 4>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{'tile_columns' must divide a panel of 32 and fill a vector}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @panels(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 4, tile_columns = 32, panels = 3, chunk_rows = 4>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{'panels' must be 1, or up to those that there are in tiles of whole panels}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @many(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 16, tile_columns = 32, panels = 2, chunk_rows = 5>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{'chunk_rows' must be a multiple of 16, at most 2^20}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @place(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 6, tile_columns = 32, panels = 2, chunk_rows = 12, in_place = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{windows are no rows of the input: 'in_place' is for kernels of one tap without strides and pads}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @shared(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 6, tile_columns = 32, panels = 2, chunk_rows = 12, threads = filters>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{threads share filters only where a chunk has all positions}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

func.func private @lanes(%x: memref<1x14x14x64xi8>, %out: memref<1x7x7x64xi8>) attributes {sdx.kernel, cpu.plan = #cpu.channel_window_plan<lanes = 48, positions = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %c0 = arith.constant 0 : i8
  %e = tensor.empty() : tensor<1x7x7x64xi8>
  %z = linalg.fill ins(%c0 : i8) outs(%e : tensor<1x7x7x64xi8>) -> tensor<1x7x7x64xi8>
  // expected-error@+1 {{'lanes' must be a power of two, at most 64}}
  %0 = cpu.channels_last_max_pool ins(%tx : tensor<1x14x14x64xi8>) outs(%z : tensor<1x7x7x64xi8>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>, is_unsigned} -> tensor<1x7x7x64xi8>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x7x7x64xi8>, memref<1x7x7x64xi8>) -> ()
  return
}

// -----

// A processor's own words: bytes that were widened have another micro-kernel.
func.func private @widened(%x: memref<1x14x14x64xi16>, %w: memref<2x32x64xi16>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"vnni", tile_rows = 6, tile_columns = 32, panels = 2, chunk_rows = 12, in_place = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi16> to tensor<1x14x14x64xi16>
  %tw = bufferization.to_tensor %w restrict : memref<2x32x64xi16> to tensor<2x32x64xi16>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{the machine has no micro-kernel 'vnni' for such numbers}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi16>, tensor<2x32x64xi16>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i16, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

// CHECK: func.func private @maddwd{{.*}}cpu.plan = #cpu.narrow_conv_plan<"maddwd", tile_rows = 6, tile_columns = 16, chunk_rows = {{[0-9]+}}, in_place = true>
func.func private @maddwd(%x: memref<1x14x14x64xi16>, %w: memref<2x32x64xi16>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, sdx.target = #cpu.target<vector_bits = 256, int8 = maddwd>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi16> to tensor<1x14x14x64xi16>
  %tw = bufferization.to_tensor %w restrict : memref<2x32x64xi16> to tensor<2x32x64xi16>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi16>, tensor<2x32x64xi16>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i16, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}
