// RUN: %python -c "import sys; print(open(sys.argv[1]).read().replace('TENTHS', '0x' + 8192 * 'CDCCCC3D0000803E').replace('TINY', '0x' + 8192 * '6042A20D6042A20C').replace('INFINITE', '0x' + 8192 * '0000807F0000803E'))" %s > %t.mlir
// RUN: onnx-opt %t.mlir --target=sapphirerapids --cpu-pack-contractions=numerics=fast | FileCheck %s
// RUN: onnx-opt %t.mlir --target=sapphirerapids --cpu-pack-contractions | FileCheck %s --check-prefix=OFF
// RUN: onnx-opt %t.mlir --target=cooperlake --cpu-pack-contractions=numerics=fast | FileCheck %s --check-prefix=OFF

// OFF-NOT: xbf16

// Filters become sums of two bf16.
// CHECK-LABEL: @split
// CHECK: %[[P:.*]] = cpu.pack_conv_weights ins(%{{.*}} : tensor<256x64x1x1xf32>) outs(%{{.*}} : tensor<1x8x2x2048xbf16>)
// CHECK: cpu.conv ins(%arg0, %[[P]] : tensor<?x64x14x14xf32>, tensor<1x8x2x2048xbf16>)
func.func @split(%x: tensor<?x64x14x14xf32>, %init: tensor<?x256x14x14xf32>) -> tensor<?x256x14x14xf32> {
  %w = arith.constant dense<"TENTHS"> : tensor<256x64x1x1xf32>
  %e = tensor.empty() : tensor<1x32x64x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<256x64x1x1xf32>) outs(%e : tensor<1x32x64x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x64x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x14x14xf32>, tensor<1x32x64x8xf32>) outs(%init : tensor<?x256x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x256x14x14xf32>
  return %y : tensor<?x256x14x14xf32>
}

// Numbers that must not be rounded.
// CHECK-LABEL: @exact
// CHECK-NOT: bf16
// CHECK: return
func.func @exact(%x: tensor<?x64x14x14xf32>, %init: tensor<?x256x14x14xf32>) -> tensor<?x256x14x14xf32> {
  %w = arith.constant dense<"TENTHS"> : tensor<256x64x1x1xf32>
  %e = tensor.empty() : tensor<1x32x64x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<256x64x1x1xf32>) outs(%e : tensor<1x32x64x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x64x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x14x14xf32>, tensor<1x32x64x8xf32>) outs(%init : tensor<?x256x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, exact, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x256x14x14xf32>
  return %y : tensor<?x256x14x14xf32>
}

// Few filters: to split the inputs takes longer than to multiply them.
// CHECK-LABEL: @few
// CHECK-NOT: bf16
// CHECK: return
func.func @few(%x: tensor<?x64x14x14xf32>, %init: tensor<?x16x14x14xf32>) -> tensor<?x16x14x14xf32> {
  %w = arith.constant dense<0.1> : tensor<16x64x1x1xf32>
  %e = tensor.empty() : tensor<1x2x64x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<16x64x1x1xf32>) outs(%e : tensor<1x2x64x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x2x64x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x14x14xf32>, tensor<1x2x64x8xf32>) outs(%init : tensor<?x16x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x16x14x14xf32>
  return %y : tensor<?x16x14x14xf32>
}

// Tile registers take parts of tiny numbers as zero,
// CHECK-LABEL: @tiny
// CHECK-NOT: bf16
// CHECK: return
func.func @tiny(%x: tensor<?x64x14x14xf32>, %init: tensor<?x256x14x14xf32>) -> tensor<?x256x14x14xf32> {
  %w = arith.constant dense<"TINY"> : tensor<256x64x1x1xf32>
  %e = tensor.empty() : tensor<1x32x64x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<256x64x1x1xf32>) outs(%e : tensor<1x32x64x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x64x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x14x14xf32>, tensor<1x32x64x8xf32>) outs(%init : tensor<?x256x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x256x14x14xf32>
  return %y : tensor<?x256x14x14xf32>
}

// and an infinity has none.
// CHECK-LABEL: @infinite
// CHECK-NOT: bf16
// CHECK: return
func.func @infinite(%x: tensor<?x64x14x14xf32>, %init: tensor<?x256x14x14xf32>) -> tensor<?x256x14x14xf32> {
  %w = arith.constant dense<"INFINITE"> : tensor<256x64x1x1xf32>
  %e = tensor.empty() : tensor<1x32x64x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<256x64x1x1xf32>) outs(%e : tensor<1x32x64x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x64x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x14x14xf32>, tensor<1x32x64x8xf32>) outs(%init : tensor<?x256x14x14xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x256x14x14xf32>
  return %y : tensor<?x256x14x14xf32>
}
