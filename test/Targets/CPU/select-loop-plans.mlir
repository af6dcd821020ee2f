// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-select-plans))" | FileCheck %s
// RUN: onnx-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(func.func(cpu-lower-pool,cpu-lower-rows))" -o /dev/null

// Plans of rows and pools, by shapes; what is wrong with a plan by hand is told by the pass that selects and by those that lower.

// CHECK-LABEL: func.func private @elements
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, chunk = 4096>
func.func private @elements(%x: memref<?xf32>, %out: memref<?xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %tx, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%tx : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @few_elements
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 0>
func.func private @few_elements(%x: memref<3x7xf32>, %out: memref<3x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<3x7xf32> to tensor<3x7xf32>
  %e = tensor.empty() : tensor<3x7xf32>
  %r = linalg.exp ins(%tx : tensor<3x7xf32>) outs(%e : tensor<3x7xf32>) -> tensor<3x7xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3x7xf32>, memref<3x7xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @row
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1>
func.func private @row(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel} {
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
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @many_rows
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1, prefetch = true>
func.func private @many_rows(%x: memref<800x768xf32>, %out: memref<800xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<800x768xf32> to tensor<800x768xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<800xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<800xf32>) -> tensor<800xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%tx : tensor<800x768xf32>) outs(%f : tensor<800xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %s = arith.addf %acc, %v : f32
    linalg.yield %s : f32
  } -> tensor<800xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<800xf32>, memref<800xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @long_rows
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1>
func.func private @long_rows(%x: memref<800x7680xf32>, %out: memref<800xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<800x7680xf32> to tensor<800x7680xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<800xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<800xf32>) -> tensor<800xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%tx : tensor<800x7680xf32>) outs(%f : tensor<800xf32>) {
  ^bb0(%v: f32, %acc: f32):
    %s = arith.addf %acc, %v : f32
    linalg.yield %s : f32
  } -> tensor<800xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<800xf32>, memref<800xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @squares
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 1, transposed = 0>
func.func private @squares(%x: memref<64x80xf32>, %out: memref<80x64xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<64x80xf32> to tensor<64x80xf32>
  %e = tensor.empty() : tensor<80x64xf32>
  %r = linalg.transpose ins(%tx : tensor<64x80xf32>) outs(%e : tensor<80x64xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<80x64xf32>, memref<80x64xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @pixels
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 0, transposed = 1, chunk = 4096>
func.func private @pixels(%x: memref<3x50000xf32>, %out: memref<50000x3xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<3x50000xf32> to tensor<3x50000xf32>
  %e = tensor.empty() : tensor<50000x3xf32>
  %r = linalg.transpose ins(%tx : tensor<3x50000xf32>) outs(%e : tensor<50000x3xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<50000x3xf32>, memref<50000x3xf32>) -> ()
  return
}

// Open rows are taken for short ones.
// CHECK-LABEL: func.func private @open_bytes
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 0, transposed = 1, chunk = 4096>
func.func private @open_bytes(%x: memref<?xi8>, %out: memref<?x2xi8>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %tx = bufferization.to_tensor %x restrict : memref<?xi8> to tensor<?xi8>
  %n = memref.dim %x, %c0 : memref<?xi8>
  %e = tensor.empty(%n) : tensor<?x2xi8>
  %r = linalg.broadcast ins(%tx : tensor<?xi8>) outs(%e : tensor<?x2xi8>) dimensions = [1]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x2xi8>, memref<?x2xi8>) -> ()
  return
}

// CHECK-LABEL: func.func private @pool
// CHECK-SAME: cpu.plan = #cpu.pool_plan<columns = 32, width = 16, rows = 28>
func.func private @pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @few_planes
// CHECK-SAME: cpu.plan = #cpu.pool_plan<columns = 8, width = 16, rows = 8>
func.func private @few_planes(%x: memref<1x2x9x9xf32>, %out: memref<1x2x9x9xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x2x9x9xf32> to tensor<1x2x9x9xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x9x9xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x2x9x9xf32>) -> tensor<1x2x9x9xf32>
  %r = sdx.max_pool ins(%tx : tensor<1x2x9x9xf32>) outs(%f : tensor<1x2x9x9xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>} -> tensor<1x2x9x9xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x2x9x9xf32>, memref<1x2x9x9xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @loops
// CHECK-SAME: cpu.plan = #cpu.loops<vectors = true>
// CHECK-SAME: sdx.plan_reason = "operation 'tensor.insert_slice'"
func.func private @loops(%x: memref<4x4xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.insert_slice %tx into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @by_hand
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 4, unroll = 8, lane = 1>
func.func private @by_hand(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 4, unroll = 8, lane = 1>} {
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
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @scalars
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 1, unroll = 1>
func.func private @scalars(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 1, unroll = 1>} {
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
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @small_pool
// CHECK-SAME: cpu.plan = #cpu.pool_plan<columns = 4, width = 4, rows = 3>
func.func private @small_pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 4, width = 4, rows = 3>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

// Open rows are taken for short ones, several at a time, but a long one that
// goes alone has as many sums as ever.
// CHECK-LABEL: func.func private @open_rows
// CHECK-SAME: cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1, prefetch = true, rows = 4>
func.func private @open_rows(%x: memref<?x?xf32>, %out: memref<?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : memref<?x?xf32> to tensor<?x?xf32>
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce {arith.addf} ins(%tx : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----

func.func private @no_dim(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 2>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 4, lane = 2> of kernel 'no_dim' does not fit: it has 2 dimensions, from 0 on}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @three_lanes(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 3, unroll = 4, lane = 1>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 3, unroll = 4, lane = 1> of kernel 'three_lanes' does not fit: 'lanes' must be a power of two from 2 to 64}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @many_lanes(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 128, unroll = 4, lane = 1>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 128, unroll = 4, lane = 1> of kernel 'many_lanes' does not fit: 'lanes' must be a power of two from 2 to 64}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @lanes_of_short_rows(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 0>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 1, lane = 0> of kernel 'lanes_of_short_rows' does not fit: 'lanes' must be a power of two from 2 to 8}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @unrolled_by_three(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 3, lane = 1>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 3, lane = 1> of kernel 'unrolled_by_three' does not fit: 'unroll' must be a power of two from 1 to 8}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @no_next_row(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0, prefetch = true>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0, prefetch = true> of kernel 'no_next_row' does not fit: no next row lies along its dimension 0}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @no_row_beside(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0, rows = 4>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0, rows = 4> of kernel 'no_row_beside' does not fit: no next row lies along its dimension 0}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @three_rows(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 1, rows = 3>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 2, lane = 1, rows = 3> of kernel 'three_rows' does not fit: 'rows' must be a power of two from 1 to 8}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @unrolled_too_often(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 8, unroll = 2, lane = 0>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 8, unroll = 2, lane = 0> of kernel 'unrolled_too_often' does not fit: 'unroll' must be a power of two from 1 to 1}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @lanes_without_lane(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 4> of kernel 'lanes_without_lane' does not fit: without 'lane' there are 'lanes' and 'unroll' of 1 only}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @row_in_chunks(%x: memref<8x768xf32>, %out: memref<8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1, chunk = 64>} {
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
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 4, lane = 1, chunk = 64> of kernel 'row_in_chunks' does not fit: a row is no task in chunks}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func private @odd_chunk(%x: memref<8192xf32>, %out: memref<8192xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, chunk = 48>} {
  %tx = bufferization.to_tensor %x restrict : memref<8192xf32> to tensor<8192xf32>
  %e = tensor.empty() : tensor<8192xf32>
  %r = linalg.exp ins(%tx : tensor<8192xf32>) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, chunk = 48> of kernel 'odd_chunk' does not fit: 'chunk' must be a multiple of 32 and less than 8192}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8192xf32>, memref<8192xf32>) -> ()
  return
}

// -----

func.func private @negative_chunk(%x: memref<8192xf32>, %out: memref<8192xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, chunk = -32>} {
  %tx = bufferization.to_tensor %x restrict : memref<8192xf32> to tensor<8192xf32>
  %e = tensor.empty() : tensor<8192xf32>
  %r = linalg.exp ins(%tx : tensor<8192xf32>) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, chunk = -32> of kernel 'negative_chunk' does not fit: 'chunk' must be a multiple of 32 and less than 8192}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8192xf32>, memref<8192xf32>) -> ()
  return
}

// -----

func.func private @other_squares(%x: memref<64x80xf32>, %out: memref<80x64xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 1, lane = 1, transposed = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<64x80xf32> to tensor<64x80xf32>
  %e = tensor.empty() : tensor<80x64xf32>
  %r = linalg.transpose ins(%tx : tensor<64x80xf32>) outs(%e : tensor<80x64xf32>) permutation = [1, 0]
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 1, lane = 1, transposed = 1> of kernel 'other_squares' does not fit: no loads are contiguous along its dimension 1}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<80x64xf32>, memref<80x64xf32>) -> ()
  return
}

// -----

func.func private @large_squares(%x: memref<64x80xf32>, %out: memref<80x64xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 32, unroll = 1, lane = 1, transposed = 0>} {
  %tx = bufferization.to_tensor %x restrict : memref<64x80xf32> to tensor<64x80xf32>
  %e = tensor.empty() : tensor<80x64xf32>
  %r = linalg.transpose ins(%tx : tensor<64x80xf32>) outs(%e : tensor<80x64xf32>) permutation = [1, 0]
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 32, unroll = 1, lane = 1, transposed = 0> of kernel 'large_squares' does not fit: its dimensions have no squares of 'lanes', or these are more than 16}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<80x64xf32>, memref<80x64xf32>) -> ()
  return
}

// -----

func.func private @unrolled_squares(%x: memref<64x80xf32>, %out: memref<80x64xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 1, transposed = 0>} {
  %tx = bufferization.to_tensor %x restrict : memref<64x80xf32> to tensor<64x80xf32>
  %e = tensor.empty() : tensor<80x64xf32>
  %r = linalg.transpose ins(%tx : tensor<64x80xf32>) outs(%e : tensor<80x64xf32>) permutation = [1, 0]
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 2, lane = 1, transposed = 0> of kernel 'unrolled_squares' does not fit: loads that are transposed go with an 'unroll' of 1 and no 'chunk'}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<80x64xf32>, memref<80x64xf32>) -> ()
  return
}

// -----

func.func private @unrolled_pixels(%x: memref<3x80xf32>, %out: memref<80x3xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, transposed = 1>} {
  %tx = bufferization.to_tensor %x restrict : memref<3x80xf32> to tensor<3x80xf32>
  %e = tensor.empty() : tensor<80x3xf32>
  %r = linalg.transpose ins(%tx : tensor<3x80xf32>) outs(%e : tensor<80x3xf32>) permutation = [1, 0]
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 16, unroll = 2, lane = 0, transposed = 1> of kernel 'unrolled_pixels' does not fit: what is interleaved goes with an 'unroll' of 1}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<80x3xf32>, memref<80x3xf32>) -> ()
  return
}

// -----

func.func private @gathers(%x: memref<8x768xf32>, %out: memref<8x768xf32>) attributes {sdx.kernel, cpu.plan = #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0>} {
  %tx = bufferization.to_tensor %x restrict : memref<8x768xf32> to tensor<8x768xf32>
  %e = tensor.empty() : tensor<8x768xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%tx : tensor<8x768xf32>) outs(%e : tensor<8x768xf32>) {
  ^bb0(%v: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %w = tensor.extract %tx[%i, %j] : tensor<8x768xf32>
    linalg.yield %w : f32
  } -> tensor<8x768xf32>
  // expected-error@+1 {{the plan #cpu.rows_plan<lanes = 8, unroll = 1, lane = 0> of kernel 'gathers' does not fit: it has no vectors along dimension 0}}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x768xf32>, memref<8x768xf32>) -> ()
  return
}

// -----

func.func private @rows_of_a_pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 32, width = 16, rows = 29>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 32, width = 16, rows = 29> of kernel 'rows_of_a_pool' does not fit: 'rows' must be 1 to 28}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @no_rows(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 32, width = 16, rows = 0>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 32, width = 16, rows = 0> of kernel 'no_rows' does not fit: 'rows' must be 1 to 28}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @wide_pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 32, width = 32, rows = 28>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 32, width = 32, rows = 28> of kernel 'wide_pool' does not fit: 'width' must be a power of two from 4 to 16}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @narrow_pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 32, width = 2, rows = 28>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 32, width = 2, rows = 28> of kernel 'narrow_pool' does not fit: 'width' must be a power of two from 4 to 16}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @columns_of_a_pool(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 24, width = 16, rows = 28>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 24, width = 16, rows = 28> of kernel 'columns_of_a_pool' does not fit: 'columns' must be a power of two from 1 to 56}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}

// -----

func.func private @many_columns(%x: memref<2x24x56x56xf32>, %out: memref<2x24x28x28xf32>) attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 64, width = 16, rows = 28>} {
  %tx = bufferization.to_tensor %x restrict : memref<2x24x56x56xf32> to tensor<2x24x56x56xf32>
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x24x28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<2x24x28x28xf32>) -> tensor<2x24x28x28xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 64, width = 16, rows = 28> of kernel 'many_columns' does not fit: 'columns' must be a power of two from 1 to 56}}
  %r = sdx.max_pool ins(%tx : tensor<2x24x56x56xf32>) outs(%f : tensor<2x24x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x28x28xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x24x28x28xf32>, memref<2x24x28x28xf32>) -> ()
  return
}
