// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-choose-conv-form{numerics=fast}))" | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-choose-conv-form{numerics=fast}))" | onnx-opt | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-choose-conv-form{numerics=exact}))" | FileCheck %s --check-prefix=DIRECT

// RUN: onnx-opt %s -pass-pipeline="builtin.module(sdx-attach-target{cpu=haswell},func.func(cpu-choose-conv-form{numerics=fast}))" | FileCheck %s --check-prefix=NARROW

// RUN: onnx-opt %s -pass-pipeline="builtin.module(sdx-attach-target{cpu=sapphirerapids},func.func(cpu-choose-conv-form{numerics=fast}))" | FileCheck %s --check-prefix=UNIT

// Tiles of 4x4 are for sums of that many channels.
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-choose-conv-form))" | FileCheck %s --check-prefix=SHORT

// DIRECT-NOT: winograd
// DIRECT: -> tensor<1x2x576x32xf32>
// DIRECT-NOT: winograd

// CHECK-LABEL: func.func @taken
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<1x8x2304x8xf32>
// CHECK: %[[W:.*]] = cpu.pack_conv_weights ins(%arg1 : tensor<64x64x3x3xf32>) outs(%[[EMPTY]] : tensor<1x8x2304x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 4>}
// CHECK: cpu.conv ins(%arg0, %[[W]] : tensor<?x64x56x56xf32>, tensor<1x8x2304x8xf32>)
// CHECK-SAME: winograd = 4
func.func @taken(%x: tensor<?x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<?x64x56x56xf32>) -> tensor<?x64x56x56xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<?x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x64x56x56xf32>
  return %y : tensor<?x64x56x56xf32>
}

// Sixteen tiles of 2x2 cover the picture, too many of 4x4 would be empty.
// CHECK-LABEL: func.func @small
// CHECK: cpu.pack_conv_weights {{.*}}winograd = 2>} -> tensor<1x8x1024x8xf32>
// CHECK: cpu.conv {{.*}}winograd = 2
func.func @small(%x: tensor<1x64x7x7xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x7x7xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x7x7xf32>
  return %y : tensor<1x64x7x7xf32>
}

// As many tiles as a register of 512 bits has lanes, and many filters: these go into the lanes of the products.
// CHECK-LABEL: func.func @filter_lanes
// CHECK: cpu.pack_conv_weights {{.*}}winograd = 4>} -> tensor<1x4x2304x32xf32>
// NARROW-LABEL: func.func @filter_lanes
// NARROW: cpu.pack_conv_weights {{.*}}winograd = 4>} -> tensor<1x22x2304x6xf32>
func.func @filter_lanes(%x: tensor<1x64x14x14xf32>, %w: tensor<128x64x3x3xf32>, %init: tensor<1x128x14x14xf32>) -> tensor<1x128x14x14xf32> {
  %e = tensor.empty() : tensor<1x16x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<128x64x3x3xf32>) outs(%e : tensor<1x16x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x16x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x14x14xf32>, tensor<1x16x576x8xf32>) outs(%init : tensor<1x128x14x14xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x128x14x14xf32>
  return %y : tensor<1x128x14x14xf32>
}

// Few positions: channels go into the lanes.
// CHECK-LABEL: func.func @smaller
// CHECK-NOT: winograd
// CHECK: cpu.pack_conv_weights {{.*}} -> tensor<1x2x576x32xf32>
// CHECK-NOT: winograd
func.func @smaller(%x: tensor<1x64x5x5xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x5x5xf32>) -> tensor<1x64x5x5xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x5x5xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x5x5xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x5x5xf32>
  return %y : tensor<1x64x5x5xf32>
}

// Eight channels are enough, four are not.
// CHECK-LABEL: func.func @eight
// CHECK: cpu.conv {{.*}}winograd = 4
func.func @eight(%x: tensor<1x8x56x56xf32>, %w: tensor<8x8x3x3xf32>, %init: tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32> {
  %e = tensor.empty() : tensor<1x1x72x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<8x8x3x3xf32>) outs(%e : tensor<1x1x72x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x1x72x8xf32>
  %0 = cpu.conv ins(%x, %p : tensor<1x8x56x56xf32>, tensor<1x1x72x8xf32>) outs(%init : tensor<1x8x56x56xf32>)
      {dilations = array<i64: 1, 1>, group = 1 : i64, kernel_shape = array<i64: 3, 3>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, strides = array<i64: 1, 1>, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  return %0 : tensor<1x8x56x56xf32>
}

// CHECK-LABEL: func.func @four
// CHECK-NOT: winograd
func.func @four(%x: tensor<1x4x56x56xf32>, %w: tensor<8x4x3x3xf32>, %init: tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32> {
  %e = tensor.empty() : tensor<1x1x36x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<8x4x3x3xf32>) outs(%e : tensor<1x1x36x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x1x36x8xf32>
  %0 = cpu.conv ins(%x, %p : tensor<1x4x56x56xf32>, tensor<1x1x36x8xf32>) outs(%init : tensor<1x8x56x56xf32>)
      {dilations = array<i64: 1, 1>, group = 1 : i64, kernel_shape = array<i64: 3, 3>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, strides = array<i64: 1, 1>, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  return %0 : tensor<1x8x56x56xf32>
}

// Of stride 2: 81 products of tiles of 4x4, by 36 values of each filter; with
// wide vectors for few positions only.
// CHECK-LABEL: func.func @strided
// CHECK-NOT: winograd
// NARROW-LABEL: func.func @strided
// NARROW: cpu.pack_conv_weights {{.*}}winograd = 4, stride = 2>} -> tensor<1x11x2304x6xf32>
// UNIT-LABEL: func.func @strided
// UNIT-NOT: winograd
func.func @strided(%x: tensor<1x64x56x56xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x56x56xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x28x28xf32>
  return %y : tensor<1x64x28x28xf32>
}

// CHECK-LABEL: func.func @strided_to_fourteen
// CHECK: cpu.pack_conv_weights {{.*}}winograd = 4, stride = 2>} -> tensor<1x8x2304x8xf32>
// CHECK: cpu.conv {{.*}}winograd = 4, stride = 2>{{.*}}strides = array<i64: 2, 2>
// UNIT-LABEL: func.func @strided_to_fourteen
// UNIT-NOT: winograd
func.func @strided_to_fourteen(%x: tensor<1x64x28x28xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x14x14xf32>) -> tensor<1x64x14x14xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x28x28xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x14x14xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x14x14xf32>
  return %y : tensor<1x64x14x14xf32>
}

// Tiles of 2x2 where they leave fewer lanes empty.
// NARROW-LABEL: func.func @strided_of_two
// NARROW: cpu.conv {{.*}}winograd = 2, stride = 2>{{.*}}strides = array<i64: 2, 2>
func.func @strided_of_two(%x: tensor<1x64x48x48xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x24x24xf32>) -> tensor<1x64x24x24xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x48x48xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x24x24xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x24x24xf32>
  return %y : tensor<1x64x24x24xf32>
}

// Too many empty lanes for any.
// CHECK-LABEL: func.func @strided_to_seven
// CHECK-NOT: winograd
// NARROW-LABEL: func.func @strided_to_seven
// NARROW-NOT: winograd
func.func @strided_to_seven(%x: tensor<1x64x14x14xf32>, %w: tensor<64x64x3x3xf32>, %init: tensor<1x64x7x7xf32>) -> tensor<1x64x7x7xf32> {
  %e = tensor.empty() : tensor<1x8x576x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x64x3x3xf32>) outs(%e : tensor<1x8x576x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x576x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<1x64x14x14xf32>, tensor<1x8x576x8xf32>) outs(%init : tensor<1x64x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x64x7x7xf32>
  return %y : tensor<1x64x7x7xf32>
}

// Whole numbers, whose sums must not be rounded.
// CHECK-LABEL: func.func @exact
// CHECK-NOT: winograd
// CHECK: cpu.conv {{.*}} exact,
// CHECK-NOT: winograd
func.func @exact(%x: tensor<1x8x56x56xf32>, %w: tensor<8x8x3x3xf32>, %init: tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32> {
  %e = tensor.empty() : tensor<1x1x72x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<8x8x3x3xf32>) outs(%e : tensor<1x1x72x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x1x72x8xf32>
  %0 = cpu.conv ins(%x, %p : tensor<1x8x56x56xf32>, tensor<1x1x72x8xf32>) outs(%init : tensor<1x8x56x56xf32>)
      {dilations = array<i64: 1, 1>, exact, group = 1 : i64, kernel_shape = array<i64: 3, 3>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, strides = array<i64: 1, 1>, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  return %0 : tensor<1x8x56x56xf32>
}

// NARROW-LABEL: func.func @few_channels
// UNIT-LABEL: func.func @few_channels
// CHECK-LABEL: func.func @few_channels
// CHECK: winograd = 4>} -> tensor<1x8x1152x8xf32>
// SHORT-LABEL: func.func @few_channels
// SHORT: winograd = 2>} -> tensor<1x8x512x8xf32>
func.func @few_channels(%x: tensor<?x32x56x56xf32>, %w: tensor<64x32x3x3xf32>, %init: tensor<?x64x56x56xf32>) -> tensor<?x64x56x56xf32> {
  %e = tensor.empty() : tensor<1x8x288x8xf32>
  %p = cpu.pack_conv_weights ins(%w : tensor<64x32x3x3xf32>) outs(%e : tensor<1x8x288x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x288x8xf32>
  %y = cpu.conv ins(%x, %p : tensor<?x32x56x56xf32>, tensor<1x8x288x8xf32>) outs(%init : tensor<?x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x64x56x56xf32>
  return %y : tensor<?x64x56x56xf32>
}
