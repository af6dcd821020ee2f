// RUN: onnx-opt %s --sdx-normalize-contractions --cpu-pack-contractions --split-input-file | FileCheck %s

// CHECK-LABEL: @matmul
// CHECK-SAME: %[[A:.*]]: tensor<?x768xf32>, %[[B:.*]]: tensor<768x40xf32>, %[[C:.*]]: tensor<?x40xf32>
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%[[B]] : tensor<768x40xf32>) outs(%{{.*}} : tensor<2x768x32xf32>)
// CHECK: %[[R:.*]] = cpu.packed_matmul ins(%[[A]], %[[P]] :
// CHECK: return %[[R]]
func.func @matmul(%a: tensor<?x768xf32>, %b: tensor<768x40xf32>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x40xf32>) outs(%f : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r : tensor<?x40xf32>
}

// -----

// Another init than zero is added afterwards.
// CHECK-LABEL: @onto
// CHECK: %[[R:.*]] = cpu.packed_matmul
// CHECK: linalg.generic {{.*}} ins(%[[R]], %arg2 :
// CHECK: arith.addf
func.func @onto(%a: tensor<8x16xf32>, %b: tensor<16x40xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x40xf32>) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// CHECK-LABEL: @transposed_producer
// CHECK-NOT: linalg.transpose
// CHECK: cpu.pack_rhs transposed ins(%arg1 : tensor<40x16xf32>)
func.func @transposed_producer(%a: tensor<8x16xf32>, %b: tensor<40x16xf32>, %c: tensor<8x40xf32>) -> tensor<8x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x40xf32>
  %t = linalg.transpose ins(%b : tensor<40x16xf32>) outs(%e : tensor<16x40xf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<8x40xf32>) -> tensor<8x40xf32>
  %r = linalg.matmul ins(%a, %t : tensor<8x16xf32>, tensor<16x40xf32>) outs(%f : tensor<8x40xf32>) -> tensor<8x40xf32>
  return %r : tensor<8x40xf32>
}

// -----

// Dynamic everything, batched, the right-hand side transposed by its map.
// CHECK-LABEL: @batched
// CHECK: affine.apply
// CHECK: cpu.pack_rhs transposed ins(%arg1 : tensor<?x?x?xf32>) outs(%{{.*}} : tensor<?x?x?x32xf32>)
// CHECK: cpu.packed_matmul ins(%arg0, %{{.*}} : tensor<?x?x?xf32>, tensor<?x?x?x32xf32>)
func.func @batched(%a: tensor<?x?x?xf32>, %b: tensor<?x?x?xf32>, %c: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
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

// Of few rows times many transposed, the few rows are packed.
// CHECK-LABEL: @few_queries
// CHECK: %[[P:.*]] = cpu.pack_rhs transposed ins(%arg0 : tensor<4x3x64xf32>) outs(%{{.*}} : tensor<4x1x64x4xf32>)
// CHECK: %[[R:.*]] = cpu.packed_matmul ins(%arg1, %[[P]] : tensor<4x?x64xf32>, tensor<4x1x64x4xf32>) outs(%{{.*}} : tensor<4x?x3xf32>)
// CHECK: linalg.transpose ins(%[[R]] : tensor<4x?x3xf32>) outs(%{{.*}} : tensor<4x3x?xf32>) permutation = [0, 2, 1]
func.func @few_queries(%q: tensor<4x3x64xf32>, %k: tensor<4x?x64xf32>, %c: tensor<4x3x?xf32>) -> tensor<4x3x?xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<4x3x?xf32>) -> tensor<4x3x?xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x3x64xf32>, tensor<4x?x64xf32>) outs(%f : tensor<4x3x?xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x3x?xf32>
  return %r : tensor<4x3x?xf32>
}

// -----

// Few rows by few columns, which are one panel as they lie.
// CHECK-LABEL: @values
// CHECK: %[[P:.*]] = tensor.expand_shape %arg1 {{\[\[}}0], [1, 2], [3]] output_shape [4, 1, %{{.*}}, 64] : tensor<4x?x64xf32> into tensor<4x1x?x64xf32>
// CHECK: cpu.packed_matmul ins(%arg0, %[[P]] : tensor<4x8x?xf32>, tensor<4x1x?x64xf32>)
func.func @values(%a: tensor<4x8x?xf32>, %b: tensor<4x?x64xf32>, %c: tensor<4x8x64xf32>) -> tensor<4x8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<4x8x?xf32>, tensor<4x?x64xf32>) outs(%f : tensor<4x8x64xf32>) -> tensor<4x8x64xf32>
  return %r : tensor<4x8x64xf32>
}

// -----

// CHECK-LABEL: @vector_times_matrix
// CHECK: tensor.expand_shape %arg0 {{.*}} into tensor<1x16xf32>
// CHECK: cpu.packed_matmul {{.*}} -> tensor<1x40xf32>
// CHECK: tensor.collapse_shape {{.*}} into tensor<40xf32>
func.func @vector_times_matrix(%a: tensor<16xf32>, %b: tensor<16x40xf32>, %c: tensor<40xf32>) -> tensor<40xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<40xf32>) -> tensor<40xf32>
  %r = linalg.vecmat ins(%a, %b : tensor<16xf32>, tensor<16x40xf32>) outs(%f : tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}

// -----

// The keys of an attention: they are packed from where each head's rows are,
// and the packing transposes.
// CHECK-LABEL: @keys
// CHECK-NOT: linalg.transpose
// CHECK: cpu.pack_rhs transposed ins(%{{.*}} : tensor<2x16x12x64xf32>) outs(%{{.*}} : tensor<24x1x64x32xf32>)
func.func @keys(%q: tensor<24x16x64xf32>, %k: tensor<2x16x12x64xf32>, %c: tensor<24x16x16xf32>) -> tensor<24x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x12x64x16xf32>
  %t = linalg.transpose ins(%k : tensor<2x16x12x64xf32>) outs(%e : tensor<2x12x64x16xf32>) permutation = [0, 2, 3, 1]
  %t3 = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<2x12x64x16xf32> into tensor<24x64x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<24x16x16xf32>) -> tensor<24x16x16xf32>
  %r = linalg.batch_matmul ins(%q, %t3 : tensor<24x16x64xf32>, tensor<24x64x16xf32>) outs(%f : tensor<24x16x16xf32>) -> tensor<24x16x16xf32>
  return %r : tensor<24x16x16xf32>
}

// -----

// Values of open sizes.
// CHECK-LABEL: @values
// CHECK-NOT: linalg.transpose
// CHECK: cpu.pack_rhs ins(%{{.*}} : tensor<?x?x12x64xf32>) outs(%{{.*}} : tensor<?x2x?x32xf32>)
func.func @values(%p: tensor<?x?x?xf32>, %v: tensor<?x?x12x64xf32>, %c: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %v, %c0 : tensor<?x?x12x64xf32>
  %s = tensor.dim %v, %c1 : tensor<?x?x12x64xf32>
  %e = tensor.empty(%b, %s) : tensor<?x12x?x64xf32>
  %t = linalg.transpose ins(%v : tensor<?x?x12x64xf32>) outs(%e : tensor<?x12x?x64xf32>) permutation = [0, 2, 1, 3]
  %t3 = tensor.collapse_shape %t [[0, 1], [2], [3]] : tensor<?x12x?x64xf32> into tensor<?x?x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %r = linalg.batch_matmul ins(%p, %t3 : tensor<?x?x?xf32>, tensor<?x?x64xf32>) outs(%f : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %r : tensor<?x?x64xf32>
}

// -----

// A single batch has lost its dimension; and the columns of all heads have been
// transposed at once.
// CHECK-LABEL: @one_batch
// CHECK-NOT: linalg.transpose
// CHECK: cpu.pack_rhs ins(%{{.*}} : tensor<1x16x12x64xf32>) outs(%{{.*}} : tensor<12x2x16x32xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: cpu.pack_rhs transposed ins(%{{.*}} : tensor<1x16x12x64xf32>) outs(%{{.*}} : tensor<12x1x64x32xf32>)
func.func @one_batch(%p: tensor<12x16x16xf32>, %v: tensor<16x12x64xf32>, %k: tensor<16x768xf32>,
                     %c: tensor<12x16x64xf32>, %d: tensor<12x16x16xf32>) -> tensor<12x16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x16x64xf32>
  %t = linalg.transpose ins(%v : tensor<16x12x64xf32>) outs(%e : tensor<12x16x64xf32>) permutation = [1, 0, 2]
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<12x16x64xf32>) -> tensor<12x16x64xf32>
  %q = linalg.batch_matmul ins(%p, %t : tensor<12x16x16xf32>, tensor<12x16x64xf32>) outs(%f : tensor<12x16x64xf32>) -> tensor<12x16x64xf32>
  %e2 = tensor.empty() : tensor<768x16xf32>
  %u = linalg.transpose ins(%k : tensor<16x768xf32>) outs(%e2 : tensor<768x16xf32>) permutation = [1, 0]
  %u3 = tensor.expand_shape %u [[0, 1], [2]] output_shape [12, 64, 16] : tensor<768x16xf32> into tensor<12x64x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<12x16x16xf32>) -> tensor<12x16x16xf32>
  %r = linalg.batch_matmul ins(%q, %u3 : tensor<12x16x64xf32>, tensor<12x64x16xf32>) outs(%g : tensor<12x16x16xf32>) -> tensor<12x16x16xf32>
  return %r : tensor<12x16x16xf32>
}

// -----

// Packed as soon as it is there, not after the product before.
// CHECK-LABEL: @early
// CHECK: %[[X:.*]] = linalg.generic
// CHECK: cpu.pack_rhs ins(%[[X]]
// CHECK: linalg.map
func.func @early(%a: tensor<12x16x16xf32>, %v: tensor<12x16x64xf32>, %c: tensor<12x16x64xf32>) -> tensor<12x16x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x16x64xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v : tensor<12x16x64xf32>) outs(%e : tensor<12x16x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %n = arith.negf %in : f32
    linalg.yield %n : f32
  } -> tensor<12x16x64xf32>
  %h = tensor.empty() : tensor<12x16x16xf32>
  %p = linalg.map { math.exp } ins(%a : tensor<12x16x16xf32>) outs(%h : tensor<12x16x16xf32>)
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<12x16x64xf32>) -> tensor<12x16x64xf32>
  %r = linalg.batch_matmul ins(%p, %x : tensor<12x16x16xf32>, tensor<12x16x64xf32>) outs(%f : tensor<12x16x64xf32>) -> tensor<12x16x64xf32>
  return %r : tensor<12x16x64xf32>
}

// -----

// Other types stay.
// CHECK-LABEL: @integers
// CHECK: linalg.matmul
func.func @integers(%a: tensor<8x16xi32>, %b: tensor<16x40xi32>, %c: tensor<8x40xi32>) -> tensor<8x40xi32> {
  %r = linalg.matmul ins(%a, %b : tensor<8x16xi32>, tensor<16x40xi32>) outs(%c : tensor<8x40xi32>) -> tensor<8x40xi32>
  return %r : tensor<8x40xi32>
}

// -----

// A matrix that is no weight times a vector is a row reduction.
// CHECK-LABEL: @matvec
// CHECK: linalg.matvec
func.func @matvec(%a: tensor<40x16xf32>, %b: tensor<16xf32>, %c: tensor<40xf32>) -> tensor<40xf32> {
  %r = linalg.matvec ins(%a, %b : tensor<40x16xf32>, tensor<16xf32>) outs(%c : tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// An operand that was scaled: the product is scaled instead.
// CHECK-LABEL: @scaled
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%arg1
// CHECK: %[[R:.*]] = cpu.packed_matmul ins(%arg0, %[[P]]
// CHECK: linalg.generic {{.*}} ins(%[[R]], %{{.*}}, %arg3 : tensor<4x8x8xf32>, f32, tensor<f32>)
// CHECK: arith.mulf
// CHECK: arith.divf
func.func @scaled(%q: tensor<4x8x16xf32>, %k: tensor<4x16x8xf32>, %c: tensor<4x8x8xf32>, %d: tensor<f32>) -> tensor<4x8x8xf32> {
  %zero = arith.constant 0.0 : f32
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
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %r = linalg.batch_matmul ins(%q1, %k1 : tensor<4x8x16xf32>, tensor<4x16x8xf32>) outs(%f : tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  return %r : tensor<4x8x8xf32>
}

// -----

// Of constants that a run chooses one of all are packed.
// CHECK-LABEL: @chosen
// CHECK: %[[P:.*]] = cpu.pack_rhs transposed ins(%{{.*}} : tensor<3x40x16xf32>) outs(%{{.*}} : tensor<3x2x16x32xf32>)
// CHECK: %[[ONE:.*]] = tensor.extract_slice %[[P]][%arg1, 0, 0, 0] [1, 2, 16, 32]
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[ONE]]
// CHECK: cpu.packed_matmul ins(%arg0, %[[R]] : tensor<?x16xf32>, tensor<2x16x32xf32>)
func.func @chosen(%a: tensor<?x16xf32>, %i: index, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %w = arith.constant dense_resource<weights> : tensor<3x40x16xf32>
  %w1 = tensor.extract_slice %w[%i, 0, 0] [1, 40, 16] [1, 1, 1] : tensor<3x40x16xf32> to tensor<40x16xf32>
  %0 = sdx.matmul ins(%a, %w1 : tensor<?x16xf32>, tensor<40x16xf32>) outs(%c : tensor<?x40xf32>) {transposed} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x0400000000000000"
    }
  }
#-}
