// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-select-plans))" | FileCheck %s
// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-lower-conv))" -o /dev/null

// Each form, by the shapes and the layout that ask for it. What is wrong with a plan by hand is told by the pass that selects and by the one
// that lowers.

// CHECK-LABEL: func.func private @im2col
// CHECK-SAME: cpu.plan = #cpu.conv_plan<im2col, tile_rows = 8, columns = 3, chunk_tiles = 8, packing = in_first_tile>
func.func private @im2col(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @polyphase
// CHECK-SAME: cpu.plan = #cpu.conv_plan<im2col, polyphase = true, tile_rows = 8, columns = 3, chunk_tiles = 8, packing = in_first_tile>
func.func private @polyphase(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x28x28xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x28x28xf32>, memref<1x64x28x28xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @row_buffer
// CHECK-SAME: cpu.plan = #cpu.conv_plan<row_buffer, tile_rows = 8, columns = 3>
func.func private @row_buffer(%x: memref<1x3x224x224xf32>, %w: memref<1x4x147x8xf32>, %out: memref<1x32x112x112xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x224x224xf32> to tensor<1x3x224x224xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x147x8xf32> to tensor<1x4x147x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x112x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x112x112xf32>) -> tensor<1x32x112x112xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x224x224xf32>, tensor<1x4x147x8xf32>) outs(%f : tensor<1x32x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x112x112xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x112x112xf32>, memref<1x32x112x112xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @depthwise
// CHECK-SAME: cpu.plan = #cpu.conv_plan<depthwise>
func.func private @depthwise(%x: memref<1x32x56x56xf32>, %w: memref<32x1x9x8xf32>, %out: memref<1x32x56x56xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x56x56xf32> to tensor<1x32x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1x9x8xf32> to tensor<32x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x56x56xf32>, tensor<32x1x9x8xf32>) outs(%f : tensor<1x32x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 32 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x56x56xf32>, memref<1x32x56x56xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @output_channels
// CHECK-SAME: cpu.plan = #cpu.conv_plan<output_channels, columns = 2>
func.func private @output_channels(%x: memref<1x512x7x7xf32>, %w: memref<1x16x4608x32xf32>, %out: memref<1x512x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x512x7x7xf32> to tensor<1x512x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x16x4608x32xf32> to tensor<1x16x4608x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x512x7x7xf32>, tensor<1x16x4608x32xf32>) outs(%f : tensor<1x512x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<1x512x7x7xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x512x7x7xf32>, memref<1x512x7x7xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @winograd
// CHECK-SAME: cpu.plan = #cpu.conv_plan<winograd, tile_rows = 8, columns = 2, group_rows = 8, threads = filters>
func.func private @winograd(%x: memref<1x64x56x56xf32>, %w: memref<1x8x2304x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x2304x8xf32> to tensor<1x8x2304x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x2304x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @kept
// CHECK-SAME: cpu.plan = #cpu.conv_plan<im2col, tile_rows = 8, columns = 3, chunk_tiles = 4, packing = before>
func.func private @kept(%x: memref<1x3x224x224xf32>, %w: memref<1x4x147x8xf32>, %out: memref<1x32x112x112xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x224x224xf32> to tensor<1x3x224x224xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x147x8xf32> to tensor<1x4x147x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x112x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x112x112xf32>) -> tensor<1x32x112x112xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x224x224xf32>, tensor<1x4x147x8xf32>) outs(%f : tensor<1x32x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x112x112xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x112x112xf32>, memref<1x32x112x112xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @short_rows
// CHECK-SAME: cpu.plan = #cpu.conv_plan<im2col, tile_rows = 8, columns = 3, chunk_tiles = 1, packing = never>
func.func private @short_rows(%x: memref<1x3x8x8xf32>, %w: memref<1x1x27x8xf32>, %out: memref<1x8x8x8xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x8x8xf32> to tensor<1x3x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x8x8xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x8x8xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x8x8xf32>, memref<1x8x8x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @buffered_short_rows
// CHECK-SAME: cpu.plan = #cpu.conv_plan<row_buffer, tile_rows = 8, columns = 3>
func.func private @buffered_short_rows(%x: memref<1x3x8x8xf32>, %w: memref<1x1x27x8xf32>, %out: memref<1x8x8x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x8x8xf32> to tensor<1x3x8x8xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x8x8xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x8x8xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x8x8xf32>, memref<1x8x8x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @numbers_by_hand
// CHECK-SAME: cpu.plan = #cpu.conv_plan<im2col, tile_rows = 4, columns = 2, chunk_tiles = 3, packing = before>
func.func private @numbers_by_hand(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, tile_rows = 4, columns = 2, chunk_tiles = 3, packing = before>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @no_winograd(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<winograd>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<winograd> of kernel 'no_winograd' does not fit: filters are transformed for Winograd's algorithm, and only for it}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @only_winograd(%x: memref<1x64x56x56xf32>, %w: memref<1x8x2304x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x2304x8xf32> to tensor<1x8x2304x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col> of kernel 'only_winograd' does not fit: filters are transformed for Winograd's algorithm, and only for it}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x2304x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @no_bf16(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<bf16x3>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<bf16x3> of kernel 'no_bf16' does not fit: filters are sums of bf16, and only for 'bf16x3'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @many_channels(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'many_channels' does not fit: it has not 1 to 4 channels}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @dilated(%x: memref<1x3x56x56xf32>, %w: memref<1x1x27x8xf32>, %out: memref<1x8x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'dilated' does not fit: it has dilations}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x56x56xf32>, memref<1x8x56x56xf32>) -> ()
  return
}

// -----

func.func private @one_tap(%x: memref<1x3x56x56xf32>, %w: memref<1x1x3x8xf32>, %out: memref<1x8x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x3x8xf32> to tensor<1x1x3x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'one_tap' does not fit: its kernel has one tap}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x3x8xf32>) outs(%f : tensor<1x8x56x56xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x56x56xf32>, memref<1x8x56x56xf32>) -> ()
  return
}

// -----

func.func private @wide_kernel(%x: memref<1x3x56x56xf32>, %w: memref<1x1x243x8xf32>, %out: memref<1x8x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x243x8xf32> to tensor<1x1x243x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'wide_kernel' does not fit: its kernel has more than 8 columns}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x243x8xf32>) outs(%f : tensor<1x8x56x56xf32>)
      {kernel_shape = array<i64: 9, 9>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 4, 4>, pads_end = array<i64: 4, 4>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x56x56xf32>, memref<1x8x56x56xf32>) -> ()
  return
}

// -----

func.func private @far_columns(%x: memref<1x3x56x56xf32>, %w: memref<1x1x27x8xf32>, %out: memref<1x8x19x19xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x19x19xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x19x19xf32>) -> tensor<1x8x19x19xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'far_columns' does not fit: its columns have a stride of more than 2}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x19x19xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 3, 3>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x19x19xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x19x19xf32>, memref<1x8x19x19xf32>) -> ()
  return
}

// -----

func.func private @grouped(%x: memref<1x4x56x56xf32>, %w: memref<2x1x18x8xf32>, %out: memref<1x8x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x4x56x56xf32> to tensor<1x4x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<2x1x18x8xf32> to tensor<2x1x18x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer> of kernel 'grouped' does not fit: it is not of two dimensions and one group}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x4x56x56xf32>, tensor<2x1x18x8xf32>) outs(%f : tensor<1x8x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 2 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x56x56xf32>, memref<1x8x56x56xf32>) -> ()
  return
}

// -----

func.func private @not_in_lanes(%x: memref<1x512x7x7xf32>, %w: memref<1x64x4608x8xf32>, %out: memref<1x512x7x7xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<output_channels>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x512x7x7xf32> to tensor<1x512x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x64x4608x8xf32> to tensor<1x64x4608x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<output_channels> of kernel 'not_in_lanes' does not fit: its filters do not lie in the lanes of vectors}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x512x7x7xf32>, tensor<1x64x4608x8xf32>) outs(%f : tensor<1x512x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x512x7x7xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x512x7x7xf32>, memref<1x512x7x7xf32>) -> ()
  return
}

// -----

func.func private @many_positions(%x: memref<1x64x56x56xf32>, %w: memref<1x2x576x32xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<output_channels>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x576x32xf32> to tensor<1x2x576x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<output_channels> of kernel 'many_positions' does not fit: it has not at most 64 output positions}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x2x576x32xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @no_depth(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<depthwise>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<depthwise> of kernel 'no_depth' does not fit: its groups have not one channel and one or two filters}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @many_filters(%x: memref<1x8x56x56xf32>, %w: memref<8x1x9x8xf32>, %out: memref<1x32x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<depthwise>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x8x56x56xf32> to tensor<1x8x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<8x1x9x8xf32> to tensor<8x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<depthwise> of kernel 'many_filters' does not fit: its groups have not one channel and one or two filters}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x8x56x56xf32>, tensor<8x1x9x8xf32>) outs(%f : tensor<1x32x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 8 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x56x56xf32>, memref<1x32x56x56xf32>) -> ()
  return
}

// -----

func.func private @unstrided(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, polyphase = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, polyphase = true> of kernel 'unstrided' does not fit: its columns have no stride of 2, or its rows one of more}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @wrong_form(%x: memref<1x32x56x56xf32>, %w: memref<32x1x9x8xf32>, %out: memref<1x32x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<depthwise, polyphase = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x56x56xf32> to tensor<1x32x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1x9x8xf32> to tensor<32x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x28x28xf32>) -> tensor<1x32x28x28xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<depthwise, polyphase = true> of kernel 'wrong_form' does not fit: polyphase inputs are for 'im2col' and 'bf16x3'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x56x56xf32>, tensor<32x1x9x8xf32>) outs(%f : tensor<1x32x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 32 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x28x28xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x28x28xf32>, memref<1x32x28x28xf32>) -> ()
  return
}

// -----

func.func private @wide_phases(%x: memref<1x16x56x56xf32>, %w: memref<1x1x1296x8xf32>, %out: memref<1x8x24x24xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, polyphase = true>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x16x56x56xf32> to tensor<1x16x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x1296x8xf32> to tensor<1x1x1296x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x24x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x24x24xf32>) -> tensor<1x8x24x24xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, polyphase = true> of kernel 'wide_phases' does not fit: its kernel has more than 7 columns}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x16x56x56xf32>, tensor<1x1x1296x8xf32>) outs(%f : tensor<1x8x24x24xf32>)
      {kernel_shape = array<i64: 9, 9>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x24x24xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x8x24x24xf32>, memref<1x8x24x24xf32>) -> ()
  return
}

// -----

func.func private @uneven_tiles(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, tile_rows = 3>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, tile_rows = 3> of kernel 'uneven_tiles' does not fit: its tiles have filters whose number divides 8, 16 at most}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @too_many_columns(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, columns = 9>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, columns = 9> of kernel 'too_many_columns' does not fit: a tile takes one to 64 vector registers of sums}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @negative_chunk(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, chunk_tiles = -1>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, chunk_tiles = -1> of kernel 'negative_chunk' does not fit: a number is 0, for one that is chosen, to 65536}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @several_read(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, packing = never>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, packing = never> of kernel 'several_read' does not fit: its inputs are packed, for several tiles read them}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @threads_of_im2col(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, threads = filters>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, threads = filters> of kernel 'threads_of_im2col' does not fit: 'threads' is not for 'im2col'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @panels_of_im2col(%x: memref<1x64x56x56xf32>, %w: memref<1x8x576x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, panels = 4>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, panels = 4> of kernel 'panels_of_im2col' does not fit: 'panels' is not for 'im2col'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @tiles_of_depthwise(%x: memref<1x32x56x56xf32>, %w: memref<32x1x9x8xf32>, %out: memref<1x32x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<depthwise, tile_rows = 8>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x56x56xf32> to tensor<1x32x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1x9x8xf32> to tensor<32x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<depthwise, tile_rows = 8> of kernel 'tiles_of_depthwise' does not fit: 'tile_rows' is not for 'depthwise'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x56x56xf32>, tensor<32x1x9x8xf32>) outs(%f : tensor<1x32x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 32 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x56x56xf32>, memref<1x32x56x56xf32>) -> ()
  return
}

// -----

func.func private @chunks_of_a_row_buffer(%x: memref<1x3x224x224xf32>, %w: memref<1x4x147x8xf32>, %out: memref<1x32x112x112xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<row_buffer, chunk_tiles = 2>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x224x224xf32> to tensor<1x3x224x224xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x147x8xf32> to tensor<1x4x147x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x112x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x112x112xf32>) -> tensor<1x32x112x112xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<row_buffer, chunk_tiles = 2> of kernel 'chunks_of_a_row_buffer' does not fit: 'chunk_tiles' is not for 'row_buffer'}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x224x224xf32>, tensor<1x4x147x8xf32>) outs(%f : tensor<1x32x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x112x112xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x112x112xf32>, memref<1x32x112x112xf32>) -> ()
  return
}

// -----

func.func private @gathered(%x: memref<1x3x224x224xf32>, %w: memref<1x4x147x8xf32>, %out: memref<1x32x112x112xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<im2col, packing = in_first_tile>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x224x224xf32> to tensor<1x3x224x224xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x147x8xf32> to tensor<1x4x147x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x112x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x112x112xf32>) -> tensor<1x32x112x112xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<im2col, packing = in_first_tile> of kernel 'gathered' does not fit: its inputs are packed before its tiles, for they are gathered or masks take registers}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x224x224xf32>, tensor<1x4x147x8xf32>) outs(%f : tensor<1x32x112x112xf32>)
      {kernel_shape = array<i64: 7, 7>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 3, 3>, pads_end = array<i64: 3, 3>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x112x112xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x32x112x112xf32>, memref<1x32x112x112xf32>) -> ()
  return
}

// -----

func.func private @many_blocks(%x: memref<1x512x7x7xf32>, %w: memref<1x16x4608x32xf32>, %out: memref<1x512x7x7xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<output_channels, columns = 9>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x512x7x7xf32> to tensor<1x512x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x16x4608x32xf32> to tensor<1x16x4608x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x512x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<output_channels, columns = 9> of kernel 'many_blocks' does not fit: its 'columns' are 1 to 8 blocks of filters, 1 where there is one}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x512x7x7xf32>, tensor<1x16x4608x32xf32>) outs(%f : tensor<1x512x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true>} -> tensor<1x512x7x7xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x512x7x7xf32>, memref<1x512x7x7xf32>) -> ()
  return
}

// -----

func.func private @wide_panels(%x: memref<1x64x56x56xf32>, %w: memref<1x8x2304x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<winograd, columns = 3>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x2304x8xf32> to tensor<1x8x2304x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<winograd, columns = 3> of kernel 'wide_panels' does not fit: its panels have one or 2 vectors}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x2304x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}

// -----

func.func private @uneven_groups(%x: memref<1x64x56x56xf32>, %w: memref<1x8x2304x8xf32>, %out: memref<1x64x56x56xf32>) attributes {sdx.kernel, cpu.plan = #cpu.conv_plan<winograd, tile_rows = 8, group_rows = 12>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x56x56xf32> to tensor<1x64x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x2304x8xf32> to tensor<1x8x2304x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x64x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
  // expected-error@+1 {{the plan #cpu.conv_plan<winograd, tile_rows = 8, group_rows = 12> of kernel 'uneven_groups' does not fit: its tiles have 8 filters, or twice as many of one vector where they leave none empty, and its groups as many}}
  %m = cpu.conv ins(%tx, %tw : tensor<1x64x56x56xf32>, tensor<1x8x2304x8xf32>) outs(%f : tensor<1x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x64x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x64x56x56xf32>, memref<1x64x56x56xf32>) -> ()
  return
}
