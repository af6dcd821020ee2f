// RUN: onnx-opt %s -split-input-file -nv-prepare-products | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// Numbers that were turned into f32 are multiplied as they were.
// CHECK-LABEL: func @halves
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf16>, %[[W:.*]]: tensor<64x32xf16>
// CHECK: sdx.matmul ins(%[[X]], %[[W]] : tensor<?x64xf16>, tensor<64x32xf16>)
func.func @halves(%x: tensor<?x64xf16>, %w: tensor<64x32xf16>, %e: tensor<?x64xf32>,
                  %f: tensor<64x32xf32>, %z: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<64x32xf16>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<64x32xf32>
  %r = sdx.matmul ins(%a, %b : tensor<?x64xf32>, tensor<64x32xf32>)
      outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}

// -----

// Bytes follow each other along K.
// CHECK-LABEL: func @bytes
// CHECK: %[[T:.*]] = linalg.transpose ins(%{{.*}} : tensor<64x32xi8>) {{.*}} permutation = [1, 0]
// CHECK: sdx.matmul ins(%{{.*}}, %[[T]] : tensor<?x64xi8>, tensor<32x64xi8>) {{.*}} {lhs_unsigned, transposed}
func.func @bytes(%x: tensor<?x64xi8>, %w: tensor<64x32xi8>, %z: tensor<?x32xi32>) -> tensor<?x32xi32> {
  %r = sdx.matmul ins(%x, %w : tensor<?x64xi8>, tensor<64x32xi8>)
      outs(%z : tensor<?x32xi32>) {lhs_unsigned} -> tensor<?x32xi32>
  return %r : tensor<?x32xi32>
}

// -----

// Warpgroups multiply bytes that all have a sign: weights stay as they are, and
// what the flipped bits of the other side take away is added again.
// CHECK-LABEL: func @signs
// CHECK-SAME: %[[X:.*]]: tensor<?x64xi8>, %[[Z:.*]]: tensor<?x32xi32>
// CHECK: %[[W:.*]] = arith.constant dense<3>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<64x32xi8>)
// CHECK: %[[SUMS:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[W]]
// CHECK: %[[FLIPPED:.*]] = linalg.generic {{.*}} ins(%[[X]]
// CHECK: arith.xori %{{.*}}, %c-128_i8
// CHECK: %[[R:.*]] = sdx.matmul ins(%[[FLIPPED]], %[[T]] : tensor<?x64xi8>, tensor<32x64xi8>) {{.*}} {transposed}
// CHECK: linalg.generic {{.*}} ins(%[[R]], %[[SUMS]]
// CHECK: arith.muli %{{.*}}, %c128_i32
// CHECK: arith.addi
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func @signs(%x: tensor<?x64xi8>, %z: tensor<?x32xi32>) -> tensor<?x32xi32> {
  %w = arith.constant dense<3> : tensor<64x32xi8>
  %r = sdx.matmul ins(%x, %w : tensor<?x64xi8>, tensor<64x32xi8>)
      outs(%z : tensor<?x32xi32>) {lhs_unsigned} -> tensor<?x32xi32>
  return %r : tensor<?x32xi32>
}
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Bytes that had been flipped are those from before.
// CHECK-LABEL: func @twice
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x64xi8>
// CHECK: sdx.matmul ins(%[[X]], %{{.*}} : tensor<?x64xi8>, tensor<32x64xi8>) {{.*}} {transposed}
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func @twice(%x: tensor<?x64xi8>, %w: tensor<32x64xi8>, %e: tensor<?x64xi8>, %z: tensor<?x32xi32>) -> tensor<?x32xi32> {
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xi8>) outs(%e : tensor<?x64xi8>) {
  ^bb0(%in: i8, %out: i8):
    %c = arith.constant -128 : i8
    %0 = arith.xori %in, %c : i8
    linalg.yield %0 : i8
  } -> tensor<?x64xi8>
  %r = sdx.matmul ins(%f, %w : tensor<?x64xi8>, tensor<32x64xi8>)
      outs(%z : tensor<?x32xi32>) {lhs_unsigned, transposed} -> tensor<?x32xi32>
  return %r : tensor<?x32xi32>
}
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>

// Numbers that floats of eight bits stand for are multiplied as these by weights
// of the same type, and scaled afterwards.
// CHECK-LABEL: func @byte_floats
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x64xi8>, %[[S:[^:]*]]: tensor<f32>
// CHECK: %[[R:.*]] = sdx.dequant_matmul ins(%[[X]], %{{.*}}, %{{.*}} : tensor<?x64xi8>, tensor<32x1x64xi8>, tensor<32x1xf32>) {{.*}} element = f8E4M3FN
// CHECK: linalg.generic {{.*}} ins(%[[R]], %[[S]]
// CHECK: arith.mulf
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func @byte_floats(%x: tensor<?x64xi8>, %s: tensor<f32>, %w: tensor<32x1x64xi8>, %t: tensor<32x1xf32>,
                  %e: tensor<?x64xf32>, %m: index) -> tensor<?x32xf32> {
  %c127 = arith.constant 127 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c20 = arith.constant 20 : i32
  %c31 = arith.constant 31 : i32
  %rebase = arith.constant 1006632960 : i32
  %least = arith.constant 0.001953125 : f32
  %nan = arith.constant 2143289344 : i32
  %zero = arith.constant 0.0 : f32
  %a = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x64xi8>, tensor<f32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: i8, %q: f32, %out: f32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.andi %0, %c127 : i32
    %2 = arith.shrui %0, %c7 : i32
    %3 = arith.shli %2, %c31 : i32
    %4 = arith.shli %1, %c20 : i32
    %5 = arith.addi %4, %rebase : i32
    %6 = arith.uitofp %1 : i32 to f32
    %7 = arith.mulf %6, %least : f32
    %8 = arith.bitcast %7 : f32 to i32
    %9 = arith.cmpi ult, %1, %c8 : i32
    %10 = arith.select %9, %8, %5 : i32
    %11 = arith.ori %10, %3 : i32
    %12 = arith.cmpi eq, %1, %c127 : i32
    %13 = arith.select %12, %nan, %11 : i32
    %14 = arith.bitcast %13 : i32 to f32
    %15 = arith.mulf %14, %q : f32
    linalg.yield %15 : f32
  } -> tensor<?x64xf32>
  %o = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = sdx.dequant_matmul ins(%a, %w, %t : tensor<?x64xf32>, tensor<32x1x64xi8>, tensor<32x1xf32>)
      outs(%z : tensor<?x32xf32>) {bits = 8 : i64, block = 64 : i64, element = f8E4M3FN} -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>

// Those of another type than the weights' are not, and none where warpgroups do
// not multiply.
// CHECK-LABEL: func @other_floats
// CHECK-NOT: sdx.dequant_matmul
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func @other_floats(%x: tensor<?x64xi8>, %s: tensor<f32>, %w: tensor<32x1x64xi8>, %t: tensor<32x1xf32>,
                  %e: tensor<?x64xf32>, %m: index) -> tensor<?x32xf32> {
  %c127 = arith.constant 127 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c20 = arith.constant 20 : i32
  %c31 = arith.constant 31 : i32
  %rebase = arith.constant 1006632960 : i32
  %least = arith.constant 0.001953125 : f32
  %nan = arith.constant 2143289344 : i32
  %zero = arith.constant 0.0 : f32
  %a = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x64xi8>, tensor<f32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: i8, %q: f32, %out: f32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.andi %0, %c127 : i32
    %2 = arith.shrui %0, %c7 : i32
    %3 = arith.shli %2, %c31 : i32
    %4 = arith.shli %1, %c20 : i32
    %5 = arith.addi %4, %rebase : i32
    %6 = arith.uitofp %1 : i32 to f32
    %7 = arith.mulf %6, %least : f32
    %8 = arith.bitcast %7 : f32 to i32
    %9 = arith.cmpi ult, %1, %c8 : i32
    %10 = arith.select %9, %8, %5 : i32
    %11 = arith.ori %10, %3 : i32
    %12 = arith.cmpi eq, %1, %c127 : i32
    %13 = arith.select %12, %nan, %11 : i32
    %14 = arith.bitcast %13 : i32 to f32
    %15 = arith.mulf %14, %q : f32
    linalg.yield %15 : f32
  } -> tensor<?x64xf32>
  %o = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = sdx.dequant_matmul ins(%a, %w, %t : tensor<?x64xf32>, tensor<32x1x64xi8>, tensor<32x1xf32>)
      outs(%z : tensor<?x32xf32>) {bits = 8 : i64, block = 64 : i64, element = f8E5M2} -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>

// CHECK-LABEL: func @older_device
// CHECK-NOT: sdx.dequant_matmul
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func @older_device(%x: tensor<?x64xi8>, %s: tensor<f32>, %w: tensor<32x1x64xi8>, %t: tensor<32x1xf32>,
                  %e: tensor<?x64xf32>, %m: index) -> tensor<?x32xf32> {
  %c127 = arith.constant 127 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c20 = arith.constant 20 : i32
  %c31 = arith.constant 31 : i32
  %rebase = arith.constant 1006632960 : i32
  %least = arith.constant 0.001953125 : f32
  %nan = arith.constant 2143289344 : i32
  %zero = arith.constant 0.0 : f32
  %a = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x64xi8>, tensor<f32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: i8, %q: f32, %out: f32):
    %0 = arith.extui %in : i8 to i32
    %1 = arith.andi %0, %c127 : i32
    %2 = arith.shrui %0, %c7 : i32
    %3 = arith.shli %2, %c31 : i32
    %4 = arith.shli %1, %c20 : i32
    %5 = arith.addi %4, %rebase : i32
    %6 = arith.uitofp %1 : i32 to f32
    %7 = arith.mulf %6, %least : f32
    %8 = arith.bitcast %7 : f32 to i32
    %9 = arith.cmpi ult, %1, %c8 : i32
    %10 = arith.select %9, %8, %5 : i32
    %11 = arith.ori %10, %3 : i32
    %12 = arith.cmpi eq, %1, %c127 : i32
    %13 = arith.select %12, %nan, %11 : i32
    %14 = arith.bitcast %13 : i32 to f32
    %15 = arith.mulf %14, %q : f32
    linalg.yield %15 : f32
  } -> tensor<?x64xf32>
  %o = tensor.empty(%m) : tensor<?x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%o : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = sdx.dequant_matmul ins(%a, %w, %t : tensor<?x64xf32>, tensor<32x1x64xi8>, tensor<32x1xf32>)
      outs(%z : tensor<?x32xf32>) {bits = 8 : i64, block = 64 : i64, element = f8E4M3FN} -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
}

// -----

// What has no tiles is loops.
// CHECK-LABEL: func @mixed
// CHECK-NOT: sdx.matmul
// CHECK: linalg.generic
func.func @mixed(%x: tensor<?x64xbf16>, %w: tensor<64x32xf32>, %z: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %r = sdx.matmul ins(%x, %w : tensor<?x64xbf16>, tensor<64x32xf32>)
      outs(%z : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}

// -----

// Convolutions stay, also those whose filters nobody has counted.
// CHECK-LABEL: func @open_filters
// CHECK: sdx.conv
// CHECK-NOT: linalg.generic
func.func @open_filters(%x: tensor<1x?x9x9xf32>, %w: tensor<?x?x3x3xf32>, %z: tensor<1x?x7x7xf32>) -> tensor<1x?x7x7xf32> {
  %r = sdx.conv ins(%x, %w : tensor<1x?x9x9xf32>, tensor<?x?x3x3xf32>) outs(%z : tensor<1x?x7x7xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64} -> tensor<1x?x7x7xf32>
  return %r : tensor<1x?x7x7xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// Weights of a few bits stay packed, and what they are multiplied by is taken as
// it was; where a block is no whole words they are numbers before the product.
// CHECK-LABEL: func @packed_weights
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf16>
// CHECK: sdx.dequant_matmul ins(%[[X]], %{{.*}} : tensor<?x64xf16>, tensor<32x2x16xi8>, tensor<32x2xf32>)
// CHECK-NOT: sdx.dequant_matmul
// CHECK: linalg.generic
func.func @packed_weights(%x: tensor<?x64xf16>, %w: tensor<32x2x16xi8>, %s: tensor<32x2xf32>, %v: tensor<32x32x1xi8>,
                          %t: tensor<32x32xf32>, %e: tensor<?x64xf32>, %z: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf16>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    linalg.yield %0 : f32
  } -> tensor<?x64xf32>
  %r = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x64xf32>, tensor<32x2x16xi8>, tensor<32x2xf32>)
      outs(%z : tensor<?x32xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<?x32xf32>
  %q = sdx.dequant_matmul ins(%a, %v, %t : tensor<?x64xf32>, tensor<32x32x1xi8>, tensor<32x32xf32>)
      outs(%z : tensor<?x32xf32>) {bits = 4 : i64, block = 2 : i64} -> tensor<?x32xf32>
  return %r, %q : tensor<?x32xf32>, tensor<?x32xf32>
}

// -----

// Weights that are rounded to tf32 follow each other along K, for warpgroups.
// CHECK-LABEL: func @rounded
// CHECK: %[[W:.*]] = linalg.transpose {{.*}}permutation = [1, 0]
// CHECK: sdx.matmul ins(%{{.*}}, %[[W]] : tensor<?x64xf32>, tensor<32x64xf32>) {{.*}}transposed
// CHECK-NOT: linalg.transpose
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func @rounded(%x: tensor<?x64xf32>, %v: tensor<64x32xf32>, %z: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
  %w = arith.constant dense<1.0> : tensor<64x32xf32>
  %r = sdx.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) {nv.tf32} -> tensor<?x32xf32>
  %q = sdx.matmul ins(%x, %v : tensor<?x64xf32>, tensor<64x32xf32>) outs(%z : tensor<?x32xf32>) {nv.tf32} -> tensor<?x32xf32>
  return %r, %q : tensor<?x32xf32>, tensor<?x32xf32>
}
}
