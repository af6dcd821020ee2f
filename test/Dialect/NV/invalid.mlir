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

func.func @shared() {
  // expected-error @below {{is a row of bytes in the block's memory, memref<Nxi8, #gpu.address_space<workgroup>>; got 'memref<64xi8>'}}
  %0 = nv.shared_memory : memref<64xi8>
  return
}
