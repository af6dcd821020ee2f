// RUN: onnx-opt %s --split-input-file --verify-diagnostics

func.func @rank(%x: tensor<6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<6x20xi32>) {
  // expected-error@+1 {{input must be [N,S...,C] with one to three spatial dimensions, got rank 2}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<6x20xi32>
  return
}

// -----

func.func @init_rank(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x20xi32>) {
  // expected-error@+1 {{init must have the rank of input, 4, got 3}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x20xi32>
  return
}

// -----

func.func @spatial(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x5x20xi32>) {
  // expected-error@+1 {{spatial dimension 1 of init is 5; 6 expected}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x5x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x5x20xi32>
  return
}

// -----

func.func @taps(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{'strides' must have 2 elements, one for each spatial dimension, got 1}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @open_channels(%x: tensor<1x6x6x?xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{channels of input and init must be known}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x?xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @open_weights(%x: tensor<1x6x6x8xi8>, %w: tensor<1x?x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{the sizes of the weights must be known}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x?x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @padding(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{'padding' must be 0 to 255, got 256}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 256 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @packing(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{'packing' must be of i8, i16 or bf16}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<u4, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @elements(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{input and weights must be of 'bf16', as 'packing' says, and init of 'f32'}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<bf16, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @padded_floats(%x: tensor<1x6x6x8xbf16>, %w: tensor<1x36x64xbf16>, %e: tensor<1x6x6x20xf32>) {
  // expected-error@+1 {{'padding' of bf16 must be 0}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xbf16>, tensor<1x36x64xbf16>) outs(%e : tensor<1x6x6x20xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<bf16, panel = 32>, padding = 1 : i64} -> tensor<1x6x6x20xf32>
  return
}

// -----

func.func @weights(%x: tensor<1x6x6x8xi8>, %w: tensor<1x17x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{weights must be [1,Q,128], Q at least 18, got 'tensor<1x17x128xi8>'}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x17x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @group(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{'group' must be at least 1, got 0}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 0 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @divided(%x: tensor<1x6x6x8xi8>, %w: tensor<1x18x128xi8>, %e: tensor<1x6x6x20xi32>) {
  // expected-error@+1 {{input has 8 channels, which 'group' = 3 does not divide}}
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<1x18x128xi8>) outs(%e : tensor<1x6x6x20xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 3 : i64, packing = #cpu.packing<i8, panel = 32>, padding = 0 : i64} -> tensor<1x6x6x20xi32>
  return
}

// -----

func.func @channels(%x: tensor<1x6x6x8xi8>, %w: tensor<3x32xi8>, %e: tensor<1x6x6x9xi32>) {
  // expected-error@+1 {{init must have the channels of input, 8}}
  %0 = cpu.depthwise_narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<3x32xi8>) outs(%e : tensor<1x6x6x9xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, padding = 0 : i64} -> tensor<1x6x6x9xi32>
  return
}

// -----

func.func @lines(%x: tensor<1x6x6x8xi8>, %w: tensor<9x8xi8>, %e: tensor<1x6x6x8xi32>) {
  // expected-error@+1 {{weights must be [3,32], got 'tensor<9x8xi8>'}}
  %0 = cpu.depthwise_narrow_conv ins(%x, %w : tensor<1x6x6x8xi8>, tensor<9x8xi8>) outs(%e : tensor<1x6x6x8xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, padding = 0 : i64} -> tensor<1x6x6x8xi32>
  return
}

// -----

func.func @pool_images(%x: tensor<1x6x6x8xi8>, %e: tensor<2x3x3x8xi8>) {
  // expected-error@+1 {{init must have the images and channels of input}}
  %0 = cpu.channels_last_max_pool ins(%x : tensor<1x6x6x8xi8>) outs(%e : tensor<2x3x3x8xi8>) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>} -> tensor<2x3x3x8xi8>
  return
}

// -----

func.func @pool_strides(%x: tensor<1x6x6x8xi8>, %e: tensor<1x3x3x8xi8>) {
  // expected-error@+1 {{'strides' must be at least 1, got 0}}
  %0 = cpu.channels_last_max_pool ins(%x : tensor<1x6x6x8xi8>) outs(%e : tensor<1x3x3x8xi8>) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 0, 2>, pads_begin = array<i64: 0, 0>} -> tensor<1x3x3x8xi8>
  return
}

// -----

func.func @taps(%x: tensor<1x6x6x8xbf16>, %w: tensor<9x8xi8>, %e: tensor<1x6x6x8xf32>) {
  // expected-error@+1 {{input, weights and init must be of i8, i8 or i16 and i32, or of bf16, bf16 and f32}}
  %0 = cpu.depthwise_narrow_conv ins(%x, %w : tensor<1x6x6x8xbf16>, tensor<9x8xi8>) outs(%e : tensor<1x6x6x8xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, padding = 0 : i64} -> tensor<1x6x6x8xf32>
  return
}

// -----

func.func @pool(%x: tensor<1x6x6x8xf32>, %e: tensor<1x3x3x8xi8>) {
  // expected-error@+1 {{input and init must both be of f32, or both of i8}}
  %0 = cpu.channels_last_max_pool ins(%x : tensor<1x6x6x8xf32>) outs(%e : tensor<1x3x3x8xi8>)
      {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>} -> tensor<1x3x3x8xi8>
  return
}
