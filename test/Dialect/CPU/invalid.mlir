// RUN: onnx-opt %s --split-input-file --verify-diagnostics

func.func @k_differs(%a: tensor<8x16xf32>, %b: tensor<2x17x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs has K = 16 but rhs 17}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x17x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @rows(%a: tensor<8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<9x40xf32>) {
  // expected-error@+1 {{lhs has M = 8 but init 9}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<9x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<9x40xf32>
  return
}

// -----

func.func @too_few_panels(%a: tensor<8x16xf32>, %b: tensor<1x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{init has N = 40 columns but rhs only 1 panels of 32}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<1x16x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @batches(%a: tensor<3x8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{lhs has 3 batches but init 4}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<3x8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<4x8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<4x8x40xf32>
  return
}

// -----

func.func @batches_of_rhs(%a: tensor<3x8x16xf32>, %b: tensor<4x2x16x32xf32>, %c: tensor<3x8x40xf32>) {
  // expected-error@+1 {{rhs has 4 batches but init 3}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<3x8x16xf32>, tensor<4x2x16x32xf32>) outs(%c : tensor<3x8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<3x8x40xf32>
  return
}

// -----

func.func @rank_of_lhs(%a: tensor<1x3x8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<1x3x8x40xf32>) {
  // expected-error@+1 {{lhs must be [M,K] or [B,M,K], got rank 4}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<1x3x8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<1x3x8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x3x8x40xf32>
  return
}

// -----

func.func @rank_of_init(%a: tensor<8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<1x8x40xf32>) {
  // expected-error@+1 {{init must have the rank of lhs, 2, got rank 3}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<1x8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x8x40xf32>
  return
}

// -----

func.func @rank_of_rhs(%a: tensor<8x16xf32>, %b: tensor<1x2x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{rhs must be [No,K,Nt], or [B,No,K,Nt] with a batched lhs, got rank 4}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<1x2x16x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @no_result(%a: tensor<8x16xf32>, %b: tensor<2x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has 0 results; 1 expected, one for each tensor in 'outs'}}
  cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x16x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>}
  return
}

// -----

func.func @mixed(%a: tensor<8x16xf32>, %b: memref<2x16x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{works on tensors or on memrefs, not on both}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, memref<2x16x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @lhs_of_bytes(%a: tensor<8x16xf32>, %b: tensor<2x4x128xi8>, %c: tensor<8x40xi32>) {
  // expected-error@+1 {{lhs must be of 'i8' and init of 'i32' for #cpu.packing<i8, panel = 32>}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xf32>, tensor<2x4x128xi8>) outs(%c : tensor<8x40xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<8x40xi32>
  return
}

// -----

func.func @sums_of_bf16(%a: tensor<8x16xbf16>, %b: tensor<2x8x64xbf16>, %c: tensor<8x40xbf16>) {
  // expected-error@+1 {{lhs must be of 'bf16' and init of 'f32'}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x16xbf16>, tensor<2x8x64xbf16>) outs(%c : tensor<8x40xbf16>) {packing = #cpu.packing<bf16, panel = 32>} -> tensor<8x40xbf16>
  return
}

// -----

func.func @groups_of_bytes(%a: tensor<8x9xi8>, %b: tensor<2x2x128xi8>, %c: tensor<8x40xi32>) {
  // expected-error@+1 {{lhs has K = 9 but rhs 2 groups}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x9xi8>, tensor<2x2x128xi8>) outs(%c : tensor<8x40xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<8x40xi32>
  return
}

// -----

func.func @rhs_of_bytes(%a: tensor<8x48xf32>, %b: tensor<2x48x32xi8>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{rhs must be of 'f32' for #cpu.packing<f32, panel = 32>, got 'i8'}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x48xf32>, tensor<2x48x32xi8>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @width_of_panel(%a: tensor<8x48xf32>, %b: tensor<2x12x12xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{the last dimension of rhs must be 64 for #cpu.packing<u4, panel = 32>}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x12xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @open_width(%a: tensor<8x48xf32>, %b: tensor<2x48x?xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{the last dimension of rhs must be 32}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x48xf32>, tensor<2x48x?xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @scales_of_f32(%a: tensor<8x48xf32>, %b: tensor<2x48x32xf32>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has scales or a block, which are for integers of 2, 4 or 8 bits and compressed numbers}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x48x32xf32>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @block_of_f32(%a: tensor<8x48xf32>, %b: tensor<2x48x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has scales or a block}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x48xf32>, tensor<2x48x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @no_scales(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has no scales or no positive block}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x48xf32>, tensor<2x12x64xi8>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @no_block(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has no scales or no positive block}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @block_of_nothing(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has no scales or no positive block}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 0 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @rank_of_scales(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{rhs must be [No,K,X] and scales [No,ceil(K/block),1 or 2,Nt]}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @open_depth(%a: tensor<8x?xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{has scales and open sizes of weights}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x?xf32>, tensor<2x12x64xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @number_of_scales(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x1x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales must be 2x2x1x32 or 2x2x2x32}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x1x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @width_of_scales(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x2x16xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales must be 2x2x1x32 or 2x2x2x32}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x2x16xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @blocks_of_compressed(%a: tensor<8x48xf32>, %b: tensor<2x48x96xi8>, %s: tensor<2x2x1x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales of numbers of 21 or 24 bits must be [No,1,1,Nt]}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x48x96xi8>, tensor<2x2x1x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<w24, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @triples_of_too_few_groups(%a: tensor<8x48xf32>, %b: tensor<2x15x32xi64>, %s: tensor<2x1x1x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{lhs has K = 48 but rhs 15 groups}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x15x32xi64>, tensor<2x1x1x32xf32>) outs(%c : tensor<8x40xf32>) {block = 48 : i64, packing = #cpu.packing<w21, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_of_batches(%a: tensor<4x8x64xf32>, %b: tensor<4x2x64x32xf32>, %c: tensor<4x8x40xf32>) {
  // expected-error@+1 {{only a product of f32 without batches, by weights of known sizes, can go by Strassen's algorithm}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<4x8x64xf32>, tensor<4x2x64x32xf32>) outs(%c : tensor<4x8x40xf32>) {strassen = 64 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<4x8x40xf32>
  return
}

// -----

func.func @strassen_of_open_sizes(%a: tensor<8x?xf32>, %b: tensor<2x?x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{only a product of f32 without batches, by weights of known sizes}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x?xf32>, tensor<2x?x32xf32>) outs(%c : tensor<8x40xf32>) {strassen = 64 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_of_bf16(%a: tensor<8x64xbf16>, %b: tensor<2x32x64xbf16>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{only a product of f32 without batches}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x64xbf16>, tensor<2x32x64xbf16>) outs(%c : tensor<8x40xf32>) {strassen = 32 : i64, packing = #cpu.packing<bf16, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_depth(%a: tensor<8x64xf32>, %b: tensor<2x64x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{strassen must be a multiple of 32 that divides K, and there must be two panels}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x64xf32>, tensor<2x64x32xf32>) outs(%c : tensor<8x40xf32>) {strassen = 16 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @strassen_panels(%a: tensor<8x64xf32>, %b: tensor<1x64x32xf32>, %c: tensor<8x20xf32>) {
  // expected-error@+1 {{there must be two panels}}
  %0 = cpu.packed_matmul ins(%a, %b : tensor<8x64xf32>, tensor<1x64x32xf32>) outs(%c : tensor<8x20xf32>) {strassen = 64 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<8x20xf32>
  return
}

// -----

func.func @pack_depth(%b: tensor<16x40xf32>, %e: tensor<2x17x32xf32>) {
  // expected-error@+1 {{source has K = 16 but init 17}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x17x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x17x32xf32>
  return
}

// -----

func.func @pack_transposed_depth(%b: tensor<16x40xf32>, %e: tensor<2x16x32xf32>) {
  // expected-error@+1 {{source has K = 40 but init 16}}
  %0 = cpu.pack_rhs transposed ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16x32xf32>
  return
}

// -----

func.func @panels(%b: tensor<16x40xf32>, %e: tensor<3x16x32xf32>) {
  // expected-error@+1 {{source has N = 40, which makes 2 panels, but init has 3}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<3x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<3x16x32xf32>
  return
}

// -----

func.func @pack_batches(%b: tensor<5x16x40xf32>, %e: tensor<6x2x16x32xf32>) {
  // expected-error@+1 {{source has 5 batches but init 6}}
  %0 = cpu.pack_rhs ins(%b : tensor<5x16x40xf32>) outs(%e : tensor<6x2x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<6x2x16x32xf32>
  return
}

// -----

func.func @heads(%b: tensor<2x16x3x40xf32>, %e: tensor<5x2x16x32xf32>) {
  // expected-error@+1 {{source has 6 batches but init 5}}
  %0 = cpu.pack_rhs ins(%b : tensor<2x16x3x40xf32>) outs(%e : tensor<5x2x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<5x2x16x32xf32>
  return
}

// -----

func.func @pack_vector(%b: tensor<40xf32>, %e: tensor<2x1x32xf32>) {
  // expected-error@+1 {{source must be a matrix or a batch of matrices, got rank 1}}
  %0 = cpu.pack_rhs ins(%b : tensor<40xf32>) outs(%e : tensor<2x1x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x1x32xf32>
  return
}

// -----

func.func @pack_into_batches(%b: tensor<16x40xf32>, %e: tensor<1x2x16x32xf32>) {
  // expected-error@+1 {{init must have rank 3 for a source of rank 2, got 4}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<1x2x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x2x16x32xf32>
  return
}

// -----

func.func @pack_into_bytes(%b: tensor<16x40xf32>, %e: tensor<2x16x32xi8>) {
  // expected-error@+1 {{init must be of 'f32' for #cpu.packing<f32, panel = 32>, got 'i8'}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x16x32xi8>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16x32xi8>
  return
}

// -----

func.func @pack_into_wide_panels(%b: tensor<16x40xf32>, %e: tensor<2x16x64xf32>) {
  // expected-error@+1 {{the last dimension of init must be 32}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x16x64xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16x64xf32>
  return
}

// -----

func.func @pack_bf16(%b: tensor<16x40xf32>, %e: tensor<2x8x64xbf16>) {
  // expected-error@+1 {{packs f32, as they are or in 21 or 24 bits, and signed bytes, and not #cpu.packing<bf16, panel = 32>}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x8x64xbf16>) {packing = #cpu.packing<bf16, panel = 32>} -> tensor<2x8x64xbf16>
  return
}

// -----

func.func @pack_floats_as_bytes(%b: tensor<16x40xf32>, %e: tensor<2x4x128xi8>) {
  // expected-error@+1 {{source must be of 'i8' for #cpu.packing<i8, panel = 32>}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x4x128xi8>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<2x4x128xi8>
  return
}

// -----

func.func @pack_too_few_groups(%b: tensor<17x40xi8>, %e: tensor<2x4x128xi8>) {
  // expected-error@+1 {{source has K = 5 but init 4 groups}}
  %0 = cpu.pack_rhs ins(%b : tensor<17x40xi8>) outs(%e : tensor<2x4x128xi8>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<2x4x128xi8>
  return
}

// -----

func.func @pack_by_scales(%b: tensor<16x40xf32>, %s: tensor<2x1x1x32xf32>, %e: tensor<2x16x32xf32>) {
  // expected-error@+1 {{has scales where it compresses numbers, and only there}}
  %0 = cpu.pack_rhs ins(%b, %s : tensor<16x40xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16x32xf32>
  return
}

// -----

func.func @pack_without_scales(%b: tensor<16x40xf32>, %e: tensor<2x16x96xi8>) {
  // expected-error@+1 {{has scales where it compresses numbers, and only there}}
  %0 = cpu.pack_rhs ins(%b : tensor<16x40xf32>) outs(%e : tensor<2x16x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<2x16x96xi8>
  return
}

// -----

func.func @pack_by_few_scales(%b: tensor<16x40xf32>, %s: tensor<1x1x1x32xf32>, %e: tensor<2x16x96xi8>) {
  // expected-error@+1 {{scales must be [No,1,1,Nt] for [No,X,Y]}}
  %0 = cpu.pack_rhs ins(%b, %s : tensor<16x40xf32>, tensor<1x1x1x32xf32>) outs(%e : tensor<2x16x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<2x16x96xi8>
  return
}

// -----

func.func @pack_compressed_batches(%b: tensor<5x16x40xf32>, %s: tensor<5x1x1x32xf32>, %e: tensor<5x2x16x96xi8>) {
  // expected-error@+1 {{scales must be [No,1,1,Nt] for [No,X,Y]}}
  %0 = cpu.pack_rhs ins(%b, %s : tensor<5x16x40xf32>, tensor<5x1x1x32xf32>) outs(%e : tensor<5x2x16x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<5x2x16x96xi8>
  return
}

// -----

func.func @pack_triples_of_too_few_groups(%b: tensor<10x40xf32>, %s: tensor<2x1x1x32xf32>, %e: tensor<2x3x32xi64>) {
  // expected-error@+1 {{source has K = 4 but init 3 groups}}
  %0 = cpu.pack_rhs ins(%b, %s : tensor<10x40xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x3x32xi64>) {packing = #cpu.packing<w21, panel = 32>} -> tensor<2x3x32xi64>
  return
}

// -----

func.func @rank_of_weights(%x: tensor<1x3x8x8xf32>, %w: tensor<1x27x8xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{weights must be packed, [G,Ob,K,Rt], got rank 3}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x27x8xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @block_of_weights(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x16xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{weights must be of 'f32' and have 8 in the last dimension for #cpu.filters<f32, rows = 8>, got 'tensor<1x1x27x16xf32>'}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x16xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @split_weights_of_f32(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x9x2048xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{weights must be of 'bf16' and have 2048 in the last dimension}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x9x2048xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @window(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{'strides' must have 2 elements, one for each spatial dimension, got 1}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @kernel(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{'kernel_shape' must be at least 1, got 0}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 0>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @spatial(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x7xf32>) {
  // expected-error@+1 {{spatial dimension 1 of init is 7; 6 expected}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x7xf32>
  return
}

// -----

func.func @groups_of_weights(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x9x8xf32>, %e: tensor<1x9x6x6xf32>) {
  // expected-error@+1 {{weights have 1 groups but 'group' is 3}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x9x8xf32>) outs(%e : tensor<1x9x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 3 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x9x6x6xf32>
  return
}

// -----

func.func @depth_of_weights(%x: tensor<1x4x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x8x6x6xf32>) {
  // expected-error@+1 {{weights have K = 27; 36 expected}}
  %0 = cpu.conv ins(%x, %w : tensor<1x4x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x8x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x6x6xf32>
  return
}

// -----

func.func @blocks_of_weights(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x27x8xf32>, %e: tensor<1x9x6x6xf32>) {
  // expected-error@+1 {{init has 9 channels a group but weights only 1 blocks of 8}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x27x8xf32>) outs(%e : tensor<1x9x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x9x6x6xf32>
  return
}

// -----

func.func @winograd_kernel(%x: tensor<1x3x8x8xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x6x4xf32>) {
  // expected-error@+1 {{'winograd' is for kernels of 3x3 and one group}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x8x8xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x6x4xf32>)
      {kernel_shape = array<i64: 3, 5>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x8x6x4xf32>
  return
}

// -----

func.func @winograd_groups(%x: tensor<1x6x8x8xf32>, %w: tensor<2x1x48x8xf32>, %e: tensor<1x16x6x6xf32>) {
  // expected-error@+1 {{'winograd' is for kernels of 3x3 and one group}}
  %0 = cpu.conv ins(%x, %w : tensor<1x6x8x8xf32>, tensor<2x1x48x8xf32>) outs(%e : tensor<1x16x6x6xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 2 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x16x6x6xf32>
  return
}

// -----

func.func @winograd_dilated(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x5x5xf32>) {
  // expected-error@+1 {{'winograd' is for no dilations}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x5x5xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x8x5x5xf32>
  return
}

// -----

func.func @winograd_strided(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x4x4xf32>) {
  // expected-error@+1 {{filters are transformed for strides of 1}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x8x4x4xf32>
  return
}

// -----

func.func @winograd_strides(%x: tensor<1x3x9x9xf32>, %w: tensor<1x1x48x8xf32>, %e: tensor<1x8x7x4xf32>) {
  // expected-error@+1 {{filters are transformed for strides of 2}}
  %0 = cpu.conv ins(%x, %w : tensor<1x3x9x9xf32>, tensor<1x1x48x8xf32>) outs(%e : tensor<1x8x7x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2, stride = 2>} -> tensor<1x8x7x4xf32>
  return
}

// -----

func.func @rank_of_filters(%w: tensor<12x3xf32>, %e: tensor<1x2x3x8xf32>) {
  // expected-error@+1 {{source must be [OC,C/G,k...] with one to three kernel dimensions, got rank 2}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3xf32>) outs(%e : tensor<1x2x3x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x2x3x8xf32>
  return
}

// -----

func.func @rank_of_blocks(%w: tensor<12x3x3x3xf32>, %e: tensor<2x27x8xf32>) {
  // expected-error@+1 {{init must be packed, [G,Ob,K,Rt], got rank 3}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<2x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<2x27x8xf32>
  return
}

// -----

func.func @rows_of_blocks(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x27x?xf32>) {
  // expected-error@+1 {{init must be of 'f32' and have 8 in the last dimension}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x27x?xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x2x27x?xf32>
  return
}

// -----

func.func @no_groups(%w: tensor<12x3x3x3xf32>, %e: tensor<0x2x27x8xf32>) {
  // expected-error@+1 {{init has no groups}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<0x2x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<0x2x27x8xf32>
  return
}

// -----

func.func @groups(%w: tensor<12x3x3x3xf32>, %e: tensor<5x1x27x8xf32>) {
  // expected-error@+1 {{source has 12 output channels, which the 5 groups of init do not divide}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<5x1x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<5x1x27x8xf32>
  return
}

// -----

func.func @blocks(%w: tensor<12x3x3x3xf32>, %e: tensor<2x2x27x8xf32>) {
  // expected-error@+1 {{init has 2 blocks; 1 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<2x2x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<2x2x27x8xf32>
  return
}

// -----

func.func @depth(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x28x8xf32>) {
  // expected-error@+1 {{init has K = 28; 27 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x28x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<1x2x28x8xf32>
  return
}

// -----

func.func @winograd_1x1(%w: tensor<32x16x1x1xf32>, %e: tensor<1x4x576x8xf32>) {
  // expected-error@+1 {{'winograd' is for kernels of 3x3 and one group}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x1x1xf32>) outs(%e : tensor<1x4x576x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x4x576x8xf32>
  return
}

// -----

func.func @winograd_depth(%w: tensor<12x3x3x3xf32>, %e: tensor<1x2x27x8xf32>) {
  // expected-error@+1 {{init has K = 27; 48 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<12x3x3x3xf32>) outs(%e : tensor<1x2x27x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x2x27x8xf32>
  return
}

// -----

func.func @step_of_parts(%w: tensor<32x16x3x3xf32>, %e: tensor<1x1x9x1024xbf16>) {
  // expected-error@+1 {{init must be of 'bf16' and have 2048 in the last dimension}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x16x3x3xf32>) outs(%e : tensor<1x1x9x1024xbf16>) {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x1x9x1024xbf16>
  return
}

// -----

func.func @steps_of_parts(%w: tensor<32x40x3x3xf32>, %e: tensor<1x1x9x2048xbf16>) {
  // expected-error@+1 {{init has K = 9; 18 expected}}
  %0 = cpu.pack_conv_weights ins(%w : tensor<32x40x3x3xf32>) outs(%e : tensor<1x1x9x2048xbf16>) {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x1x9x2048xbf16>
  return
}

// -----

// expected-error@+1 {{a panel has 1 to 65536 columns, not 0}}
module attributes {test.layout = #cpu.packing<f32, panel = 0>} {
}

// -----

// expected-error@+1 {{a panel has 1 to 65536 columns, not 65537}}
module attributes {test.layout = #cpu.packing<f32, panel = 65537>} {
}

// -----

// expected-error@+1 {{panels of numbers of 21 or 24 bits must have a power of two of columns, from 8 on, but have 24}}
module attributes {test.layout = #cpu.packing<w21, panel = 24>} {
}

// -----

// expected-error@+1 {{a power of two of columns, from 8 on, but have 4}}
module attributes {test.layout = #cpu.packing<w24, panel = 4>} {
}

// -----

// expected-error@+1 {{a panel of 31 columns has no bytes of 2 integers}}
module attributes {test.layout = #cpu.packing<u4, panel = 31>} {
}

// -----

// expected-error@+1 {{a panel of 30 columns has no bytes of 4 integers}}
module attributes {test.layout = #cpu.packing<u2, panel = 30>} {
}

// -----

// expected-error@+1 {{a block has 1 to 65536 filters, not 0}}
module attributes {test.layout = #cpu.filters<f32, rows = 0>} {
}

// -----

// expected-error@+1 {{'winograd' must be 2 or 4, got 3}}
module attributes {test.layout = #cpu.filters<f32, rows = 8, winograd = 3>} {
}

// -----

// expected-error@+1 {{'stride' must be 1 or 2, and is for 'winograd'; got 2}}
module attributes {test.layout = #cpu.filters<f32, rows = 8, stride = 2>} {
}

// -----

// expected-error@+1 {{'stride' must be 1 or 2, and is for 'winograd'; got 3}}
module attributes {test.layout = #cpu.filters<f32, rows = 8, winograd = 2, stride = 3>} {
}

// -----

// expected-error@+1 {{filters in the lanes of vectors come in blocks of 32, not of 8}}
module attributes {test.layout = #cpu.filters<f32, rows = 8, in_lanes = true>} {
}

// -----

// expected-error@+1 {{sums of bf16 come in blocks of 32 filters, and neither for 'winograd' nor in lanes}}
module attributes {test.layout = #cpu.filters<bf16x2, rows = 8>} {
}

// -----

// expected-error@+1 {{sums of bf16 come in blocks of 32 filters, and neither for 'winograd' nor in lanes}}
module attributes {test.layout = #cpu.filters<bf16x2, rows = 32, winograd = 2>} {
}

// -----

func.func @zero_points_of_floats(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x2x32xf32>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{floats of 4 or 8 bits have no zero points}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x2x32xf32>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<f4, panel = 32>} -> tensor<8x40xf32>
  return
}

// -----

func.func @scales_of_f64(%a: tensor<8x48xf32>, %b: tensor<2x12x64xi8>, %s: tensor<2x2x1x32xf64>, %c: tensor<8x40xf32>) {
  // expected-error@+1 {{scales are of f32 or, of numbers of a few bits, of f16 or bf16, not of 'f64'}}
  %0 = cpu.packed_matmul ins(%a, %b, %s : tensor<8x48xf32>, tensor<2x12x64xi8>, tensor<2x2x1x32xf64>) outs(%c : tensor<8x40xf32>) {block = 32 : i64, packing = #cpu.packing<u4, panel = 32>} -> tensor<8x40xf32>
  return
}
