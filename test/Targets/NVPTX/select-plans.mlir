// RUN: onnx-opt %s -split-input-file -verify-diagnostics -nv-select-plans | FileCheck %s


// The largest tiles that leave no multiprocessor without work; where there are
// too few, several blocks share a tile.
// CHECK-LABEL: func @large
// CHECK-SAME: nv.plan = #nv.matmul_plan<form = mma, tile_m = 128, tile_n = 128, tile_k = 64, part_m = 64, part_n = 64, stages = 3>
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func @large(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>, %z: tensor<4096x4096xf32>)
      -> tensor<4096x4096xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4096x4096xf16>, tensor<4096x4096xf16>) outs(%z : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    return %r : tensor<4096x4096xf32>
  }
  // CHECK-LABEL: func @few
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = fma, {{.*}}, split = {{[0-9]+}}>
  func.func @few(%x: tensor<8x4096xf32>, %w: tensor<4096x64xf32>, %z: tensor<8x64xf32>)
      -> tensor<8x64xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<8x4096xf32>, tensor<4096x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
  // Rows that are few go without tiles. Fewer columns have fewer lanes.
  // CHECK-LABEL: func @one
  // CHECK-SAME: nv.plan = #nv.few_rows_plan<lanes = 32>
  func.func @one(%x: tensor<1x64xf16>, %w: tensor<64x40960xf16>, %z: tensor<1x40960xf32>)
      -> tensor<1x40960xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<1x64xf16>, tensor<64x40960xf16>) outs(%z : tensor<1x40960xf32>) -> tensor<1x40960xf32>
    return %r : tensor<1x40960xf32>
  }
  // CHECK-LABEL: func @narrow
  // CHECK-SAME: nv.plan = #nv.few_rows_plan<lanes = 4>
  func.func @narrow(%x: tensor<4x64xf32>, %w: tensor<64x128xf32>, %z: tensor<4x128xf32>)
      -> tensor<4x128xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4x64xf32>, tensor<64x128xf32>) outs(%z : tensor<4x128xf32>) -> tensor<4x128xf32>
    return %r : tensor<4x128xf32>
  }
  // Rows of [N,K] are short here.
  // CHECK-LABEL: func @transposed
  // CHECK-SAME: nv.plan = #nv.few_rows_plan<lanes = 8>
  func.func @transposed(%x: tensor<1x64xf16>, %w: tensor<40960x64xf16>, %z: tensor<1x40960xf32>)
      -> tensor<1x40960xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<1x64xf16>, tensor<40960x64xf16>) outs(%z : tensor<1x40960xf32>) {transposed} -> tensor<1x40960xf32>
    return %r : tensor<1x40960xf32>
  }
  // CHECK-LABEL: func @batched
  // CHECK-SAME: nv.plan = #nv.few_rows_plan<lanes = 32>
  func.func @batched(%x: tensor<128x2x64xf32>, %w: tensor<128x64x256xf32>, %z: tensor<128x2x256xf32>)
      -> tensor<128x2x256xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x2x64xf32>, tensor<128x64x256xf32>) outs(%z : tensor<128x2x256xf32>) -> tensor<128x2x256xf32>
    return %r : tensor<128x2x256xf32>
  }
  // A plan stays.
  // CHECK-LABEL: func @given
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 8, stages = 2>
  func.func @given(%x: tensor<8x4096xf32>, %w: tensor<4096x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 8, stages = 2>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x4096xf32>, tensor<4096x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
  // CHECK-LABEL: func @loops
  // CHECK-SAME: nv.plan = #nv.loops
  func.func @loops(%x: tensor<8xf32>) -> tensor<8xf32> attributes {sdx.kernel, nv.plan = #nv.loops} {
    return %x : tensor<8xf32>
  }
  // Operands that may be rounded are, by the tensor cores.
  // CHECK-LABEL: func @tf32
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = mma, {{.*}}tile_k = 32
  func.func @tf32(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>, %z: tensor<512x512xf32>)
      -> tensor<512x512xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<512x512xf32>, tensor<512x512xf32>) outs(%z : tensor<512x512xf32>) {nv.tf32} -> tensor<512x512xf32>
    return %r : tensor<512x512xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 86>} {
  // expected-error@+1 {{the plan #nv.matmul_plan<form = mma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 32, part_n = 32, stages = 2> of kernel 'form' does not fit: what it multiplies goes by fma}}
  func.func @form(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 32, part_n = 32, stages = 2>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 86>} {
  // expected-error@+1 {{of kernel 'depth' does not fit: tile_k is a multiple of 64}}
  func.func @depth(%x: tensor<8x64xf16>, %w: tensor<64x64xf16>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 64, tile_n = 64, tile_k = 32, part_m = 32, part_n = 32, stages = 2>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 86>} {
  // expected-error@+1 {{of kernel 'shared' does not fit: its tiles take 131072 bytes of shared memory, a block has at most 101376}}
  func.func @shared(%x: tensor<8x64xf16>, %w: tensor<64x64xf16>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 128, tile_n = 128, tile_k = 64, part_m = 64, part_n = 64, stages = 4>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 80>} {
  // expected-error@+1 {{of kernel 'sums' does not fit: a thread has 1024 bytes of sums, at most 512 are in registers}}
  func.func @sums(%x: tensor<8x64xf16>, %w: tensor<64x64xf16>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 128, tile_n = 128, tile_k = 64, part_m = 64, part_n = 128, stages = 2>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x64xf16>, tensor<64x64xf16>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 80>} {
  // expected-error@+1 {{of kernel 'other' does not fit: it is for another kind of kernel}}
  func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 8, stages = 2>} {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 80>} {
  // expected-error@+1 {{of kernel 'many' does not fit: it is for another kind of kernel}}
  func.func @many(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.few_rows_plan<lanes = 8>} {
    %r = sdx.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>) outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32>
    return %r : tensor<8x64xf32>
  }
}

// -----

// From compute capability 9.0 on warpgroups multiply: large tiles where they
// are enough for the device and K is long, two of them a cluster, else small
// ones, which few blocks share.
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // CHECK-LABEL: func @warpgroups
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 256, tile_k = 64, part_m = 64, part_n = 256, stages = 4, cluster_m = 2>
  func.func @warpgroups(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>, %z: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4096x4096xf16>, tensor<4096x4096xf16>) outs(%z : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
    return %r : tensor<4096x4096xf32>
  }
  // CHECK-LABEL: func @short
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 128, {{.*}}stages = 6, cluster_m = 2>
  func.func @short(%x: tensor<4096x768xbf16>, %w: tensor<768x3072xbf16>, %z: tensor<4096x3072xf32>) -> tensor<4096x3072xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4096x768xbf16>, tensor<768x3072xbf16>) outs(%z : tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
    return %r : tensor<4096x3072xf32>
  }
  // CHECK-LABEL: func @small
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 6>
  func.func @small(%x: tensor<128x768xf16>, %w: tensor<768x3072xf16>, %z: tensor<128x3072xf32>) -> tensor<128x3072xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x3072xf16>) outs(%z : tensor<128x3072xf32>) -> tensor<128x3072xf32>
    return %r : tensor<128x3072xf32>
  }
  // CHECK-LABEL: func @shared
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, {{.*}}stages = 6, split = 4>
  func.func @shared(%x: tensor<128x3072xf16>, %w: tensor<3072x768xf16>, %z: tensor<128x768xf32>) -> tensor<128x768xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x3072xf16>, tensor<3072x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    return %r : tensor<128x768xf32>
  }
  // CHECK-LABEL: func @narrow
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 32, {{.*}}stages = 8, split = 2>
  func.func @narrow(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>) -> tensor<128x768xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) {transposed} -> tensor<128x768xf32>
    return %r : tensor<128x768xf32>
  }
  // CHECK-LABEL: func @rounded
  // CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 256, tile_k = 32, {{.*}}stages = 4, cluster_m = 2>
  func.func @rounded(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %z: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%z : tensor<4096x4096xf32>) {nv.tf32, transposed} -> tensor<4096x4096xf32>
    return %r : tensor<4096x4096xf32>
  }
  // CHECK-LABEL: func @rounded_across
  // CHECK-SAME: form = mma
  func.func @rounded_across(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %z: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%z : tensor<4096x4096xf32>) {nv.tf32} -> tensor<4096x4096xf32>
    return %r : tensor<4096x4096xf32>
  }
  // CHECK-LABEL: func @bytes
  // CHECK-SAME: form = mma
  func.func @bytes(%x: tensor<2048x1024xi8>, %w: tensor<2048x1024xi8>, %z: tensor<2048x2048xi32>) -> tensor<2048x2048xi32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<2048x1024xi8>, tensor<2048x1024xi8>) outs(%z : tensor<2048x2048xi32>) {transposed, lhs_unsigned} -> tensor<2048x2048xi32>
    return %r : tensor<2048x2048xi32>
  }
  // Few rows, and rows of odd sizes.
  // CHECK-LABEL: func @sixteen
  // CHECK-SAME: form = mma
  func.func @sixteen(%x: tensor<16x768xf16>, %w: tensor<768x768xf16>, %z: tensor<16x768xf32>) -> tensor<16x768xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<16x768xf16>, tensor<768x768xf16>) outs(%z : tensor<16x768xf32>) -> tensor<16x768xf32>
    return %r : tensor<16x768xf32>
  }
  // CHECK-LABEL: func @odd
  // CHECK-SAME: form = mma
  func.func @odd(%x: tensor<128x764xf16>, %w: tensor<764x768xf16>, %z: tensor<128x768xf32>) -> tensor<128x768xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x764xf16>, tensor<764x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    return %r : tensor<128x768xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90>} {
  // expected-error@+1 {{of kernel 'older' does not fit: no warpgroups of sm_90 multiply}}
  func.func @older(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 4>} {
    %r = sdx.matmul ins(%x, %w : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // expected-error@+1 {{of kernel 'rows' does not fit: the rows of what warpgroups multiply are multiples of 16 bytes}}
  func.func @rows(%x: tensor<64x60xf16>, %w: tensor<60x64xf16>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 4>} {
    %r = sdx.matmul ins(%x, %w : tensor<64x60xf16>, tensor<60x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // expected-error@+1 {{of kernel 'columns' does not fit: tile_n is a multiple of 64}}
  func.func @columns(%x: tensor<64x64xf16>, %w: tensor<64x64xf16>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 32, tile_k = 64, part_m = 64, part_n = 32, stages = 4>} {
    %r = sdx.matmul ins(%x, %w : tensor<64x64xf16>, tensor<64x64xf16>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // expected-error@+1 {{of kernel 'types' does not fit: warpgroups multiply matrices of f16, bf16, tf32, bf16x3 and bytes}}
  func.func @types(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 32, part_m = 64, part_n = 64, stages = 4>} {
    %r = sdx.matmul ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
}

// -----

// Windows whose channels are not those of one copy have another form.
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // CHECK-LABEL: func @windows
  // CHECK-SAME: form = wgmma, tile_m = 128, tile_n = 128, {{.*}}split = 2
  func.func @windows(%x: tensor<32x7x7x512xf16>, %w: tensor<512x3x3x512xf16>, %z: tensor<32x7x7x512xf32>) -> tensor<32x7x7x512xf32> attributes {sdx.kernel} {
    %r = nv.conv ins(%x, %w : tensor<32x7x7x512xf16>, tensor<512x3x3x512xf16>) outs(%z : tensor<32x7x7x512xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<32x7x7x512xf32>
    return %r : tensor<32x7x7x512xf32>
  }
  // CHECK-LABEL: func @few_channels
  // CHECK-SAME: form = mma
  func.func @few_channels(%x: tensor<32x7x7x32xf16>, %w: tensor<512x3x3x32xf16>, %z: tensor<32x7x7x512xf32>) -> tensor<32x7x7x512xf32> attributes {sdx.kernel} {
    %r = nv.conv ins(%x, %w : tensor<32x7x7x32xf16>, tensor<512x3x3x32xf16>) outs(%z : tensor<32x7x7x512xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64} -> tensor<32x7x7x512xf32>
    return %r : tensor<32x7x7x512xf32>
  }
  // CHECK-LABEL: func @wide_steps
  // CHECK-SAME: form = mma
  func.func @wide_steps(%x: tensor<32x63x63x64xf16>, %w: tensor<512x3x3x64xf16>, %z: tensor<32x7x7x512xf32>) -> tensor<32x7x7x512xf32> attributes {sdx.kernel} {
    %r = nv.conv ins(%x, %w : tensor<32x63x63x64xf16>, tensor<512x3x3x64xf16>) outs(%z : tensor<32x7x7x512xf32>)
        {strides = array<i64: 9, 9>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<32x7x7x512xf32>
    return %r : tensor<32x7x7x512xf32>
  }
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// Attention: where blocks are few they share the keys, of open sizes as many as
// the host counts.
module attributes {sdx.target = #nv.target<sm = 80>} {
  // CHECK-LABEL: func @attention
  // CHECK-SAME: nv.plan = #nv.attention_plan<form = mma, queries = 64, keys = 64>
  func.func @attention(%q: tensor<12x128x64xf16>, %k: tensor<12x128x64xf16>, %v: tensor<12x128x64xf16>, %e: tensor<12x128x64xf16>) -> tensor<12x128x64xf16> attributes {sdx.kernel} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x128x64xf16>, tensor<12x128x64xf16>, tensor<12x128x64xf16>)
        outs(%e : tensor<12x128x64xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x128x64xf16>
    return %a : tensor<12x128x64xf16>
  }
  // CHECK-LABEL: func @decoder
  // CHECK-SAME: nv.plan = #nv.attention_plan<form = fma, queries = 4, keys = 64, split = 8>
  func.func @decoder(%q: tensor<12x1x64xf32>, %k: tensor<12x1024x64xf32>, %v: tensor<12x1024x64xf32>, %e: tensor<12x1x64xf32>) -> tensor<12x1x64xf32> attributes {sdx.kernel} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x1x64xf32>, tensor<12x1024x64xf32>, tensor<12x1024x64xf32>)
        outs(%e : tensor<12x1x64xf32>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x1x64xf32>
    return %a : tensor<12x1x64xf32>
  }
  // CHECK-LABEL: func @open
  // CHECK-SAME: nv.plan = #nv.attention_plan<form = mma, queries = 64, keys = 64, split = 0>
  func.func @open(%q: tensor<12x?x64xf16>, %k: tensor<12x?x64xf16>, %v: tensor<12x?x64xf16>, %e: tensor<12x?x64xf16>) -> tensor<12x?x64xf16> attributes {sdx.kernel} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x?x64xf16>, tensor<12x?x64xf16>, tensor<12x?x64xf16>)
        outs(%e : tensor<12x?x64xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x?x64xf16>
    return %a : tensor<12x?x64xf16>
  }
  // CHECK-LABEL: func @given_attention
  // CHECK-SAME: nv.plan = #nv.attention_plan<form = mma, queries = 32, keys = 32, split = 2>
  func.func @given_attention(%q: tensor<12x128x64xf16>, %k: tensor<12x128x64xf16>, %v: tensor<12x128x64xf16>, %e: tensor<12x128x64xf16>) -> tensor<12x128x64xf16> attributes {sdx.kernel,
      nv.plan = #nv.attention_plan<form = mma, queries = 32, keys = 32, split = 2>} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x128x64xf16>, tensor<12x128x64xf16>, tensor<12x128x64xf16>)
        outs(%e : tensor<12x128x64xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x128x64xf16>
    return %a : tensor<12x128x64xf16>
  }
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

module attributes {sdx.target = #nv.target<sm = 80>} {
  // expected-error@+1 {{of kernel 'attention_form' does not fit: what it multiplies goes by mma}}
  func.func @attention_form(%q: tensor<12x128x64xf16>, %k: tensor<12x128x64xf16>, %v: tensor<12x128x64xf16>, %e: tensor<12x128x64xf16>) -> tensor<12x128x64xf16> attributes {sdx.kernel,
      nv.plan = #nv.attention_plan<form = fma, queries = 32, keys = 32>} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x128x64xf16>, tensor<12x128x64xf16>, tensor<12x128x64xf16>)
        outs(%e : tensor<12x128x64xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x128x64xf16>
    return %a : tensor<12x128x64xf16>
  }
  // expected-error@+1 {{of kernel 'attention_sums' does not fit: a thread has 256 scores and sums, at most 192 are in registers}}
  func.func @attention_sums(%q: tensor<12x128x256xf16>, %k: tensor<12x128x256xf16>, %v: tensor<12x128x256xf16>, %e: tensor<12x128x256xf16>) -> tensor<12x128x256xf16> attributes {sdx.kernel,
      nv.plan = #nv.attention_plan<form = mma, queries = 64, keys = 256>} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x128x256xf16>, tensor<12x128x256xf16>, tensor<12x128x256xf16>)
        outs(%e : tensor<12x128x256xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x128x256xf16>
    return %a : tensor<12x128x256xf16>
  }
  // expected-error@+1 {{of kernel 'attention_shared' does not fit: its tiles take 174080 bytes of shared memory, a block has at most 166912}}
  func.func @attention_shared(%q: tensor<12x128x128xf16>, %k: tensor<12x128x128xf16>, %v: tensor<12x128x128xf16>, %e: tensor<12x128x128xf16>) -> tensor<12x128x128xf16> attributes {sdx.kernel,
      nv.plan = #nv.attention_plan<form = mma, queries = 128, keys = 128>} {
    %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
        ins(%q, %k, %v : tensor<12x128x128xf16>, tensor<12x128x128xf16>, tensor<12x128x128xf16>)
        outs(%e : tensor<12x128x128xf16>) {
    ^bb0(%score: f32, %h: index, %m: index, %n: index):
      sdx.yield %score : f32
    } -> tensor<12x128x128xf16>
    return %a : tensor<12x128x128xf16>
  }
}

// -----

// Products that start together leave no multiprocessor without work where one
// alone would be shared by several blocks.
// CHECK-LABEL: func @alone
// CHECK-SAME: split = 3
// CHECK-LABEL: func @together
// CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 6>
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  func.func @alone(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>)
      -> tensor<128x768xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    return %r : tensor<128x768xf32>
  }
  func.func @together(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>)
      -> tensor<128x768xf32> attributes {sdx.kernel, nv.together = 3 : i64} {
    %r = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    return %r : tensor<128x768xf32>
  }
}

// -----

// In a last row of single tiles one block of a cluster has nothing to do: there
// are none where that took another round of tiles, or the number of rows is open.
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // CHECK-LABEL: func @three_rows
  // CHECK-SAME: stages = 6>
  func.func @three_rows(%x: tensor<384x512xf16>, %w: tensor<512x16384xf16>, %z: tensor<384x16384xf32>) -> tensor<384x16384xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<384x512xf16>, tensor<512x16384xf16>) outs(%z : tensor<384x16384xf32>) -> tensor<384x16384xf32>
    return %r : tensor<384x16384xf32>
  }
  // CHECK-LABEL: func @seven_rows
  // CHECK-SAME: stages = 6, cluster_m = 2>
  func.func @seven_rows(%x: tensor<896x768xf16>, %w: tensor<768x3072xf16>, %z: tensor<896x3072xf32>) -> tensor<896x3072xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<896x768xf16>, tensor<768x3072xf16>) outs(%z : tensor<896x3072xf32>) -> tensor<896x3072xf32>
    return %r : tensor<896x3072xf32>
  }
  // CHECK-LABEL: func @open
  // CHECK-SAME: stages = 6>
  func.func @open(%x: tensor<?x512xf16>, %w: tensor<512x16384xf16>, %z: tensor<?x16384xf32>) -> tensor<?x16384xf32> attributes {sdx.kernel} {
    %r = sdx.matmul ins(%x, %w : tensor<?x512xf16>, tensor<512x16384xf16>) outs(%z : tensor<?x16384xf32>) -> tensor<?x16384xf32>
    return %r : tensor<?x16384xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  // expected-error@+1 {{of kernel 'parts' does not fit: tile_n is a multiple of 128 where blocks share the right-hand side}}
  func.func @parts(%x: tensor<512x512xf16>, %w: tensor<512x512xf16>, %z: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 4, cluster_m = 2>} {
    %r = sdx.matmul ins(%x, %w : tensor<512x512xf16>, tensor<512x512xf16>) outs(%z : tensor<512x512xf32>) -> tensor<512x512xf32>
    return %r : tensor<512x512xf32>
  }
}
