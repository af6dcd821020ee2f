// RUN: onnx-opt %s --split-input-file --verify-diagnostics

func.func @k_differs(%a: tensor<8x16xf32>, %b: tensor<2x17x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs has K = 16 but rhs 17}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x17x32xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @too_few_panels(%a: tensor<8x16xf32>, %b: tensor<1x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{init has N = 40 columns but rhs only 1 panels of 32}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<1x16x32xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @no_result(%a: tensor<8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has 0 results; 1 expected, one for each tensor in 'outs'}}
  cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<8x40xf32>)
  return
}

// -----

func.func @mixed(%a: tensor<8x16xf32>, %b: memref<2x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{works on tensors or on memrefs, not on both}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, memref<2x16x32xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @heads(%b: tensor<2x16x3x40xf32>, %e: tensor<5x2x16x32xf32>) {
  // expected-error@+1 {{source has 6 batches but init 5}}
  %0 = cpu.pack_rhs ins(%b : tensor<2x16x3x40xf32>) outs(%e : tensor<5x2x16x32xf32>) -> tensor<5x2x16x32xf32>
  return
}

// -----

func.func @panels(%b: tensor<16x40xf32>, %e: tensor<3x16x32xf32>) {
  // expected-error@+1 {{source has N = 40, which makes 2 panels, but init has 3}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<3x16x32xf32>) -> tensor<3x16x32xf32>
  return
}

// -----

func.func @window(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{'strides' must have 2 elements, one for each spatial dimension, got 1}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @spatial(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x7xf32>) {
  // expected-error@+1 {{spatial dimension 1 of init is 7; 6 expected}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x8x6x7xf32>
  return
}

// -----

func.func @groups(%w: tensor<12x3x3x3xf32>, %e: tensor<2x2x27x8xf32>) {
  // expected-error@+1 {{init has 2 blocks; 1 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<2x2x27x8xf32>) -> tensor<2x2x27x8xf32>
  return
}

// -----

func.func @winograd_side(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x75x8xf32>) {
  // expected-error@+1 {{'winograd' must be 2 or 4, got 3}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x75x8xf32>) {winograd = 3 : i64} -> tensor<1x2x75x8xf32>
  return
}

// -----

func.func @winograd_1x1(%w: tensor<32x16x1x1xf32>, %e: tensor<1x4x576x8xf32>) {
  // expected-error@+1 {{'winograd' is for kernels of 3x3 and one group}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x1x1xf32>) outs(%e : tensor<1x4x576x8xf32>) {winograd = 4 : i64} -> tensor<1x4x576x8xf32>
  return
}

// -----

func.func @scales_of_f32(%w: tensor<32x16x3x3xf32>, %s: tensor<16x1x1x32xf32>, %e: tensor<1x1x256x32xf32>) {
  // expected-error@+1 {{has scales but weights of f32}}
  %0 = cpu.pack_conv_weights ins(%w, %s : tensor<32x16x3x3xf32>, tensor<16x1x1x32xf32>) outs(%e : tensor<1x1x256x32xf32>) {winograd = 2 : i64} -> tensor<1x1x256x32xf32>
  return
}

// -----

func.func @parts_of_scales(%w: tensor<32x16x3x3xf32>, %s: tensor<16x1x1x32xf32>, %e: tensor<1x1x9x2048xbf16>) {
  // expected-error@+1 {{weights of bf16 are for neither scales nor 'winograd'}}
  %0 = cpu.pack_conv_weights ins(%w, %s : tensor<32x16x3x3xf32>, tensor<16x1x1x32xf32>) outs(%e : tensor<1x1x9x2048xbf16>) -> tensor<1x1x9x2048xbf16>
  return
}

// -----

func.func @winograd_by_parts(%w: tensor<32x16x3x3xf32>, %e: tensor<1x1x16x2048xbf16>) {
  // expected-error@+1 {{weights of bf16 are for neither scales nor 'winograd'}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x3x3xf32>) outs(%e : tensor<1x1x16x2048xbf16>) {winograd = 2 : i64} -> tensor<1x1x16x2048xbf16>
  return
}

// -----

func.func @step_of_parts(%w: tensor<32x16x3x3xf32>, %e: tensor<1x1x9x1024xbf16>) {
  // expected-error@+1 {{weights of bf16 must have 2048 in a step, got 1024}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x3x3xf32>) outs(%e : tensor<1x1x9x1024xbf16>) -> tensor<1x1x9x1024xbf16>
  return
}

// -----

func.func @steps_of_parts(%w: tensor<32x40x3x3xf32>, %e: tensor<1x1x9x2048xbf16>) {
  // expected-error@+1 {{init has K = 9; 18 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x40x3x3xf32>) outs(%e : tensor<1x1x9x2048xbf16>) -> tensor<1x1x9x2048xbf16>
  return
}

// -----

func.func @bytes_without_scales(%w: tensor<32x16x?x?xf32>, %e: tensor<1x1x256x96xi8>) {
  // expected-error@+1 {{weights of i8 must have scales and 'winograd'}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x?x?xf32>) outs(%e : tensor<1x1x256x96xi8>) -> tensor<1x1x256x96xi8>
  return
}

// -----

func.func @bytes_of_open_channels(%w: tensor<32x?x3x3xf32>, %s: tensor<16x1x1x32xf32>, %e: tensor<1x1x?x96xi8>) {
  // expected-error@+1 {{has scales and open sizes of weights}}
  %0 = cpu.pack_conv_weights ins(%w, %s : tensor<32x?x3x3xf32>, tensor<16x1x1x32xf32>) outs(%e : tensor<1x1x?x96xi8>) {winograd = 2 : i64} -> tensor<1x1x?x96xi8>
  return
}

// -----

func.func @bytes_with_few_scales(%w: tensor<64x16x3x3xf32>, %s: tensor<16x1x1x32xf32>, %e: tensor<1x2x256x96xi8>) {
  // expected-error@+1 {{scales must be 32x1x1x32 where weights have 2 blocks of 96 bytes}}
  %0 = cpu.pack_conv_weights ins(%w, %s : tensor<64x16x3x3xf32>, tensor<16x1x1x32xf32>) outs(%e : tensor<1x2x256x96xi8>) {winograd = 2 : i64} -> tensor<1x2x256x96xi8>
  return
}

// -----

func.func @bytes_of_odd_blocks(%x: tensor<1x16x7x7xf32>, %w: tensor<1x2x256x72xi8>, %s: tensor<32x1x1x24xf32>, %e: tensor<1x48x7x7xf32>) {
  // expected-error@+1 {{panels of numbers of 21 or 24 bits must have a power of two of columns, from 8 on, but have 24}}
  %0 = cpu.conv ins(%x, %w, %s : tensor<1x16x7x7xf32>, tensor<1x2x256x72xi8>, tensor<32x1x1x24xf32>) outs(%e : tensor<1x48x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, winograd = 2 : i64} -> tensor<1x48x7x7xf32>
  return
}

// -----

func.func @bytes_of_too_few_blocks(%w: tensor<96x16x3x3xf32>, %s: tensor<32x1x1x32xf32>, %e: tensor<1x2x256x96xi8>) {
  // expected-error@+1 {{init has 2 blocks; 3 expected}}
  %0 = cpu.pack_conv_weights ins(%w, %s : tensor<96x16x3x3xf32>, tensor<32x1x1x32xf32>) outs(%e : tensor<1x2x256x96xi8>) {winograd = 2 : i64} -> tensor<1x2x256x96xi8>
  return
}

// -----

func.func @winograd_strided(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x3x3xf32>) {
  // expected-error@+1 {{'winograd' is for strides of 1 or of 2}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x3x3xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 3, 3>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, winograd = 2 : i64} -> tensor<1x8x3x3xf32>
  return
}

// -----

func.func @winograd_strides(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x7x4xf32>) {
  // expected-error@+1 {{'winograd' is for strides of 1 or of 2}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x7x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, winograd = 2 : i64} -> tensor<1x8x7x4xf32>
  return
}

// -----

func.func @winograd_dilated(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x5x5xf32>) {
  // expected-error@+1 {{'winograd' is for no dilations}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x5x5xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, winograd = 2 : i64} -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @winograd_stride_alone(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x27x8xf32>) {
  // expected-error@+1 {{'winograd_stride' must be 1 or 2, and is for 'winograd'; got 2}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x27x8xf32>) {winograd_stride = 2 : i64} -> tensor<1x2x27x8xf32>
  return
}

// -----

func.func @winograd_stride_of_three(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x48x8xf32>) {
  // expected-error@+1 {{'winograd_stride' must be 1 or 2, and is for 'winograd'; got 3}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x48x8xf32>) {winograd = 2 : i64, winograd_stride = 3 : i64} -> tensor<1x2x48x8xf32>
  return
}

// -----

func.func @no_kernel(%t: tensor<8xf32>) {
  // expected-error@+1 {{calls 'nowhere', which is no function}}
  %0 = sdx.call @nowhere(%t : tensor<8xf32>) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @kernel(memref<9xf32>, memref<8xf32>)
func.func @wrong_type(%t: tensor<8xf32>) {
  // expected-error@+1 {{operand 0 is 'tensor<8xf32>' but 'kernel' takes 'memref<9xf32>'}}
  %0 = sdx.call @kernel(%t : tensor<8xf32>) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sizes(%n: index) {
  // expected-error@+1 {{has 1 sizes for 0 dynamic dimensions}}
  %0 = sdx.output_buffer 0(%n) : memref<8xf32>
  return
}

// -----

func.func @arena() {
  // expected-error@+1 {{is a row of bytes, memref<Nxi8>; got 'memref<8xf32>'}}
  %0 = sdx.arena : memref<8xf32>
  return
}

// -----

func.func @check(%c: i1, %n: index) {
  // expected-error@+1 {{names 5 values, at most 4 are possible}}
  sdx.check %c, "{0}" (%n, %n, %n, %n, %n)
  return
}

// -----

func.func @runtime(%m: memref<i64>) {
  // expected-error@+1 {{calls 'system', which is no function of the runtime}}
  sdx.runtime_call "system" (%m : memref<i64>) outs(%m : memref<i64>)
  return
}

// -----

func.func @scales_without_block(%a: tensor<8x48xf32>, %b: tensor<2x48x16xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has scales but no positive block}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x48x16xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @number_of_scales(%a: tensor<8x48xf32>, %b: tensor<2x48x16xi8>, %s: tensor<2x1x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales must be 2x2x1x32 or 2x2x2x32}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x48x16xi8>, tensor<2x1x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @bytes_of_panel(%a: tensor<8x48xf32>, %b: tensor<2x48x12xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{a panel of 32 columns cannot have 12 bytes}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x48x12xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @triples_of_too_few_groups(%a: tensor<8x48xf32>, %b: tensor<2x15x32xi64>, %s: tensor<2x1x1x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs has K = 48 but rhs 15 groups}}
  cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x15x32xi64>, tensor<2x1x1x32xf32>) outs(%c : tensor<8x40xf32>) {block = 48 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @triples_of_odd_panels(%a: tensor<8x48xf32>, %b: tensor<2x16x24xi64>, %s: tensor<2x1x1x24xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{panels of numbers of 21 or 24 bits must have a power of two of columns, from 8 on, but have 24}}
  cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x16x24xi64>, tensor<2x1x1x24xf32>) outs(%c : tensor<8x40xf32>) {block = 48 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @pack_triples_of_too_few_groups(%b: tensor<10x40xf32>, %s: tensor<2x1x1x32xf32>, %e: tensor<2x3x32xi64>) {
  // expected-error@+1 {{source has K = 4 but init 3}}
  cpu.pack_rhs ins(%b, %s : tensor<10x40xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x3x32xi64>) -> tensor<2x3x32xi64>
  return
}

// -----

func.func @no_scales(%a: tensor<8x48xf32>, %b: tensor<2x48x16xi8>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{or rhs of i8 or i64 with scales and the others of f32}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x48xf32>, tensor<2x48x16xi8>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_of_batches(%a: tensor<4x8x64xf32>, %b: tensor<4x2x64x32xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{only a product of f32 without batches, by weights of known sizes, can go by Strassen's algorithm}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<4x8x64xf32>, tensor<4x2x64x32xf32>) outs(%c : tensor<4x8x40xf32>) {strassen = 64 : i64} -> tensor<4x8x40xf32>
  return
}

// -----

func.func @strassen_depth(%a: tensor<8x64xf32>, %b: tensor<2x64x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{strassen must be a multiple of 32 that divides K, and there must be two panels}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x64xf32>, tensor<2x64x32xf32>) outs(%c : tensor<8x40xf32>) {strassen = 16 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_panels(%a: tensor<8x64xf32>, %b: tensor<1x64x32xf32>, %c: tensor<8x20xf32>) {
  // expected-error@+1 {{there must be two panels}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x64xf32>, tensor<1x64x32xf32>) outs(%c : tensor<8x20xf32>) {strassen = 64 : i64} -> tensor<8x20xf32>
  return
}

// -----

func.func @pool_of_nothing(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x5x4xf32>) {
  // expected-error@+1 {{has windows that see nothing in spatial dimension 0}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x5x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 1>} -> tensor<1x3x5x4xf32>
  return
}

// -----

func.func @pool_of_open_size(%x: tensor<1x3x8x?xf32>, %e: tensor<1x3x4x?xf32>) {
  // expected-error@+1 {{spatial dimension 1 must be known}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x?xf32>) outs(%e : tensor<1x3x4x?xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x4x?xf32>
  return
}

// -----

func.func @pool_strides(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x4x4xf32>) {
  // expected-error@+1 {{'strides' must have 2 elements, one for each spatial dimension, got 1}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pool_channels(%x: tensor<1x3x8x8xf32>, %e: tensor<1x4x4x4xf32>) {
  // expected-error@+1 {{must have the same first two dimensions, got 3 and 4}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x4x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x4x4x4xf32>
  return
}
