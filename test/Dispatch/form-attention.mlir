// RUN: onnx-opt %s -split-input-file -sdx-form-attention | FileCheck %s

#score = affine_map<(b, h, m, n) -> (b, h, m, n)>
#row = affine_map<(b, h, m, n) -> (b, h, m)>
#keys = affine_map<(b, h, m, n) -> (b, n)>
#copied = affine_map<(b, k, g, n, d) -> (b, k, n, d)>
#repeated = affine_map<(b, k, g, n, d) -> (b, k, g, n, d)>
#one = affine_map<(b, h, m) -> (b, h, m)>

// Transposes of heads, a division, a mask, the rounding to f16 and back, and the
// transpose of the result: all that is left is one operation on the tensors as
// they lie in memory.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d4)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d1, d5)>
// CHECK-DAG: #[[M:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3)>
// CHECK-DAG: #[[R:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d1, d5)>
// CHECK-LABEL: func @encoder
// CHECK-SAME: %[[QUERY:.*]]: tensor<2x40x4x64xf16>, %[[KEY:.*]]: tensor<2x40x4x64xf16>, %[[VALUE:.*]]: tensor<2x40x4x64xf16>, %[[MASK:.*]]: tensor<2x40xf16>
// CHECK: %[[A:.*]] = sdx.attention {indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[M]], #[[R]]]}
// CHECK-SAME: ins(%[[QUERY]], %[[KEY]], %[[VALUE]], %[[MASK]]
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %[[E:.*]]: f16,
// CHECK-NEXT: %[[D:.*]] = arith.divf %[[S]], %{{.*}} : f32
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[E]] : f16 to f32
// CHECK-NEXT: %[[X:.*]] = arith.addf %[[D]], %[[W]] : f32
// CHECK-NEXT: sdx.yield %[[X]] : f32
// CHECK: return %[[A]] : tensor<2x40x4x64xf16>
func.func @encoder(%q: tensor<2x40x4x64xf16>, %k: tensor<2x40x4x64xf16>, %v: tensor<2x40x4x64xf16>,
                   %mask: tensor<2x40xf16>) -> tensor<2x40x4x64xf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %eight = arith.constant 8.0 : f32
  %heads = tensor.empty() : tensor<2x4x40x64xf16>
  %turned = tensor.empty() : tensor<2x4x64x40xf16>
  %q1 = linalg.transpose ins(%q : tensor<2x40x4x64xf16>) outs(%heads : tensor<2x4x40x64xf16>) permutation = [0, 2, 1, 3]
  %k1 = linalg.transpose ins(%k : tensor<2x40x4x64xf16>) outs(%turned : tensor<2x4x64x40xf16>) permutation = [0, 2, 3, 1]
  %v1 = linalg.transpose ins(%v : tensor<2x40x4x64xf16>) outs(%heads : tensor<2x4x40x64xf16>) permutation = [0, 2, 1, 3]
  %q2 = tensor.collapse_shape %q1 [[0, 1], [2], [3]] : tensor<2x4x40x64xf16> into tensor<8x40x64xf16>
  %k2 = tensor.collapse_shape %k1 [[0, 1], [2], [3]] : tensor<2x4x64x40xf16> into tensor<8x64x40xf16>
  %v2 = tensor.collapse_shape %v1 [[0, 1], [2], [3]] : tensor<2x4x40x64xf16> into tensor<8x40x64xf16>
  %e0 = tensor.empty() : tensor<8x40x40xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x40x40xf32>) -> tensor<8x40x40xf32>
  %s0 = sdx.matmul ins(%q2, %k2 : tensor<8x40x64xf16>, tensor<8x64x40xf16>) outs(%z0 : tensor<8x40x40xf32>) -> tensor<8x40x40xf32>
  %s1 = tensor.expand_shape %s0 [[0, 1], [2], [3]] output_shape [2, 4, 40, 40] : tensor<8x40x40xf32> into tensor<2x4x40x40xf32>
  %half = tensor.empty() : tensor<2x4x40x40xf16>
  %s2 = linalg.generic {indexing_maps = [#score, #keys, #score], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s1, %mask : tensor<2x4x40x40xf32>, tensor<2x40xf16>) outs(%half : tensor<2x4x40x40xf16>) {
  ^bb0(%s: f32, %m: f16, %out: f16):
    %0 = arith.divf %s, %eight : f32
    %1 = arith.truncf %0 : f32 to f16
    %2 = arith.extf %1 : f16 to f32
    %3 = arith.extf %m : f16 to f32
    %4 = arith.addf %2, %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<2x4x40x40xf16>
  %e1 = tensor.empty() : tensor<2x4x40xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2x4x40xf32>) -> tensor<2x4x40xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s2 : tensor<2x4x40x40xf16>) outs(%z1 : tensor<2x4x40xf32>) {
  ^bb0(%s: f16, %out: f32):
    %0 = arith.extf %s : f16 to f32
    %1 = arith.maxnumf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x40xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s2, %most : tensor<2x4x40x40xf16>, tensor<2x4x40xf32>) outs(%half : tensor<2x4x40x40xf16>) {
  ^bb0(%s: f16, %m: f32, %out: f16):
    %0 = arith.extf %s : f16 to f32
    %1 = arith.subf %0, %m : f32
    %2 = math.exp %1 : f32
    %3 = arith.truncf %2 : f32 to f16
    linalg.yield %3 : f16
  } -> tensor<2x4x40x40xf16>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x4x40xf32>) -> tensor<2x4x40xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%terms : tensor<2x4x40x40xf16>) outs(%z2 : tensor<2x4x40xf32>) {
  ^bb0(%t: f16, %out: f32):
    %0 = arith.extf %t : f16 to f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x4x40xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<2x4x40x40xf16>, tensor<2x4x40xf32>) outs(%half : tensor<2x4x40x40xf16>) {
  ^bb0(%t: f16, %m: f32, %out: f16):
    %0 = arith.extf %t : f16 to f32
    %1 = arith.divf %0, %m : f32
    %2 = arith.truncf %1 : f32 to f16
    linalg.yield %2 : f16
  } -> tensor<2x4x40x40xf16>
  %p1 = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x4x40x40xf16> into tensor<8x40x40xf16>
  %e3 = tensor.empty() : tensor<8x40x64xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x40x64xf32>) -> tensor<8x40x64xf32>
  %o = sdx.matmul ins(%p1, %v2 : tensor<8x40x40xf16>, tensor<8x40x64xf16>) outs(%z3 : tensor<8x40x64xf32>) -> tensor<8x40x64xf32>
  %o1 = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 4, 40, 64] : tensor<8x40x64xf32> into tensor<2x4x40x64xf32>
  %o2 = linalg.generic {indexing_maps = [#score, #score], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%o1 : tensor<2x4x40x64xf32>) outs(%heads : tensor<2x4x40x64xf16>) {
  ^bb0(%x: f32, %out: f16):
    %0 = arith.truncf %x : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<2x4x40x64xf16>
  %beside = tensor.empty() : tensor<2x40x4x64xf16>
  %o3 = linalg.transpose ins(%o2 : tensor<2x4x40x64xf16>) outs(%beside : tensor<2x40x4x64xf16>) permutation = [0, 2, 1, 3]
  return %o3 : tensor<2x40x4x64xf16>
}

// -----

#score = affine_map<(h, m, n) -> (h, m, n)>
#row = affine_map<(h, m, n) -> (h, m)>
#plain = affine_map<(h, m) -> (h, m)>
#copied = affine_map<(k, g, n, d) -> (k, n, d)>
#repeated = affine_map<(k, g, n, d) -> (k, g, n, d)>
#mask = affine_map<(h, m, n) -> (m, n)>

// Heads of keys that are repeated are read where they are; a constant triangle
// is a comparison of indices.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d4)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d3, d5)>
// CHECK-LABEL: func @decoder
// CHECK: tensor.expand_shape %{{.*}} {{.*}} output_shape [2, 2, 3, 16]
// CHECK: sdx.attention {indexing_maps = [#[[Q]], #[[K]], #[[V]], #{{.*}}]}
// CHECK-SAME: tensor<2x2x3x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>)
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %[[ROW:.*]]: index, %[[KEY:.*]]: index):
// CHECK: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: %[[LAST:.*]] = arith.addi %[[ROW]], %[[ONE]] : index
// CHECK: arith.cmpi slt, %[[LAST]], %[[KEY]] : index

// Where somebody else reads the scores they are computed.
// CHECK-LABEL: func @scores_are_needed
// CHECK-NOT: sdx.attention
// CHECK: return
func.func @decoder(%q: tensor<4x3x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>) -> tensor<4x3x16xf32> {
  %mask = arith.constant dense<[[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]> : tensor<3x4xi8>
  %none = arith.constant 0 : i8
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<2x2x4x16xf32>
  %k0 = linalg.generic {indexing_maps = [#copied, #repeated], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x4x16xf32>) outs(%e0 : tensor<2x2x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<2x2x4x16xf32>
  %v0 = linalg.generic {indexing_maps = [#copied, #repeated], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x4x16xf32>) outs(%e0 : tensor<2x2x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<2x2x4x16xf32>
  %k1 = tensor.collapse_shape %k0 [[0, 1], [2], [3]] : tensor<2x2x4x16xf32> into tensor<4x4x16xf32>
  %v1 = tensor.collapse_shape %v0 [[0, 1], [2], [3]] : tensor<2x2x4x16xf32> into tensor<4x4x16xf32>
  %e1 = tensor.empty() : tensor<4x3x4xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %s0 = sdx.matmul ins(%q, %k1 : tensor<4x3x16xf32>, tensor<4x4x16xf32>) outs(%z1 : tensor<4x3x4xf32>) {transposed} -> tensor<4x3x4xf32>
  %s1 = linalg.generic {indexing_maps = [#score, #mask, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s0, %mask : tensor<4x3x4xf32>, tensor<3x4xi8>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%s: f32, %m: i8, %out: f32):
    %0 = arith.cmpi ne, %m, %none : i8
    %1 = arith.select %0, %low, %s : f32
    linalg.yield %1 : f32
  } -> tensor<4x3x4xf32>
  %e2 = tensor.empty() : tensor<4x3xf32>
  %z2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s1 : tensor<4x3x4xf32>) outs(%z2 : tensor<4x3xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.maxnumf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s1, %most : tensor<4x3x4xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.subf %s, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x3x4xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<4x3x4xf32>) outs(%z3 : tensor<4x3xf32>) {
  ^bb0(%t: f32, %out: f32):
    %0 = arith.addf %out, %t : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %inverse = linalg.generic {indexing_maps = [#plain, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x3xf32>) outs(%e2 : tensor<4x3xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.divf %one, %x : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %inverse : tensor<4x3x4xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%t: f32, %i: f32, %out: f32):
    %0 = arith.mulf %t, %i : f32
    linalg.yield %0 : f32
  } -> tensor<4x3x4xf32>
  %e4 = tensor.empty() : tensor<4x3x16xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x3x16xf32>) -> tensor<4x3x16xf32>
  %o = sdx.matmul ins(%p, %v1 : tensor<4x3x4xf32>, tensor<4x4x16xf32>) outs(%z4 : tensor<4x3x16xf32>) -> tensor<4x3x16xf32>
  return %o : tensor<4x3x16xf32>
}

func.func @scores_are_needed(%q: tensor<4x3x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>) -> (tensor<4x3x16xf32>, tensor<4x3x4xf32>) {
  %mask = arith.constant dense<[[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]> : tensor<3x4xi8>
  %none = arith.constant 0 : i8
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<2x2x4x16xf32>
  %k0 = linalg.generic {indexing_maps = [#copied, #repeated], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x4x16xf32>) outs(%e0 : tensor<2x2x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<2x2x4x16xf32>
  %v0 = linalg.generic {indexing_maps = [#copied, #repeated], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x4x16xf32>) outs(%e0 : tensor<2x2x4x16xf32>) {
  ^bb0(%x: f32, %out: f32):
    linalg.yield %x : f32
  } -> tensor<2x2x4x16xf32>
  %k1 = tensor.collapse_shape %k0 [[0, 1], [2], [3]] : tensor<2x2x4x16xf32> into tensor<4x4x16xf32>
  %v1 = tensor.collapse_shape %v0 [[0, 1], [2], [3]] : tensor<2x2x4x16xf32> into tensor<4x4x16xf32>
  %e1 = tensor.empty() : tensor<4x3x4xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x3x4xf32>) -> tensor<4x3x4xf32>
  %s0 = sdx.matmul ins(%q, %k1 : tensor<4x3x16xf32>, tensor<4x4x16xf32>) outs(%z1 : tensor<4x3x4xf32>) {transposed} -> tensor<4x3x4xf32>
  %s1 = linalg.generic {indexing_maps = [#score, #mask, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s0, %mask : tensor<4x3x4xf32>, tensor<3x4xi8>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%s: f32, %m: i8, %out: f32):
    %0 = arith.cmpi ne, %m, %none : i8
    %1 = arith.select %0, %low, %s : f32
    linalg.yield %1 : f32
  } -> tensor<4x3x4xf32>
  %e2 = tensor.empty() : tensor<4x3xf32>
  %z2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s1 : tensor<4x3x4xf32>) outs(%z2 : tensor<4x3xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.maxnumf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s1, %most : tensor<4x3x4xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.subf %s, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x3x4xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<4x3x4xf32>) outs(%z3 : tensor<4x3xf32>) {
  ^bb0(%t: f32, %out: f32):
    %0 = arith.addf %out, %t : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %inverse = linalg.generic {indexing_maps = [#plain, #plain], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x3xf32>) outs(%e2 : tensor<4x3xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.divf %one, %x : f32
    linalg.yield %0 : f32
  } -> tensor<4x3xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %inverse : tensor<4x3x4xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3x4xf32>) {
  ^bb0(%t: f32, %i: f32, %out: f32):
    %0 = arith.mulf %t, %i : f32
    linalg.yield %0 : f32
  } -> tensor<4x3x4xf32>
  %e4 = tensor.empty() : tensor<4x3x16xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x3x16xf32>) -> tensor<4x3x16xf32>
  %o = sdx.matmul ins(%p, %v1 : tensor<4x3x4xf32>, tensor<4x4x16xf32>) outs(%z4 : tensor<4x3x16xf32>) -> tensor<4x3x16xf32>
  return %o, %s1 : tensor<4x3x16xf32>, tensor<4x3x4xf32>
}

// -----

#score = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
#keys = affine_map<(b, m, n) -> (b, n)>
#one = affine_map<(i) -> (i)>

// A mask that was made of one dimension for two open ones is read as it is in
// two: the sizes of both are known there.
// CHECK-LABEL: func @mask_of_flat_numbers
// CHECK: %[[N:.*]] = linalg.generic
// CHECK: arith.negf
// CHECK: %[[MASK:.*]] = tensor.expand_shape %[[N]]
// CHECK: sdx.attention
// CHECK-SAME: ins(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]] :
func.func @mask_of_flat_numbers(%q: tensor<?x?x16xf32>, %k: tensor<?x?x16xf32>, %v: tensor<?x?x16xf32>,
                                %flat: tensor<?xf32>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %batch = tensor.dim %q, %c0 : tensor<?x?x16xf32>
  %rows = tensor.dim %q, %c1 : tensor<?x?x16xf32>
  %count = tensor.dim %k, %c1 : tensor<?x?x16xf32>
  %all = tensor.dim %flat, %c0 : tensor<?xf32>
  %e = tensor.empty(%all) : tensor<?xf32>
  %negated = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%flat : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %mask = tensor.expand_shape %negated [[0, 1]] output_shape [%batch, %count] : tensor<?xf32> into tensor<?x?xf32>
  %e0 = tensor.empty(%batch, %rows, %count) : tensor<?x?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s0 = sdx.matmul ins(%q, %k : tensor<?x?x16xf32>, tensor<?x?x16xf32>) outs(%z0 : tensor<?x?x?xf32>) {transposed} -> tensor<?x?x?xf32>
  %s = linalg.generic {indexing_maps = [#score, #keys, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s0, %mask : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%e0 : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.addf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<?x?x?xf32>
  %e1 = tensor.empty(%batch, %rows) : tensor<?x?xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<?x?x?xf32>) outs(%z1 : tensor<?x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.maxnumf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%e0 : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.subf %x, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<?x?x?xf32>) outs(%z2 : tensor<?x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<?x?x?xf32>, tensor<?x?xf32>) outs(%e0 : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.divf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<?x?x?xf32>
  %e2 = tensor.empty(%batch, %rows) : tensor<?x?x16xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %y = sdx.matmul ins(%p, %v : tensor<?x?x?xf32>, tensor<?x?x16xf32>) outs(%z3 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  return %y : tensor<?x?x16xf32>
}

// -----

#score = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Where the scores are no product that attention has, terms may be flushed that only the second product reads.
// CHECK-LABEL: func.func @softmax_and_product
// CHECK:         math.exp %{{.*}} {sdx.softmax_term} : f32
// CHECK-LABEL: func.func @softmax_is_a_result
// CHECK:         math.exp %{{[^ ]*}} : f32
func.func @softmax_and_product(%x: tensor<8x49xf32>, %v: tensor<49x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %row = tensor.empty() : tensor<8xf32>
  %all = tensor.empty() : tensor<8x49xf32>
  %z0 = linalg.fill ins(%low : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x49xf32>) outs(%z0 : tensor<8xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.maxnumf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<8x49xf32>, tensor<8xf32>) outs(%all : tensor<8x49xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.subf %s, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x49xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "reduction"]}
      ins(%terms : tensor<8x49xf32>) outs(%z1 : tensor<8xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.addf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel"]}
      ins(%terms, %sum : tensor<8x49xf32>, tensor<8xf32>) outs(%all : tensor<8x49xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.divf %s, %m : f32
    linalg.yield %0 : f32
  } -> tensor<8x49xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = sdx.matmul ins(%p, %v : tensor<8x49xf32>, tensor<49x32xf32>) outs(%z2 : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

func.func @softmax_is_a_result(%x: tensor<8x49xf32>, %v: tensor<49x32xf32>) -> (tensor<8x32xf32>, tensor<8x49xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %row = tensor.empty() : tensor<8xf32>
  %all = tensor.empty() : tensor<8x49xf32>
  %z0 = linalg.fill ins(%low : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x49xf32>) outs(%z0 : tensor<8xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.maxnumf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel"]}
      ins(%x, %most : tensor<8x49xf32>, tensor<8xf32>) outs(%all : tensor<8x49xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.subf %s, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x49xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "reduction"]}
      ins(%terms : tensor<8x49xf32>) outs(%z1 : tensor<8xf32>) {
  ^bb0(%s: f32, %out: f32):
    %0 = arith.addf %out, %s : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel"]}
      ins(%terms, %sum : tensor<8x49xf32>, tensor<8xf32>) outs(%all : tensor<8x49xf32>) {
  ^bb0(%s: f32, %m: f32, %out: f32):
    %0 = arith.divf %s, %m : f32
    linalg.yield %0 : f32
  } -> tensor<8x49xf32>
  %e = tensor.empty() : tensor<8x32xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = sdx.matmul ins(%p, %v : tensor<8x49xf32>, tensor<49x32xf32>) outs(%z2 : tensor<8x32xf32>) -> tensor<8x32xf32>
  return %y, %p : tensor<8x32xf32>, tensor<8x49xf32>
}

// -----

#score = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i)>
#all = affine_map<(b, j, d) -> (b, j, d)>

// Bytes are read as they lie, and scales of queries and results stay outside.
// CHECK-LABEL: func @bytes
// CHECK-SAME: %[[Q:.*]]: tensor<2x?x16xf32>, %[[K:.*]]: tensor<2x?x16xi8>, %[[V:.*]]: tensor<2x?x16xi8>
// CHECK-NOT: arith.sitofp
// CHECK: sdx.attention
// CHECK-SAME: ins(%[[Q]], %[[K]], %[[V]] : tensor<2x?x16xf32>, tensor<2x?x16xi8>, tensor<2x?x16xi8>)
// CHECK-NOT: arith.sitofp

// Unsigned ones are not, nor are keys that are bytes beside values that are none.
// CHECK-LABEL: func @unsigned_bytes
// CHECK: arith.uitofp
// CHECK: sdx.attention
// CHECK-SAME: tensor<2x?x16xf32>, tensor<2x?x16xf32>, tensor<2x?x16xf32>)
// CHECK-LABEL: func @bytes_of_keys
// CHECK: arith.sitofp
// CHECK: sdx.attention
// CHECK-SAME: tensor<2x?x16xf32>, tensor<2x?x16xf32>, tensor<2x?x16xf32>)

// Nor is what they were put together of.
// CHECK-LABEL: func @bytes_of_pairs
// CHECK: %[[K:.*]] = tensor.collapse_shape
// CHECK: sdx.attention
// CHECK-SAME: ins(%{{.*}}, %[[K]], %{{.*}} : tensor<2x?x16xf32>, tensor<2x?x16xi8>, tensor<2x?x16xi8>)
func.func @bytes(%q: tensor<2x?x16xf32>, %k: tensor<2x?x16xi8>, %v: tensor<2x?x16xi8>) -> tensor<2x?x16xf32> {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %count = tensor.dim %k, %c1 : tensor<2x?x16xi8>
  %e = tensor.empty(%count) : tensor<2x?x16xf32>
  %k1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.sitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %v1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.sitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %e0 = tensor.empty(%rows, %count) : tensor<2x?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = sdx.matmul ins(%q, %k1 : tensor<2x?x16xf32>, tensor<2x?x16xf32>) outs(%z0 : tensor<2x?x?xf32>) {transposed} -> tensor<2x?x?xf32>
  %e1 = tensor.empty(%rows) : tensor<2x?xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x?x?xf32>) outs(%z1 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.maxnumf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.subf %x, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<2x?x?xf32>) outs(%z2 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.divf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<2x?x?xf32>
  %e2 = tensor.empty(%rows) : tensor<2x?x16xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %y = sdx.matmul ins(%p, %v1 : tensor<2x?x?xf32>, tensor<2x?x16xf32>) outs(%z3 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}

func.func @unsigned_bytes(%q: tensor<2x?x16xf32>, %k: tensor<2x?x16xi8>, %v: tensor<2x?x16xi8>) -> tensor<2x?x16xf32> {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %count = tensor.dim %k, %c1 : tensor<2x?x16xi8>
  %e = tensor.empty(%count) : tensor<2x?x16xf32>
  %k1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.uitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %v1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.uitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %e0 = tensor.empty(%rows, %count) : tensor<2x?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = sdx.matmul ins(%q, %k1 : tensor<2x?x16xf32>, tensor<2x?x16xf32>) outs(%z0 : tensor<2x?x?xf32>) {transposed} -> tensor<2x?x?xf32>
  %e1 = tensor.empty(%rows) : tensor<2x?xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x?x?xf32>) outs(%z1 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.maxnumf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.subf %x, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<2x?x?xf32>) outs(%z2 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.divf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<2x?x?xf32>
  %e2 = tensor.empty(%rows) : tensor<2x?x16xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %y = sdx.matmul ins(%p, %v1 : tensor<2x?x?xf32>, tensor<2x?x16xf32>) outs(%z3 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}

func.func @bytes_of_keys(%q: tensor<2x?x16xf32>, %k: tensor<2x?x16xi8>, %v: tensor<2x?x16xf32>) -> tensor<2x?x16xf32> {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %count = tensor.dim %k, %c1 : tensor<2x?x16xi8>
  %e = tensor.empty(%count) : tensor<2x?x16xf32>
  %k1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.sitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %v1 = tensor.cast %v : tensor<2x?x16xf32> to tensor<2x?x16xf32>
  %e0 = tensor.empty(%rows, %count) : tensor<2x?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = sdx.matmul ins(%q, %k1 : tensor<2x?x16xf32>, tensor<2x?x16xf32>) outs(%z0 : tensor<2x?x?xf32>) {transposed} -> tensor<2x?x?xf32>
  %e1 = tensor.empty(%rows) : tensor<2x?xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x?x?xf32>) outs(%z1 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.maxnumf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.subf %x, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<2x?x?xf32>) outs(%z2 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.divf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<2x?x?xf32>
  %e2 = tensor.empty(%rows) : tensor<2x?x16xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %y = sdx.matmul ins(%p, %v1 : tensor<2x?x?xf32>, tensor<2x?x16xf32>) outs(%z3 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}

func.func @bytes_of_pairs(%q: tensor<2x?x16xf32>, %pairs: tensor<2x?x8x2xi8>, %v: tensor<2x?x16xi8>) -> tensor<2x?x16xf32> {
  %c1 = arith.constant 1 : index
  %k = tensor.collapse_shape %pairs [[0], [1], [2, 3]] : tensor<2x?x8x2xi8> into tensor<2x?x16xi8>
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.dim %q, %c1 : tensor<2x?x16xf32>
  %count = tensor.dim %k, %c1 : tensor<2x?x16xi8>
  %e = tensor.empty(%count) : tensor<2x?x16xf32>
  %k1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.sitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %v1 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v : tensor<2x?x16xi8>) outs(%e : tensor<2x?x16xf32>) {
  ^bb0(%x: i8, %out: f32):
    %0 = arith.sitofp %x : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<2x?x16xf32>
  %e0 = tensor.empty(%rows, %count) : tensor<2x?x?xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = sdx.matmul ins(%q, %k1 : tensor<2x?x16xf32>, tensor<2x?x16xf32>) outs(%z0 : tensor<2x?x?xf32>) {transposed} -> tensor<2x?x?xf32>
  %e1 = tensor.empty(%rows) : tensor<2x?xf32>
  %z1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %most = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x?x?xf32>) outs(%z1 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.maxnumf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %terms = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.subf %x, %m : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x?x?xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x?xf32>) -> tensor<2x?xf32>
  %sum = linalg.generic {indexing_maps = [#score, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%terms : tensor<2x?x?xf32>) outs(%z2 : tensor<2x?xf32>) {
  ^bb0(%x: f32, %out: f32):
    %0 = arith.addf %out, %x : f32
    linalg.yield %0 : f32
  } -> tensor<2x?xf32>
  %p = linalg.generic {indexing_maps = [#score, #row, #score], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%terms, %sum : tensor<2x?x?xf32>, tensor<2x?xf32>) outs(%e0 : tensor<2x?x?xf32>) {
  ^bb0(%x: f32, %m: f32, %out: f32):
    %0 = arith.divf %x, %m : f32
    linalg.yield %0 : f32
  } -> tensor<2x?x?xf32>
  %e2 = tensor.empty(%rows) : tensor<2x?x16xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  %y = sdx.matmul ins(%p, %v1 : tensor<2x?x?xf32>, tensor<2x?x16xf32>) outs(%z3 : tensor<2x?x16xf32>) -> tensor<2x?x16xf32>
  return %y : tensor<2x?x16xf32>
}
