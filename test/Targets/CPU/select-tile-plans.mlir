// RUN: onnx-opt %s -verify-diagnostics -pass-pipeline="builtin.module(sdx-attach-target{cpu=sapphirerapids},func.func(cpu-select-plans))"

// Sums of a block of tile registers are read so many rows at a time.
func.func private @uneven(%x: memref<1x14x14x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel, cpu.plan = #cpu.narrow_conv_plan<"amx_int8", tile_rows = 6, tile_columns = 32, chunk_rows = 32>} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  // expected-error@+1 {{'tile_rows' must divide 32, the rows of a block of tile registers}}
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}
