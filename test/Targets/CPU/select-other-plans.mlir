// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-select-plans))" -o /dev/null

// Plans for kernels of another kind.

func.func private @rows(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 32, width = 16, rows = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<8x768xf32> to tensor<8x768xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%tx : tensor<8x768xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %s = arith.addf %acc, %v : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 32, width = 16, rows = 1> of kernel 'rows' does not fit: it is for another kind of kernel}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 1, unroll = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 1, unroll = 1> of kernel 'pool' does not fit: it is for another kind of kernel}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @loops(%x: memref<4x4xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 1, unroll = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.insert_slice %tx into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 1, unroll = 1> of kernel 'loops' does not fit: it is for another kind of kernel}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// -----

func.func private @packing(%x: memref<7x40xf32>, %out: memref<2x7x32xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 1, unroll = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<7x40xf32> to tensor<7x40xf32>
  %e = tensor.empty() : tensor<2x7x32xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 1, unroll = 1> of kernel 'packing' does not fit: it is for another kind of kernel}}
  %r = cpu.pack_rhs ins(%tx : tensor<7x40xf32>) outs(%e : tensor<2x7x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x7x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x7x32xf32>, memref<2x7x32xf32>) -> ()
  return
}
