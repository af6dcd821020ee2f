// RUN: onnx-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{parts are of 16x16 sums or several; got 8x16}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 16, tile_n = 64, tile_k = 64, part_m = 8, part_n = 16, stages = 3>} {}

// -----

// expected-error @below {{a tile of 64x64 sums is not of parts of 48x16}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 48, part_n = 16, stages = 3>} {}

// -----

// expected-error @below {{a block has at most 1024 threads; got 4096}}
module attributes {nv.plan = #nv.matmul_plan<form = fma, tile_m = 256, tile_n = 256, tile_k = 16, part_m = 4, part_n = 4, stages = 3>} {}

// -----

// expected-error @below {{tiles for tensor cores are 64 columns wide or several times that; got 32}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 64, tile_n = 32, tile_k = 64, part_m = 16, part_n = 16, stages = 3>} {}

// -----

// expected-error @below {{a step is of 4 products or several; got 6}}
module attributes {nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 6, part_m = 4, part_n = 4, stages = 3>} {}

// -----

// expected-error @below {{2 to 8 stages are possible; got 1}}
module attributes {nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 4, stages = 1>} {}

// -----

// expected-error @below {{1 to 64 blocks can share a tile; got 0}}
module attributes {nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 4, stages = 2, split = 0>} {}

// -----

// expected-error @below {{1 to 8 blocks are a cluster; got 1x12}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 64, tile_k = 64, part_m = 16, part_n = 16, stages = 4, cluster_n = 12>} {}

// -----

// expected-error @below {{a cluster of 6 blocks is not of tiles that 4 share}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 64, tile_k = 64, part_m = 16, part_n = 16, stages = 4, split = 4, cluster_n = 6>} {}

// -----

// expected-error @below {{the blocks that have whole rows lie along N; got 2 along M}}
module attributes {nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 64, tile_k = 64, part_m = 16, part_n = 16, stages = 4, cluster_m = 2>} {}

// -----

// expected-error @below {{a cluster of warpgroups is two blocks, along M or N; got 2x2}}
module attributes {nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 4, cluster_m = 2, cluster_n = 2>} {}

// -----

// expected-error @below {{clusters multiply by mma or wgmma}}
module attributes {nv.plan = #nv.matmul_plan<form = fma, tile_m = 64, tile_n = 64, tile_k = 16, part_m = 4, part_n = 4, stages = 2, cluster_n = 2>} {}

// -----

func.func @shared() {
  // expected-error @below {{is a row of bytes in the block's memory, memref<Nxi8, #gpu.address_space<workgroup>>; got 'memref<64xi8>'}}
  %0 = nv.shared_memory : memref<64xi8>
  return
}

// -----

func.func @no_box(%x: memref<4x64xf16>, %n: index) {
  // expected-error @below {{has 2 sizes and a box of 1; both are of 1 to 5 dimensions}}
  %0 = nv.tensor_map %x sizes(%n, %n) box [64] swizzle 128 : memref<4x64xf16>
  return
}

// -----

func.func @large_box(%x: memref<4x64xf16>, %n: index) {
  // expected-error @below {{copies boxes of 1 to 256 elements in each dimension, not of 257}}
  %0 = nv.tensor_map %x sizes(%n, %n) box [64, 257] swizzle 128 : memref<4x64xf16>
  return
}

// -----

func.func @wide_box(%x: memref<4x64xf16>, %n: index) {
  // expected-error @below {{has rows of 256 bytes in a box, which are a multiple of 16, and of at most as many as they are swizzled by}}
  %0 = nv.tensor_map %x sizes(%n, %n) box [128, 4] swizzle 128 : memref<4x64xf16>
  return
}

// -----

func.func @doubles(%x: memref<4x64xf64>, %n: index) {
  // expected-error @below {{is of 8 bits, f16, bf16, f32 or i32, not of 'f64'}}
  %0 = nv.tensor_map %x sizes(%n) box [16] swizzle 0 : memref<4x64xf64>
  return
}

// -----

func.func @rounded(%x: memref<4x64xf16>, %n: index) {
  // expected-error @below {{rounds f32 to tf32, not 'f16'}}
  %0 = nv.tensor_map %x sizes(%n) box [16] swizzle 0 tf32 : memref<4x64xf16>
  return
}

// -----

func.func @swizzled(%x: memref<4x64xf16>, %n: index) {
  // expected-error @below {{swizzles rows by 32, 64 or 128 bytes, not by 48}}
  %0 = nv.tensor_map %x sizes(%n) box [16] swizzle 48 : memref<4x64xf16>
  return
}

// -----

// expected-error @below {{a warpgroup has 64 rows, and a block one or two of them; got 64 of 192}}
module attributes {nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 192, tile_n = 64, tile_k = 64, part_m = 64, part_n = 64, stages = 4>} {}

// -----

// expected-error @below {{a warpgroup has all columns, 8 to 256 and several times 8; got 64 of 128}}
module attributes {nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 128, tile_k = 64, part_m = 64, part_n = 64, stages = 4>} {}

// -----

func.func @no_steps(%x: memref<4x5x6x64xf16>, %n: index) {
  // expected-error @below {{has boxes of channels and pixels, corners in all but the first and last dimension, and steps in all}}
  %0 = nv.tensor_map %x sizes(%n, %n, %n, %n) box [64, 64] swizzle 128 lower [0, 0] upper [0, 0] : memref<4x5x6x64xf16>
  return
}

// -----

func.func @far_corner(%x: memref<4x5x6x64xf16>, %n: index) {
  // expected-error @below {{has a corner at -129, which is from -128 to 127}}
  %0 = nv.tensor_map %x sizes(%n, %n, %n, %n) box [64, 64] swizzle 128 lower [0, -129] upper [0, 0] steps [1, 1, 1, 1] : memref<4x5x6x64xf16>
  return
}

// -----

func.func @long_step(%x: memref<4x5x6x64xf16>, %n: index) {
  // expected-error @below {{has a step of 9, which is 1 to 8}}
  %0 = nv.tensor_map %x sizes(%n, %n, %n, %n) box [64, 64] swizzle 128 lower [0, 0] upper [0, 0] steps [1, 9, 1, 1] : memref<4x5x6x64xf16>
  return
}

// -----

// expected-error @below {{a block has 16 to 128 queries, a power of 2; got 48}}
module attributes {nv.plan = #nv.attention_plan<form = mma, queries = 48, keys = 64>} {}

// -----

// expected-error @below {{a tile has 16 to 256 keys, several times 16; got 72}}
module attributes {nv.plan = #nv.attention_plan<form = fma, queries = 4, keys = 72>} {}

// -----

// expected-error @below {{1 to 32 blocks can share keys, 0 as many as are worth it; got 33}}
module attributes {nv.plan = #nv.attention_plan<form = mma, queries = 64, keys = 64, split = 33>} {}
