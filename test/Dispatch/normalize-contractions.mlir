// RUN: onnx-opt %s --sdx-normalize-contractions --split-input-file | FileCheck %s

// A product that starts from zeros keeps them. Rows are open.
// CHECK-LABEL: @matmul
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[R:.*]] = sdx.matmul ins(%arg0, %arg1 : tensor<?x768xf32>, tensor<768x40xf32>) outs(%[[ZEROS]] : tensor<?x40xf32>) -> tensor<?x40xf32>
// CHECK: return %[[R]]
func.func @matmul(%a: tensor<?x768xf32>, %b: tensor<768x40xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x40xf32>) outs(%f : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r : tensor<?x40xf32>
}

// -----

// Constant zeros are zeros as well: nothing is added.
// CHECK-LABEL: @constant_zeros
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[R:.*]] = sdx.matmul {{.*}} outs(%[[ZEROS]] :
// CHECK: return %[[R]]
func.func @constant_zeros(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>) -> tensor<8x40xf32> {
  %c = arith.constant dense<0.0> : tensor<8x40xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// Another init is added afterwards, of the sizes that it has.
// CHECK-LABEL: @onto
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[M:.*]] = tensor.dim %arg2, %{{.*}} : tensor<?x40xf32>
// CHECK: %[[E:.*]] = tensor.empty(%[[M]]) : tensor<?x40xf32>
// CHECK: %[[ZEROS:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]] :
// CHECK: %[[P:.*]] = sdx.matmul {{.*}} outs(%[[ZEROS]] :
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[P]], %arg2 :
// CHECK: arith.addf
// CHECK: return %[[R]]
func.func @onto(%a: tensor<?x16xf32>, %b: tensor<16x40xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<?x16xf32>, tensor<16x40xf32>) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r : tensor<?x40xf32>
}

// -----

// A transposed right-hand side stays as it lies.
// CHECK-LABEL: @transposed_producer
// CHECK-NOT: linalg.transpose
// CHECK: sdx.matmul ins(%arg0, %arg1 : tensor<8x16xf32>, tensor<40x16xf32>) {{.*}} {transposed}
func.func @transposed_producer(%a: tensor<8x16xf32>, %b: tensor<40x16xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x40xf32>
  %t = linalg.transpose ins(%b : tensor<40x16xf32>) outs(%e : tensor<16x40xf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  %r = linalg.matmul ins(%a, %t : tensor<8x16xf32>, tensor<16x40xf32>) outs(%f : tensor<8x40xf32>) -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// A right-hand side that is transposed by its map and by a transpose is not.
// CHECK-LABEL: @transposed_twice
// CHECK-NOT: linalg.transpose
// CHECK: sdx.matmul ins(%arg0, %arg1 : tensor<?x?xf32>, tensor<?x?xf32>)
// CHECK-NOT: transposed
// CHECK: return
func.func @transposed_twice(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %t = linalg.transpose ins(%b : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %t : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// -----

// A left-hand side has its rows first.
// CHECK-LABEL: @transposed_lhs
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 : tensor<16x8xf32>) {{.*}} permutation = [1, 0]
// CHECK: sdx.matmul ins(%[[T]], %arg1 : tensor<8x16xf32>, tensor<16x40xf32>)
func.func @transposed_lhs(%a: tensor<16x8xf32>, %b: tensor<16x40xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16x8xf32>, tensor<16x40xf32>) outs(%f : tensor<8x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// The first dimension of the output is that of the left-hand side: a transposed
// output swaps the operands, and no result is transposed.
// CHECK-LABEL: @transposed_output
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg1 : tensor<16x40xf32>)
// CHECK: %[[R:.*]] = sdx.matmul ins(%[[T]], %arg0 : tensor<40x16xf32>, tensor<8x16xf32>) outs(%{{.*}} : tensor<40x8xf32>) {transposed}
// CHECK: return %[[R]]
func.func @transposed_output(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<40x8xf32>) -> tensor<40x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<40x8xf32>) -> tensor<40x8xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (n, m)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%f : tensor<40x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<40x8xf32>
  return %r : tensor<40x8xf32>
}

// -----

// A batch of open sizes whose operands are transposed by their maps, the left
// one by a transpose that cannot vanish.
// CHECK-LABEL: @batched
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 : tensor<?x?x?xf32>) {{.*}} permutation = [1, 0, 2]
// CHECK: sdx.matmul ins(%[[T]], %arg1 : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%{{.*}} : tensor<?x?x?xf32>) {transposed} -> tensor<?x?x?xf32>
func.func @batched(%a: tensor<?x?x?xf32>, %b: tensor<?x?x?xf32>, %c: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (m, b, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?x?xf32>, tensor<?x?x?xf32>) outs(%f : tensor<?x?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x?x?xf32>
  return %r : tensor<?x?x?xf32>
}

// -----

// The keys of an attention: their contiguous dimension stays the last, and only
// heads move.
// CHECK-LABEL: @keys
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg1 : tensor<2x16x12x64xf32>) {{.*}} permutation = [0, 2, 1, 3]
// CHECK: %[[K:.*]] = tensor.collapse_shape %[[T]] {{.*}} into tensor<24x16x64xf32>
// CHECK: sdx.matmul ins(%arg0, %[[K]] : tensor<24x8x64xf32>, tensor<24x16x64xf32>) {{.*}} {transposed}
func.func @keys(%q: tensor<24x8x64xf32>, %k: tensor<2x16x12x64xf32>, %c: tensor<24x8x16xf32>) -> tensor<24x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x12x64x16xf32>
  %t = linalg.transpose ins(%k : tensor<2x16x12x64xf32>) outs(%e : tensor<2x12x64x16xf32>) permutation = [0, 2, 3, 1]
  %t3 = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x12x64x16xf32> into tensor<24x64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<24x8x16xf32>) -> tensor<24x8x16xf32>
  %r = linalg.batch_matmul ins(%q, %t3 : tensor<24x8x64xf32>, tensor<24x64x16xf32>) outs(%f : tensor<24x8x16xf32>) -> tensor<24x8x16xf32>
  return %r : tensor<24x8x16xf32>
}

// -----

// Where only the left-hand side has batches, they are rows of two dimensions,
// which no product here has.
// CHECK-LABEL: @shared_rhs
// CHECK-NOT: sdx.matmul
// CHECK: linalg.batch_matmul
func.func @shared_rhs(%a: tensor<4x8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<4x8x40xf32>) -> tensor<4x8x40xf32> {
  %r = linalg.batch_matmul
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%a, %b : tensor<4x8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<4x8x40xf32>) -> tensor<4x8x40xf32>
  return %r : tensor<4x8x40xf32>
}

// -----

// A vector times a weight is a product of one row, which starts from zeros of
// the result's size.
// CHECK-LABEL: @vector_times_weight
// CHECK: %[[ROW:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1]] {{.*}} into tensor<1x16xf32>
// CHECK: %[[P:.*]] = sdx.matmul ins(%[[ROW]], %{{.*}} : tensor<1x16xf32>, tensor<40x16xf32>) outs(%{{.*}} : tensor<1x40xf32>) {transposed}
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[P]] {{\[\[}}0, 1]] : tensor<1x40xf32> into tensor<40xf32>
// CHECK: linalg.generic {{.*}} ins(%[[R]], %arg1 :
// CHECK: arith.addf
func.func @vector_times_weight(%a: tensor<16xf32>, %c: tensor<40xf32>) -> tensor<40xf32> {
  %w = arith.constant dense<2.0> : tensor<40x16xf32>
  %r = linalg.matvec ins(%w, %a : tensor<40x16xf32>, tensor<16xf32>) outs(%c : tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}

// -----

// So is a vector times a matrix whose columns are contiguous, whoever computes
// it.
// CHECK-LABEL: @vector_times_matrix
// CHECK: %[[ROW:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<1x?xf32>
// CHECK: sdx.matmul ins(%[[ROW]], %arg1 : tensor<1x?xf32>, tensor<?x?xf32>) outs(%{{.*}} : tensor<1x?xf32>) -> tensor<1x?xf32>
func.func @vector_times_matrix(%a: tensor<?xf32>, %b: tensor<?x?xf32>, %c: tensor<?xf32>) -> tensor<?xf32> {
  %r = linalg.vecmat ins(%a, %b : tensor<?xf32>, tensor<?x?xf32>) outs(%c : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// Rows of a computed matrix times a vector are reductions.
// CHECK-LABEL: @matrix_times_vector
// CHECK-NOT: sdx.matmul
// CHECK: linalg.matvec
func.func @matrix_times_vector(%a: tensor<40x16xf32>, %b: tensor<16xf32>, %c: tensor<40xf32>) -> tensor<40xf32> {
  %r = linalg.matvec ins(%a, %b : tensor<40x16xf32>, tensor<16xf32>) outs(%c : tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// The product is scaled in the place of its operands, and before its init is
// added.
// CHECK-LABEL: @scaled
// CHECK: %[[P:.*]] = sdx.matmul ins(%arg0, %arg1 :
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]], %{{.*}}, %arg3 : tensor<4x8x8xf32>, f32, tensor<f32>)
// CHECK: %[[ONCE:.*]] = arith.mulf
// CHECK: arith.divf %[[ONCE]]
// CHECK: linalg.generic {{.*}} ins(%[[S]], %arg2 :
// CHECK: arith.addf
func.func @scaled(%q: tensor<4x8x16xf32>, %k: tensor<4x16x8xf32>, %c: tensor<4x8x8xf32>, %d: tensor<f32>) -> tensor<4x8x8xf32> {
  %s = arith.constant 0.125 : f32
  %e = tensor.empty() : tensor<4x8x16xf32>
  %q1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%q : tensor<4x8x16xf32>) outs(%e : tensor<4x8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.mulf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<4x8x16xf32>
  %ek = tensor.empty() : tensor<4x16x8xf32>
  %k1 = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1, d2) -> ()>, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%k, %d : tensor<4x16x8xf32>, tensor<f32>) outs(%ek : tensor<4x16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<4x16x8xf32>
  %r = linalg.batch_matmul ins(%q1, %k1 : tensor<4x8x16xf32>, tensor<4x16x8xf32>) outs(%c : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// A scaled weight is computed once: it stays. So does what each row is scaled
// by.
// CHECK-LABEL: @scaled_otherwise
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x40xf32>)
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<8x16xf32>, tensor<8xf32>)
// CHECK: %[[R:.*]] = sdx.matmul ins(%[[A]], %[[W]] :
// CHECK: return %[[R]]
func.func @scaled_otherwise(%a: tensor<8x16xf32>, %by: tensor<8xf32>) -> tensor<8x40xf32> {
  %zero = arith.constant 0.0 : f32
  %s = arith.constant 0.125 : f32
  %b = arith.constant dense<3.0> : tensor<16x40xf32>
  %eb = tensor.empty() : tensor<16x40xf32>
  %b1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<16x40xf32>) outs(%eb : tensor<16x40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.mulf %x, %s : f32
    linalg.yield %0 : f32
  } -> tensor<16x40xf32>
  %ea = tensor.empty() : tensor<8x16xf32>
  %a1 = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %by : tensor<8x16xf32>, tensor<8xf32>) outs(%ea : tensor<8x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  %e = tensor.empty() : tensor<8x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x40xf32>) -> tensor<8x40xf32>
  %r = linalg.matmul ins(%a1, %b1 : tensor<8x16xf32>, tensor<16x40xf32>) outs(%f : tensor<8x40xf32>) -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// CHECK-LABEL: @bf16
// CHECK: %[[P:.*]] = sdx.matmul ins(%arg0, %arg1 : tensor<?x5xbf16>, tensor<40x5xbf16>) outs(%{{.*}} : tensor<?x40xf32>) {transposed}
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 :
// CHECK: arith.addf {{.*}} : f32
func.func @bf16(%a: tensor<?x5xbf16>, %b: tensor<40x5xbf16>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %e = tensor.empty() : tensor<5x40xbf16>
  %t = linalg.transpose ins(%b : tensor<40x5xbf16>) outs(%e : tensor<5x40xbf16>) permutation = [1, 0]
  %r = linalg.matmul ins(%a, %t : tensor<?x5xbf16>, tensor<5x40xbf16>) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r : tensor<?x40xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// An operand of bf16 that was scaled was rounded then: it stays scaled.
// CHECK-LABEL: @scaled_bf16
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x8x16xbf16>)
// CHECK: %[[R:.*]] = sdx.matmul ins(%[[S]], %arg1 : tensor<4x8x16xbf16>, tensor<4x16x8xbf16>) outs(%{{.*}} : tensor<4x8x8xf32>)
// CHECK: return %[[R]]
func.func @scaled_bf16(%a: tensor<4x8x16xbf16>, %b: tensor<4x16x8xbf16>, %c: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %s = arith.constant 0.3 : bf16
  %e = tensor.empty() : tensor<4x8x16xbf16>
  %a1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<4x8x16xbf16>) outs(%e : tensor<4x8x16xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %0 = arith.mulf %x, %s : bf16
    linalg.yield %0 : bf16
  } -> tensor<4x8x16xbf16>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %r = linalg.batch_matmul ins(%a1, %b : tensor<4x8x16xbf16>, tensor<4x16x8xbf16>) outs(%f : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @unsigned_by_signed
// CHECK: sdx.matmul ins(%arg0, %arg1 : tensor<?x6xi8>, tensor<6x40xi8>) outs(%{{.*}} : tensor<?x40xi32>) {lhs_unsigned} -> tensor<?x40xi32>
func.func @unsigned_by_signed(%a: tensor<?x6xi8>, %b: tensor<6x40xi8>, %c: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%zero : i32) outs(%c : tensor<?x40xi32>) -> tensor<?x40xi32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x6xi8>, tensor<6x40xi8>) outs(%f : tensor<?x40xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extui %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @signed_by_signed
// CHECK-NOT: sdx.matmul
// CHECK: linalg.generic
func.func @signed_by_signed(%a: tensor<?x6xi8>, %b: tensor<6x40xi8>, %c: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x6xi8>, tensor<6x40xi8>) outs(%c : tensor<?x40xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @wider_integers
// CHECK-NOT: sdx.matmul
// CHECK: linalg.generic
func.func @wider_integers(%a: tensor<?x6xi16>, %b: tensor<6x40xi8>, %c: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x6xi16>, tensor<6x40xi8>) outs(%c : tensor<?x40xi32>) {
  ^bb0(%x: i16, %y: i8, %o: i32):
    %0 = arith.extui %x : i16 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}

// -----

// CHECK-LABEL: @other_types
// CHECK-NOT: sdx.matmul
// CHECK: linalg.matmul
// CHECK: linalg.matmul
func.func @other_types(%a: tensor<8x16xf64>, %b: tensor<16x40xf64>, %c: tensor<8x40xf64>,
                       %i: tensor<8x16xi32>, %j: tensor<16x40xi32>, %k: tensor<8x40xi32>) -> (tensor<8x40xf64>, tensor<8x40xi32>) {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf64>, tensor<16x40xf64>) outs(%c : tensor<8x40xf64>) -> tensor<8x40xf64>
  %s = linalg.matmul ins(%i, %j : tensor<8x16xi32>, tensor<16x40xi32>) outs(%k : tensor<8x40xi32>) -> tensor<8x40xi32>
  return %r, %s : tensor<8x40xf64>, tensor<8x40xi32>
}

// -----

// CHECK-LABEL: @conv_onto
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[C:.*]] = sdx.conv ins(%arg0, %arg1 : {{.*}}) outs(%[[ZEROS]] : tensor<?x8x6x6xf32>) {{.*}}exact{{.*}}pads_end = array<i64: 0, 1>
// CHECK: linalg.generic {{.*}} ins(%[[C]], %arg2 :
// CHECK: arith.addf
func.func @conv_onto(%x: tensor<?x3x8x7xf32>, %w: tensor<8x3x3x3xf32>, %c: tensor<?x8x6x6xf32>) -> tensor<?x8x6x6xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<?x3x8x7xf32>, tensor<8x3x3x3xf32>) outs(%c : tensor<?x8x6x6xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 1>,
       group = 1 : i64, exact} -> tensor<?x8x6x6xf32>
  return %0 : tensor<?x8x6x6xf32>
}

// -----

// Integers are added as integers.
// CHECK-LABEL: @conv_of_bytes_onto
// CHECK: %[[C:.*]] = sdx.conv
// CHECK: linalg.generic {{.*}} ins(%[[C]], %arg2 :
// CHECK: arith.addi
func.func @conv_of_bytes_onto(%x: tensor<1x3x8xi8>, %w: tensor<8x3x3xi8>, %c: tensor<1x8x6xi32>) -> tensor<1x8x6xi32> {
  %0 = sdx.conv ins(%x, %w : tensor<1x3x8xi8>, tensor<8x3x3xi8>) outs(%c : tensor<1x8x6xi32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64} -> tensor<1x8x6xi32>
  return %0 : tensor<1x8x6xi32>
}

// -----

// CHECK-LABEL: @conv_onto_zeros
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[R:.*]] = sdx.conv {{.*}} outs(%[[ZEROS]] :
// CHECK: return %[[R]]
func.func @conv_onto_zeros(%x: tensor<1x3x8xf32>, %w: tensor<8x3x3xf32>) -> tensor<1x8x6xf32> {
  %c = arith.constant dense<0.0> : tensor<1x8x6xf32>
  %0 = sdx.conv ins(%x, %w : tensor<1x3x8xf32>, tensor<8x3x3xf32>) outs(%c : tensor<1x8x6xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>,
       group = 1 : i64} -> tensor<1x8x6xf32>
  return %0 : tensor<1x8x6xf32>
}
