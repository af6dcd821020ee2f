// RUN: onnx-opt %s -split-input-file -verify-diagnostics -nv-select-plans | FileCheck %s

// Eight blocks have whole rows of sums and reduce them, where each of them reads
// little more for it than if more blocks shared the product: not with so many
// steps along K. They reduce no columns.
// CHECK-LABEL: func @short
// CHECK-SAME: nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 192, tile_k = 64, part_m = 16, part_n = 48, stages = 4, split = 2, cluster_n = 8>
// CHECK-LABEL: func @long
// CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, {{.*}}, split = 4>
// CHECK-LABEL: func @columns
// CHECK-SAME: nv.plan = #nv.matmul_plan<form = wgmma
// CHECK-NOT: cluster
// CHECK-LABEL: func @given
// CHECK-SAME: tile_n = 128, {{.*}} cluster_n = 6>
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
  func.func @short(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
  func.func @long(%x: tensor<128x3072xf16>, %w: tensor<3072x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel} {
    %p = sdx.matmul ins(%x, %w : tensor<128x3072xf16>, tensor<3072x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
  func.func @columns(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<768xf32>)
      -> tensor<768xf32> attributes {sdx.kernel} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<768xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<768xf32>
    return %r : tensor<768xf32>
  }
  func.func @given(%x: tensor<128x3072xf16>, %w: tensor<3072x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 128, tile_k = 64, part_m = 16, part_n = 32, stages = 4, split = 1, cluster_n = 6>} {
    %p = sdx.matmul ins(%x, %w : tensor<128x3072xf16>, tensor<3072x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
}

// -----

// Others cannot.
// CHECK-LABEL: func @older
// CHECK-NOT: cluster
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func @older(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 80>} {
  // expected-error@+1 {{of kernel 'none' does not fit: blocks of sm_80 read their own memory only}}
  func.func @none(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 128, tile_k = 64, part_m = 16, part_n = 32, stages = 4, split = 1, cluster_n = 6>} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90>} {
  // expected-error@+1 {{of kernel 'too_few' does not fit: the blocks that have a row are 12}}
  func.func @too_few(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 128, tile_k = 64, part_m = 16, part_n = 32, stages = 4, split = 2, cluster_n = 6>} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<128x768xf32>) outs(%s : tensor<128xf32>) {
    ^bb0(%a: f32, %b: f32):
      %q = arith.addf %b, %a : f32
      linalg.yield %q : f32
    } -> tensor<128xf32>
    return %r : tensor<128xf32>
  }
}

// -----

module attributes {sdx.target = #nv.target<sm = 90>} {
  // expected-error@+1 {{of kernel 'no_rows' does not fit: clusters are for what reduces the rows of one product, of known sizes}}
  func.func @no_rows(%x: tensor<128x768xf16>, %w: tensor<768x768xf16>, %z: tensor<128x768xf32>, %s: tensor<128xf32>)
      -> tensor<128xf32> attributes {sdx.kernel,
      nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 128, tile_k = 64, part_m = 16, part_n = 32, stages = 4, split = 1, cluster_n = 6>} {
    %p = sdx.matmul ins(%x, %w : tensor<128x768xf16>, tensor<768x768xf16>) outs(%z : tensor<128x768xf32>) -> tensor<128x768xf32>
    %r = tensor.extract_slice %p[0, 0] [128, 1] [1, 1] : tensor<128x768xf32> to tensor<128xf32>
    return %r : tensor<128xf32>
  }
}
