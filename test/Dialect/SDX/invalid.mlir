// RUN: onnx-opt %s --split-input-file --verify-diagnostics

func.func @no_result(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has 0 results; 1 expected, one for each tensor in 'outs'}}
  sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<8x40xf32>)
  return
}

// -----

func.func @result_of_buffers(%a: memref<8x16xf32>, %b: memref<16x40xf32>, %c: memref<8x40xf32>) {
  // expected-error@+1 {{has 1 results; 0 expected, one for each tensor in 'outs'}}
  %0 = sdx.matmul ins(%a, %b : memref<8x16xf32>, memref<16x40xf32>) outs(%c : memref<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @mixed(%a: tensor<8x16xf32>, %b: memref<16x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{works on tensors or on memrefs, not on both}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, memref<16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @other_result(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{result type 'tensor<?x40xf32>' differs from the type of its 'outs' operand, 'tensor<8x40xf32>'}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<?x40xf32>
  return
}

// -----

func.func @rank_of_lhs(%a: tensor<16xf32>, %b: tensor<16x40xf32>, %c: tensor<40xf32>) {
  // expected-error@+1 {{lhs must be [M,K] or [B,M,K], got rank 1}}
  %0 = sdx.matmul ins(%a, %b : tensor<16xf32>, tensor<16x40xf32>) outs(%c : tensor<40xf32>) -> tensor<40xf32>
  return
}

// -----

func.func @rank_of_init(%a: tensor<4x8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{init must have the rank of lhs, 3, got rank 2}}
  %0 = sdx.matmul ins(%a, %b : tensor<4x8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @rank_of_rhs(%a: tensor<8x16xf32>, %b: tensor<4x16x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{rhs must be a matrix, or a batch of matrices with a batched lhs, got rank 3}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<4x16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @vector_as_rhs(%a: tensor<4x8x16xf32>, %b: tensor<16xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{rhs must be a matrix, or a batch of matrices with a batched lhs, got rank 1}}
  %0 = sdx.matmul ins(%a, %b : tensor<4x8x16xf32>, tensor<16xf32>) outs(%c : tensor<4x8x40xf32>) -> tensor<4x8x40xf32>
  return
}

// -----

func.func @integers_onto_floats(%a: tensor<8x16xf32>, %b: tensor<16x40xi8>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{elements of 'i8' cannot be extended to those of init, 'f32'}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xi8>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @floats_onto_integers(%a: tensor<8x16xf32>, %b: tensor<16x40xi32>, %c: tensor<8x40xi32>) {
  // expected-error@+1 {{elements of 'f32' cannot be extended to those of init, 'i32'}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xi32>) outs(%c : tensor<8x40xi32>) -> tensor<8x40xi32>
  return
}

// -----

func.func @wide_onto_narrow(%a: tensor<8x16xi32>, %b: tensor<16x40xi8>, %c: tensor<8x40xi8>) {
  // expected-error@+1 {{elements of 'i32' cannot be extended to those of init, 'i8'}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xi32>, tensor<16x40xi8>) outs(%c : tensor<8x40xi8>) -> tensor<8x40xi8>
  return
}

// -----

func.func @depth(%a: tensor<8x16xf32>, %b: tensor<17x40xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs has K = 16 but rhs 17}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<17x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return
}

// -----

func.func @depth_of_transposed(%a: tensor<4x8x16xf32>, %b: tensor<4x16x40xf32>, %c: tensor<4x8x16xf32>) {
  // expected-error@+1 {{lhs has K = 16 but rhs 40}}
  %0 = sdx.matmul ins(%a, %b : tensor<4x8x16xf32>, tensor<4x16x40xf32>) outs(%c : tensor<4x8x16xf32>) {transposed} -> tensor<4x8x16xf32>
  return
}

// -----

func.func @rows(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<9x40xf32>) {
  // expected-error@+1 {{lhs has M = 8 but init 9}}
  %0 = sdx.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<9x40xf32>) -> tensor<9x40xf32>
  return
}

// -----

func.func @columns(%a: tensor<?x16xf32>, %b: tensor<16x40xf32>, %c: tensor<?x41xf32>) {
  // expected-error@+1 {{rhs has N = 40 but init 41}}
  %0 = sdx.matmul ins(%a, %b : tensor<?x16xf32>, tensor<16x40xf32>) outs(%c : tensor<?x41xf32>) -> tensor<?x41xf32>
  return
}

// -----

func.func @columns_of_transposed(%a: tensor<?x16xf32>, %b: tensor<40x16xf32>, %c: tensor<?x41xf32>) {
  // expected-error@+1 {{rhs has N = 40 but init 41}}
  %0 = sdx.matmul ins(%a, %b : tensor<?x16xf32>, tensor<40x16xf32>) outs(%c : tensor<?x41xf32>) {transposed} -> tensor<?x41xf32>
  return
}

// -----

func.func @batches(%a: tensor<3x8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{lhs has 3 batches but init 4}}
  %0 = sdx.matmul ins(%a, %b : tensor<3x8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<4x8x40xf32>) -> tensor<4x8x40xf32>
  return
}

// -----

func.func @batches_of_rhs(%a: tensor<?x8x16xf32>, %b: tensor<3x16x40xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{rhs has 3 batches but init 4}}
  %0 = sdx.matmul ins(%a, %b : tensor<?x8x16xf32>, tensor<3x16x40xf32>) outs(%c : tensor<4x8x40xf32>) -> tensor<4x8x40xf32>
  return
}

// -----

func.func @dequant_batches(%a: tensor<1x8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs must be [M,K] of f32, f16 or bf16, or of i8 where 'element' has eight bits, and init [M,N] of f32}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<1x8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_into_batches(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<1x8x40xf32>) {
  // expected-error@+1 {{lhs must be [M,K] of f32, f16 or bf16, or of i8 where 'element' has eight bits, and init [M,N] of f32}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<1x8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<1x8x40xf32>
  return
}

// -----

func.func @dequant_f64(%a: tensor<8x48xf64>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs must be [M,K] of f32, f16 or bf16, or of i8 where 'element' has eight bits, and init [M,N] of f32}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf64>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_into_f64(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf64>) {
  // expected-error@+1 {{lhs must be [M,K] of f32, f16 or bf16, or of i8 where 'element' has eight bits, and init [M,N] of f32}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf64>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf64>
  return
}

// -----

func.func @dequant_bits(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{'bits' must be 2, 4 or 8, got 3}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 3 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_no_block(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{'block' must be positive, at most 2147483647 and of whole bytes, got 0}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 0 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_half_bytes(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{'block' must be positive, at most 2147483647 and of whole bytes, got 31}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 31 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_element(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  // expected-error@+1 {{'element' must be f4E2M1FN, f8E4M3FN or f8E5M2, got 'f16'}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64, element = f16} -> tensor<8x40xf32>
  return %0 : tensor<8x40xf32>
}

// -----

func.func @dequant_bits_of_element(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  // expected-error@+1 {{weights of 'f8E5M2' must have its bits and no zero points}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64, element = f8E5M2} -> tensor<8x40xf32>
  return %0 : tensor<8x40xf32>
}

// -----

func.func @dequant_open_depth(%a: tensor<8x?xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{K and the sizes of weights must be known}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x?xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_open_weights(%a: tensor<8x48xf32>, %w: tensor<?x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{K and the sizes of weights must be known}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<?x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_open_scales(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<?x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{K and the sizes of weights must be known}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<?x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_rank_of_weights(%a: tensor<8x48xf32>, %w: tensor<40x32xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{weights must be Nx2x16 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x32xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_blocks_of_weights(%a: tensor<8x48xf32>, %w: tensor<40x3x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{weights must be Nx2x16 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x3x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_bytes_of_weights(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{weights must be Nx2x8 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 2 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_wide_weights(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi16>, %s: tensor<40x2xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{weights must be Nx2x16 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi16>, tensor<40x2xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_number_of_scales(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x3xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales must be 40x2 of floats}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x3xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_integer_scales(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xi32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales must be 40x2 of floats}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xi32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_float_zero_points(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %z: tensor<40x1xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{zero_points must be 40x2 of floats, or 40x1 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>, tensor<40x1xf32>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_packed_zero_points(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %z: tensor<40x2xi8>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{zero_points must be 40x2 of floats, or 40x1 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>, tensor<40x2xi8>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_wide_zero_points(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %z: tensor<40x1xi16>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{zero_points must be 40x2 of floats, or 40x1 of i8}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>, tensor<40x1xi16>) outs(%c : tensor<8x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x40xf32>
  return
}

// -----

func.func @dequant_rows(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<9x40xf32>) {
  // expected-error@+1 {{lhs has M = 8 but init 9}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<9x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<9x40xf32>
  return
}

// -----

func.func @dequant_columns(%a: tensor<8x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf32>, %c: tensor<8x41xf32>) {
  // expected-error@+1 {{weights have N = 40 but init 41}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<8x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<8x41xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<8x41xf32>
  return
}

// -----

func.func @conv_rank_of_weights(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{weights must be [OC,C/group,k...], of the rank of input, 4, got 3}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_open_kernel(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x?xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{the sizes of the kernel must be known}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x?xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_without_dimensions(%x: tensor<1x4xf32>, %w: tensor<6x4xf32>, %e: tensor<1x6xf32>) {
  // expected-error@+1 {{input must be [N,C,S...] with one to three spatial dimensions, got rank 2}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4xf32>, tensor<6x4xf32>) outs(%e : tensor<1x6xf32>)
      {strides = array<i64>, dilations = array<i64>, pads_begin = array<i64>, pads_end = array<i64>,
       group = 1 : i64} -> tensor<1x6xf32>
  return
}

// -----

func.func @conv_of_four_dimensions(%x: tensor<1x4x8x8x8x8xf32>, %w: tensor<6x4x3x3x3x3xf32>, %e: tensor<1x6x6x6x6x6xf32>) {
  // expected-error@+1 {{input must be [N,C,S...] with one to three spatial dimensions, got rank 6}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8x8x8xf32>, tensor<6x4x3x3x3x3xf32>) outs(%e : tensor<1x6x6x6x6x6xf32>)
      {strides = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1, 1, 1>, pads_begin = array<i64: 0, 0, 0, 0>, pads_end = array<i64: 0, 0, 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6x6x6xf32>
  return
}

// -----

func.func @conv_rank_of_init(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6xf32>) {
  // expected-error@+1 {{init must have the rank of input, 4, got 3}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6xf32>
  return
}

// -----

func.func @conv_kernel(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x0xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'kernel_shape' must be at least 1, got 0}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x0xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_number_of_strides(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'strides' must have 2 elements, one for each spatial dimension, got 1}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_strides(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'strides' must be at least 1, got 0}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 0>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_dilations(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'dilations' must be at least 1, got 0}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 0, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_pads_begin(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'pads_begin' must be at least 0, got -1}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: -1, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_pads_end(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'pads_end' must have 2 elements, one for each spatial dimension, got 3}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_no_groups(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'group' must be at least 1, got 0}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 0 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_groups_of_input(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{input has 4 channels, which 'group' = 3 does not divide}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 3 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_groups_of_init(%x: tensor<1x4x8x8xf32>, %w: tensor<6x1x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{init has 6 channels, which 'group' = 4 does not divide}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x1x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 4 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_images(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<2x6x6x6xf32>) {
  // expected-error@+1 {{input has 1 images but init 2}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<2x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv_spatial(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x7xf32>) {
  // expected-error@+1 {{spatial dimension 1 of init is 7; 6 expected}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x7xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x7xf32>
  return
}

// -----

func.func @conv_strided(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x5x4xf32>) {
  // expected-error@+1 {{spatial dimension 0 of init is 5; 4 expected}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x5x4xf32>)
      {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 0>,
       group = 1 : i64} -> tensor<1x6x5x4xf32>
  return
}

// -----

func.func @conv_of_small_input(%x: tensor<1x4x2x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x1x6xf32>) {
  // expected-error@+1 {{spatial dimension 0 of init is 1; 0 expected}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x2x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x1x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x1x6xf32>
  return
}

// -----

func.func @conv_of_bytes_onto_floats(%x: tensor<1x4x8x8xi8>, %w: tensor<6x4x3x3xi8>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{elements of 'i8' cannot be extended to those of init, 'f32'}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xi8>, tensor<6x4x3x3xi8>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_of_wide_weights(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf64>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{elements of 'f64' cannot be extended to those of init, 'f32'}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf64>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_channels(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{weights have 4 channels; 2 expected}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 2 : i64} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @conv_filters(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{weights have 6 filters but init 8 channels}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @pool_ranks(%x: tensor<3x8x8xf32>, %e: tensor<1x3x4x4xf32>) {
  // expected-error@+1 {{input and init must be [N,C,H,W], got ranks 3 and 4}}
  %0 = sdx.max_pool ins(%x : tensor<3x8x8xf32>) outs(%e : tensor<1x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x4x4xf32>
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

func.func @pool_kernel(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x4x4xf32>) {
  // expected-error@+1 {{'kernel_shape' must be at least 1, got 0}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 0>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pool_pads(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x4x4xf32>) {
  // expected-error@+1 {{'pads_begin' must be at least 0, got -1}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, -1>} -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @pool_channels(%x: tensor<1x3x8x8xf32>, %e: tensor<1x4x4x4xf32>) {
  // expected-error@+1 {{must have the same first two dimensions, got 3 and 4}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x4x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @pool_images(%x: tensor<1x3x8x8xf32>, %e: tensor<2x3x4x4xf32>) {
  // expected-error@+1 {{must have the same first two dimensions, got 1 and 2}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<2x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @pool_of_open_size_seeing_pads(%x: tensor<1x3x8x?xf32>, %e: tensor<1x3x4x?xf32>) {
  // expected-error@+1 {{has windows that see nothing in spatial dimension 1}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x?xf32>) outs(%e : tensor<1x3x4x?xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 3>} -> tensor<1x3x4x?xf32>
  return
}

// -----

func.func @average_pool_of_bytes(%x: tensor<1x3x8x8xi8>, %e: tensor<1x3x4x4xi8>) {
  // expected-error@+1 {{input and init must be of f32}}
  %0 = sdx.average_pool ins(%x : tensor<1x3x8x8xi8>) outs(%e : tensor<1x3x4x4xi8>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x4x4xi8>
  return
}

// -----

func.func @average_pool_of_other_channels(%x: tensor<1x3x8x8xf32>, %e: tensor<1x4x4x4xf32>) {
  // expected-error@+1 {{input and init must have the same first two dimensions, got 3 and 4}}
  %0 = sdx.average_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x4x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @pool_without_windows(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x0x4xf32>) {
  // expected-error@+1 {{has no windows in spatial dimension 0}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x0x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x0x4xf32>
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

func.func @pool_of_pads(%x: tensor<1x3x8x8xf32>, %e: tensor<1x3x4x4xf32>) {
  // expected-error@+1 {{has windows that see nothing in spatial dimension 1}}
  %0 = sdx.max_pool ins(%x : tensor<1x3x8x8xf32>) outs(%e : tensor<1x3x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 3>} -> tensor<1x3x4x4xf32>
  return
}

// -----

func.func @no_kernel(%t: tensor<8xf32>) {
  // expected-error@+1 {{calls 'nowhere', which is no function}}
  %0 = sdx.call @nowhere(%t : tensor<8xf32>) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @kernel(memref<8xf32>, memref<8xf32>)
func.func @updates_nothing(%t: tensor<8xf32>) {
  // expected-error@+1 {{updates out 1, and it has 1}}
  %0 = sdx.call @kernel(%t : tensor<8xf32>) outs(%t : tensor<8xf32>) {updates = array<i64: 1>} -> tensor<8xf32>
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

// expected-error@+1 {{'sdx.target' must be a machine, as #cpu.target<>, got #cpu.packing<f32, panel = 32>}}
module attributes {sdx.target = #cpu.packing<f32, panel = 32>} {
}

// -----

func.func @conv_without_space(%x: tensor<3xf32>, %w: tensor<8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{input must be [N,C,S...] with one to three spatial dimensions, got rank 1}}
  %0 = sdx.conv ins(%x, %w : tensor<3xf32>, tensor<8xf32>) outs(%y : tensor<8xf32>)
      {strides = array<i64>, dilations = array<i64>, pads_begin = array<i64>, pads_end = array<i64>, group = 1 : i64} -> tensor<8xf32>
  return
}

// -----

func.func @other_float(%a: tensor<2x3xbf16>, %b: tensor<3x4xbf16>, %c: tensor<2x4xf16>) {
  // expected-error@+1 {{elements of 'bf16' cannot be extended to those of init, 'f16'}}
  %0 = sdx.matmul ins(%a, %b : tensor<2x3xbf16>, tensor<3x4xbf16>) outs(%c : tensor<2x4xf16>) -> tensor<2x4xf16>
  return
}

// -----

func.func @unsigned_floats(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x4xf32>) {
  // expected-error@+1 {{'lhs_unsigned' and 'rhs_unsigned' are for integers}}
  %0 = sdx.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x4xf32>) outs(%c : tensor<2x4xf32>) {rhs_unsigned} -> tensor<2x4xf32>
  return
}

// -----

func.func @filters_of_groups(%x: tensor<1x4x5xf32>, %w: tensor<7x2x3xf32>, %y: tensor<1x?x3xf32>) {
  // expected-error@+1 {{weights have 7 filters, which 'group' = 2 does not divide}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x5xf32>, tensor<7x2x3xf32>) outs(%y : tensor<1x?x3xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, group = 2 : i64} -> tensor<1x?x3xf32>
  return
}

// -----

func.func @long_block(%a: tensor<2x8xf32>, %w: tensor<40x1x0xi8>, %s: tensor<40x1xf32>, %y: tensor<2x40xf32>) {
  // expected-error@+1 {{'block' must be positive, at most 2147483647 and of whole bytes, got 4611686018427387904}}
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<2x8xf32>, tensor<40x1x0xi8>, tensor<40x1xf32>) outs(%y : tensor<2x40xf32>)
      {bits = 4 : i64, block = 4611686018427387904 : i64} -> tensor<2x40xf32>
  return
}

// -----

func.func @far_dilation(%x: tensor<1x1x8xf32>, %w: tensor<1x1x3xf32>, %y: tensor<1x1x10xf32>) {
  // expected-error@+1 {{'dilations' must be at most 2147483647, got 9223372036854775807}}
  %0 = sdx.conv ins(%x, %w : tensor<1x1x8xf32>, tensor<1x1x3xf32>) outs(%y : tensor<1x1x10xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 9223372036854775807>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, group = 1 : i64} -> tensor<1x1x10xf32>
  return
}

// -----

func.func @two_sizes(%n: index) {
  // expected-error @below {{has 2 sizes of a grid and 3 of a block; it takes 3 of each}}
  sdx.launch "k" blocks(%n, %n) threads [1, 1, 1] ()
  return
}

// -----

func.func @no_threads(%n: index) {
  // expected-error @below {{has blocks of 0 threads}}
  sdx.launch "k" blocks(%n, %n, %n) threads [1, 0, 1] ()
  return
}

// -----

func.func @passes_a_tensor(%n: index, %t: tensor<4xf32>) {
  // expected-error @below {{passes a 'tensor<4xf32>'; a kernel takes memrefs, integers and floats, and before them tensor maps}}
  sdx.launch "k" blocks(%n, %n, %n) threads [1, 1, 1] (%t : tensor<4xf32>)
  return
}

// -----

func.func @passes_a_map_behind_others(%n: index, %map: vector<16xi64>) {
  // expected-error @below {{passes a 'vector<16xi64>'; a kernel takes memrefs, integers and floats, and before them tensor maps}}
  sdx.launch "k" blocks(%n, %n, %n) threads [1, 1, 1] (%n, %map : index, vector<16xi64>)
  return
}

// -----

func.func @short_record() {
  // expected-error @below {{is 6 words of 64 bits; got 'memref<4xi64>'}}
  %0 = sdx.failure_record : memref<4xi64>
  return
}

// -----

func.func private @k(memref<4xf32, #gpu.address_space<global>>) attributes {sdx.kernel}
func.func @other_space(%m: memref<4xf32>) {
  // expected-error @below {{operand 0 is 'memref<4xf32>' but 'k' takes 'memref<4xf32, #gpu.address_space<global>>'}}
  sdx.call @k(%m : memref<4xf32>)
  return
}

// -----

func.func @unsigned_floats(%x: tensor<1x4x8x8xf32>, %w: tensor<6x4x3x3xf32>, %e: tensor<1x6x6x6xf32>) {
  // expected-error@+1 {{'input_unsigned', 'weights_unsigned' and 'padding' are for integers}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<6x4x3x3xf32>) outs(%e : tensor<1x6x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @padding_of_signed_bytes(%x: tensor<1x4x8x8xi8>, %w: tensor<6x4x3x3xi8>, %e: tensor<1x6x6x6xi32>) {
  // expected-error@+1 {{'padding' = 128 is no element of the input}}
  %0 = sdx.conv ins(%x, %w : tensor<1x4x8x8xi8>, tensor<6x4x3x3xi8>) outs(%e : tensor<1x6x6x6xi32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, padding = 128 : i64} -> tensor<1x6x6x6xi32>
  return
}

// -----

func.func @pool_of_words(%x: tensor<1x4x8x8xi16>, %e: tensor<1x4x4x4xi16>) {
  // expected-error@+1 {{input and init must both be of f32, or both of i8}}
  %0 = sdx.max_pool ins(%x : tensor<1x4x8x8xi16>) outs(%e : tensor<1x4x4x4xi16>) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>} -> tensor<1x4x4x4xi16>
  return
}

// -----

func.func @attention_of_other_types(%q: tensor<2x4x8xf16>, %k: tensor<2x5x8xi8>, %r: tensor<2x4x8xf32>) {
  // expected-error @below {{query, keys and values are of one element type, or keys and values are bytes and the query is of f32}}
  %0 = sdx.attention {indexing_maps = [affine_map<(h, m, n, d, e) -> (h, m, d)>, affine_map<(h, m, n, d, e) -> (h, n, d)>,
                                       affine_map<(h, m, n, d, e) -> (h, n, e)>, affine_map<(h, m, n, d, e) -> (h, m, e)>]}
      ins(%q, %k, %k : tensor<2x4x8xf16>, tensor<2x5x8xi8>, tensor<2x5x8xi8>) outs(%r : tensor<2x4x8xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<2x4x8xf32>
  return
}

// -----

func.func @no_axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{observes channels along no axis}}
  sdx.observe %x site 0 <channels> : tensor<4x8xf32>
  return
}

// -----

func.func @far_axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{observes channels along axis 2 of a value of rank 2}}
  sdx.observe %x site 0 <channels> axis 2 : tensor<4x8xf32>
  return
}

// -----

func.func @no_channels(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{has an axis and observes no channels}}
  sdx.observe %x site 0 <range> axis 1 : tensor<4x8xf32>
  return
}

// -----

func.func @tile_of_channels(%x: memref<4x8xf32>, %n: index) {
  // expected-error@+1 {{has the extent of a tile, which is a buffer of rows}}
  sdx.observe %x[%n, %n] site 0 <channels> axis 1 : memref<4x8xf32>
  return
}

// -----

func.func @gram_and_range(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{adds up matrices, and so observes nothing else}}
  sdx.observe %x site 0 <range|gram> : tensor<4x4xf32>
  return
}
