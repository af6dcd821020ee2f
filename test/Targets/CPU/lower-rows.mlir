// RUN: onnx-opt %s -split-input-file -cpu-lower-rows | FileCheck %s
// RUN: onnx-opt %s --target=haswell -split-input-file -cpu-lower-rows | FileCheck %s --check-prefix=AVX2

// A softmax: two passes that reduce and one that scales, e kept in the result's
// own row, the division by a reduction's result turned into a multiplication.

// CHECK-LABEL: func.func private @softmax
// CHECK-NOT:     tensor<
// CHECK:         scf.parallel (%[[ROW:.*]]) =
// CHECK:           scf.for {{.*}} iter_args
// CHECK:             %[[NEXT:.*]] = arith.addi %[[ROW]], %c1
// CHECK-COUNT-4:     memref.prefetch %arg0[%[[NEXT]], {{.*}}], read, locality<3>, data
// CHECK-COUNT-4:     memref.prefetch %arg1[%[[NEXT]], {{.*}}], write, locality<3>, data
// CHECK-COUNT-4:     vector.load %arg0[%[[ROW]]
// CHECK:             arith.maximumf {{.*}} : vector<16xf32>
// CHECK:           %[[IS_NAN:.*]] = arith.cmpf uno, %[[MAX:.*]], %[[MAX]] : vector<16xf32>
// CHECK:           %[[HAS_NAN:.*]] = vector.reduction <or>, %[[IS_NAN]]
// CHECK:           scf.if %[[HAS_NAN]]
// CHECK:             arith.maximumf {{.*}} : vector<8xf32>
// CHECK:             arith.maximumf {{.*}} : vector<4xf32>
// CHECK:             arith.maximumf {{.*}} : vector<2xf32>
// CHECK:             arith.maximumf {{.*}} : vector<1xf32>
// CHECK:           } else {
// CHECK:             arith.cmpf ogt, {{.*}} : vector<8xf32>
// CHECK:             arith.cmpf ogt, {{.*}} : vector<1xf32>
// CHECK-NOT:       vector.reduction
// CHECK:           scf.for {{.*}} iter_args
// CHECK:             math.exp {{.*}} : vector<16xf32>
// CHECK:             vector.store {{.*}} %arg1[%[[ROW]]
// CHECK:           arith.addf {{.*}} : vector<1xf32>
// CHECK:           scf.for
// CHECK:             vector.load %arg1[%[[ROW]]
// CHECK:             arith.mulf {{.*}} : vector<16xf32>
// CHECK-NOT:         arith.divf {{.*}} : vector
// CHECK:             vector.store
// AVX2-LABEL: func.func private @softmax
// AVX2:             memref.prefetch %arg0[
// AVX2-NOT:         memref.prefetch %arg0[
// AVX2:             memref.prefetch %arg1[
// AVX2:         vector<8xf32>
func.func private @softmax(%a: memref<?x640xf32>, %out: memref<?x640xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x640xf32> to tensor<?x640xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?x640xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty(%d) : tensor<?xf32>
  %e1 = tensor.empty(%d) : tensor<?x640xf32>
  %f0 = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<?x640xf32>) outs(%f0 : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.maximumf %x, %acc : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  %e = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                     affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%t, %m : tensor<?x640xf32>, tensor<?xf32>) outs(%e1 : tensor<?x640xf32>) {
  ^bb0(%x: f32, %max: f32, %o: f32):
    %s = arith.subf %x, %max : f32
    %y = math.exp %s : f32
    linalg.yield %y : f32
  } -> tensor<?x640xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%e : tensor<?x640xf32>) outs(%f1 : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.addf %x, %acc : f32
    linalg.yield %y : f32
  } -> tensor<?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                     affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%e, %sum : tensor<?x640xf32>, tensor<?xf32>) outs(%e1 : tensor<?x640xf32>) {
  ^bb0(%x: f32, %s: f32, %o: f32):
    %y = arith.divf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<?x640xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x640xf32>, memref<?x640xf32>) -> ()
  return
}

// -----

// Rows that are short and wait for functions: four of two vectors each side by
// side where there are 32 registers, two elsewhere, where rows are enough for
// tasks of them; one after another at the end.

// CHECK-LABEL: func.func private @short_rows
// CHECK:         %[[COUNT:.*]] = arith.select %{{.*}}, %c4{{.*}}, %c1
// CHECK:         scf.parallel (%[[FIRST:.*]]) = {{.*}} step (%[[COUNT]])
// CHECK:           arith.minsi %[[COUNT]]
// CHECK:           scf.if
// CHECK-COUNT-1:     scf.for {{.*}} step %c32{{.*}} iter_args
// CHECK-COUNT-8:       math.exp {{.*}} : vector<16xf32>
// CHECK:               scf.yield {{.*}} : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>
// CHECK-NOT:         scf.for
// CHECK-COUNT-4:     memref.store
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK-COUNT-2:         math.exp
// CHECK-NOT:             math.exp
// CHECK:               memref.store
// AVX2-LABEL: func.func private @short_rows
// AVX2:         arith.select %{{.*}}, %c2{{.*}}, %c1
// AVX2:           scf.if
// AVX2-COUNT-4:     math.exp {{.*}} : vector<8xf32>
// AVX2-NOT:         math.exp
// AVX2:           } else {
func.func private @short_rows(%a: memref<?x128xf32>, %out: memref<?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x128xf32> to tensor<?x128xf32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?x128xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<?x128xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = math.exp %x : f32
    %s = arith.addf %acc, %y : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}

// -----

// Elementwise on one flat range, cut into tasks; the tail has a mask.

// CHECK-LABEL: func.func private @flat
// CHECK:         memref.collapse_shape %arg0 {{\[\[}}0, 1]]
// CHECK:         scf.parallel (%[[BEGIN:.*]]) = {{.*}} step (%c4096)
// CHECK:           scf.for
// CHECK:             vector.load
// CHECK:             vector.store
// CHECK:           scf.for
// CHECK:             vector.create_mask
// CHECK:             vector.maskedload
// CHECK:             vector.maskedstore
func.func private @flat(%a: memref<?x?xf32>, %out: memref<?x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x?xf32> to tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = tensor.dim %t, %c0 : tensor<?x?xf32>
  %d1 = tensor.dim %t, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%d0, %d1) : tensor<?x?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%t : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<?x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----

// Reducing an outer dimension: each lane is a column of its own.

// CHECK-LABEL: func.func private @columns
// CHECK:         scf.parallel
// CHECK:           scf.for {{.*}} iter_args
// CHECK-COUNT-4:     vector.load %arg0
// CHECK:             scf.yield
// CHECK-NOT:     vector.reduction
// CHECK-NOT:     vector<1x
// CHECK:         return
func.func private @columns(%a: memref<100x768xf32>, %out: memref<768xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<100x768xf32> to tensor<100x768xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<768xf32>) -> tensor<768xf32>
  %r = linalg.reduce {arith.addf} ins(%t : tensor<100x768xf32>) outs(%f : tensor<768xf32>) dimensions = [0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<768xf32>, memref<768xf32>) -> ()
  return
}

// -----

// Integer division may trap on lanes behind the end: the tail is scalar.

// CHECK-LABEL: func.func private @quotient
// CHECK:         arith.divsi {{.*}} : vector<8xi64>
// CHECK-NOT:     vector.create_mask
// CHECK:         arith.divsi {{.*}} : i64
func.func private @quotient(%a: memref<?xi64>, %b: memref<?xi64>, %out: memref<?xi64>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?xi64> to tensor<?xi64>
  %u = bufferization.to_tensor %b restrict : memref<?xi64> to tensor<?xi64>
  %c0 = arith.constant 0 : index
  %d0 = tensor.dim %t, %c0 : tensor<?xi64>
  %e = tensor.empty(%d0) : tensor<?xi64>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}
    ins(%t, %u : tensor<?xi64>, tensor<?xi64>) outs(%e : tensor<?xi64>) {
  ^bb0(%x: i64, %z: i64, %o: i64):
    %y = arith.divsi %x, %z : i64
    linalg.yield %y : i64
  } -> tensor<?xi64>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xi64>, memref<?xi64>) -> ()
  return
}

// -----

// What reads at positions that differ between lanes gathers them, unless they
// are neighbours.

// CHECK-LABEL: func.func private @gather
// CHECK:           vector.load %arg1[{{.*}} : memref<8xi64>, vector<8xi64>
// CHECK:           %[[ARE:.*]] = vector.reduction <and>
// CHECK:           %[[Y:.*]] = scf.if %[[ARE]] -> (vector<8xf32>) {
// CHECK:             vector.load %arg0[
// CHECK:           } else {
// CHECK:             vector.gather %arg0[{{.*}} : memref<?xf32>, vector<8xindex>
// CHECK:           vector.store %[[Y]], %arg2[
func.func private @gather(%a: memref<?xf32>, %i: memref<8xi64>, %out: memref<8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?xf32> to tensor<?xf32>
  %u = bufferization.to_tensor %i restrict : memref<8xi64> to tensor<8xi64>
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}
    ins(%u : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: i64, %o: f32):
    %at = arith.index_cast %x : i64 to index
    %y = tensor.extract %t[%at] : tensor<?xf32>
    linalg.yield %y : f32
  } -> tensor<8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

// Positions of 32 bits are as wide as what they name; what is no whole vector
// is scalar.

// CHECK-LABEL: func.func private @gather_by_table
// CHECK:           vector.gather %arg0[{{.*}} : memref<5x40xf32>, vector<16xi32>
// CHECK:           memref.load %arg0[
// CHECK-NOT:       vector.maskedload
// CHECK:           return
func.func private @gather_by_table(%a: memref<5x40xf32>, %i: memref<50xi32>, %out: memref<5x50xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<5x40xf32> to tensor<5x40xf32>
  %u = bufferization.to_tensor %i restrict : memref<50xi32> to tensor<50xi32>
  %e = tensor.empty() : tensor<5x50xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%u : tensor<50xi32>) outs(%e : tensor<5x50xf32>) {
  ^bb0(%x: i32, %o: f32):
    %row = linalg.index 0 : index
    %at = arith.index_cast %x : i32 to index
    %y = tensor.extract %t[%row, %at] : tensor<5x40xf32>
    linalg.yield %y : f32
  } -> tensor<5x50xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<5x50xf32>, memref<5x50xf32>) -> ()
  return
}

// -----

// A broadcast that only the run knows of: copies of long rows, vectors, or an
// element for all lanes.

// CHECK-LABEL: func.func private @maybe_broadcast
// CHECK:         %[[SAME:.*]] = arith.cmpi eq
// CHECK:         %[[LONG:.*]] = arith.cmpi sge, %{{.*}}, %c4096
// CHECK:         %[[WHOLE:.*]] = arith.andi %[[SAME]], %[[LONG]]
// CHECK:         scf.if %[[WHOLE]] {
// CHECK:           "llvm.intr.memcpy"
// CHECK:         } else {
// CHECK:         scf.if %arg1 -> (vector<16xf32>) {
// CHECK:           %[[ONE:.*]] = memref.load %arg0[%{{.*}}, %c0{{.*}}]
// CHECK-NEXT:      vector.broadcast %[[ONE]]
// CHECK:         } else {
// CHECK:           vector.load %arg0[
// CHECK:         vector.store
// CHECK:         scf.if %arg1 -> (vector<16xf32>) {
// CHECK:         } else {
// CHECK:           vector.maskedload %arg0[
// CHECK:         vector.maskedstore
func.func private @maybe_broadcast(%a: memref<?x?xf32>, %one: i1, %out: memref<?x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x?xf32> to tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = memref.dim %out, %c0 : memref<?x?xf32>
  %d1 = memref.dim %out, %c1 : memref<?x?xf32>
  %e = tensor.empty(%d0, %d1) : tensor<?x?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = arith.select %one, %c0, %j : index
    %x = tensor.extract %t[%i, %at] : tensor<?x?xf32>
    linalg.yield %x : f32
  } -> tensor<?x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----

// Long rows that are only copied are left to memcpy, those that are filled with
// equal bytes to memset; open ones if they turn out to be long.

// CHECK-LABEL: func.func private @repeat
// CHECK-NOT:     vector
// CHECK:         "llvm.intr.memcpy"
// CHECK-NOT:     vector
func.func private @repeat(%a: memref<8x8192xf32>, %out: memref<8x4x8192xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<8x8192xf32> to tensor<8x8192xf32>
  %e = tensor.empty() : tensor<8x4x8192xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<8x8192xf32>) outs(%e : tensor<8x4x8192xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<8x4x8192xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x4x8192xf32>, memref<8x4x8192xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @fill
// CHECK:         arith.cmpi slt, %{{.*}}, %c16384
// CHECK:         scf.if
// CHECK:           vector.store
// CHECK:         } else {
// CHECK:           %[[BYTE:.*]] = arith.constant -1 : i8
// CHECK:           "llvm.intr.memset"(%{{.*}}, %[[BYTE]], %{{.*}})
// CHECK:         } {sdx.rare_else}
func.func private @fill(%out: memref<?xi32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %all = arith.constant -1 : i32
  %n = memref.dim %out, %c0 : memref<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = linalg.fill ins(%all : i32) outs(%e : tensor<?xi32>) -> tensor<?xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xi32>, memref<?xi32>) -> ()
  return
}

// Bytes that differ, and short rows, go by vectors.
// CHECK-LABEL: func.func private @fill_ones
// CHECK-NOT:     memset
// CHECK-LABEL: func.func private @repeat_short
// CHECK-NOT:     memcpy
// CHECK:         return
func.func private @fill_ones(%out: memref<100000xi32>) attributes {sdx.kernel} {
  %one = arith.constant 1 : i32
  %e = tensor.empty() : tensor<100000xi32>
  %r = linalg.fill ins(%one : i32) outs(%e : tensor<100000xi32>) -> tensor<100000xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<100000xi32>, memref<100000xi32>) -> ()
  return
}

func.func private @repeat_short(%a: memref<8x512xf32>, %out: memref<8x4x512xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<8x512xf32> to tensor<8x512xf32>
  %e = tensor.empty() : tensor<8x4x512xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<8x512xf32>) outs(%e : tensor<8x4x512xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<8x4x512xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x4x512xf32>, memref<8x4x512xf32>) -> ()
  return
}

// -----

// A transpose: square tiles are turned in registers, 4 exchanges of 16 vectors.

// CHECK-LABEL: func.func private @transpose
// CHECK-COUNT-16: vector.load
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
func.func private @transpose(%a: memref<64x48xf32>, %out: memref<48x64xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<64x48xf32> to tensor<64x48xf32>
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.transpose ins(%t : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<48x64xf32>, memref<48x64xf32>) -> ()
  return
}

// -----

// Either of two open dimensions may have few positions: up to four of what is
// written beside each other are interleaved, as many of what is read taken
// apart, and one is copied.

// CHECK-LABEL: func.func private @open_transpose
// CHECK:         %[[ONE:.*]] = arith.cmpi eq, %[[M:.*]], %c1
// CHECK-NEXT:    scf.if %[[ONE]] {
// CHECK:           vector.load {{.*}} : memref<?xf32>, vector<16xf32>
// CHECK:         } else {
// CHECK:           %[[TWO:.*]] = arith.cmpi eq, %[[M]], %c2{{.*}}
// CHECK-NEXT:      scf.if %[[TWO]] {
// CHECK-COUNT-2:     vector.shuffle
// CHECK:           arith.cmpi eq, %[[M]], %c3
// CHECK-COUNT-6:     vector.shuffle
// CHECK:           arith.cmpi eq, %[[M]], %c4
// CHECK-COUNT-12:    vector.shuffle
// CHECK:           %[[THREE:.*]] = arith.cmpi eq, %[[N:.*]], %c3{{.*}}
// CHECK-NEXT:      scf.if %[[THREE]] {
// CHECK-COUNT-3:     vector.load {{.*}} : memref<?xf32>, vector<16xf32>
// CHECK:           arith.cmpi eq, %[[N]], %c4
// CHECK-COUNT-12:    vector.shuffle
// CHECK-COUNT-64:  vector.shuffle
func.func private @open_transpose(%a: memref<?x?xf32>, %out: memref<?x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x?xf32> to tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %out, %c0 : memref<?x?xf32>
  %n = memref.dim %out, %c1 : memref<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.transpose ins(%t : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----

// There are cases of those dimensions only whose few positions would lie beside
// each other, and none where code runs once.

// CHECK-LABEL: func.func private @open_transpose_apart
// CHECK-COUNT-4: arith.cmpi eq
// CHECK-NOT:     arith.cmpi eq
// CHECK-COUNT-64: vector.shuffle
func.func private @open_transpose_apart(%a: memref<?x?x?x?xf32>, %out: memref<?x?x?x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x?x?x?xf32> to tensor<?x?x?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %m = memref.dim %out, %c0 : memref<?x?x?x?xf32>
  %n = memref.dim %out, %c1 : memref<?x?x?x?xf32>
  %k = memref.dim %out, %c2 : memref<?x?x?x?xf32>
  %l = memref.dim %out, %c3 : memref<?x?x?x?xf32>
  %e = tensor.empty(%m, %n, %k, %l) : tensor<?x?x?x?xf32>
  %r = linalg.transpose ins(%t : tensor<?x?x?x?xf32>) outs(%e : tensor<?x?x?x?xf32>) permutation = [2, 0, 3, 1]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?x?x?xf32>, memref<?x?x?x?xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @open_transpose_once
// CHECK-NOT:     scf.if
func.func private @open_transpose_once(%a: memref<?x?xf32>, %out: memref<?x?xf32>) attributes {sdx.kernel, cpu.runs_once} {
  %t = bufferization.to_tensor %a restrict : memref<?x?xf32> to tensor<?x?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %out, %c0 : memref<?x?xf32>
  %n = memref.dim %out, %c1 : memref<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.transpose ins(%t : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}

// -----

// A pooling of stride 2: everything between is loaded, every other lane kept.
// The second vector ends with the last of these.

// CHECK-LABEL: func.func private @pool
// CHECK-NOT:     vector.gather
// CHECK-NOT:     vector.maskedload
// CHECK:         vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 17, 19,
// CHECK:         arith.maximumf {{.*}} : vector<16xf32>
func.func private @pool(%a: memref<2x3x65x65xf32>, %out: memref<2x3x32x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<2x3x65x65xf32> to tensor<2x3x65x65xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %w = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<2x3x32x32xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<2x3x32x32xf32>) -> tensor<2x3x32x32xf32>
  %r = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%t, %w : tensor<2x3x65x65xf32>, tensor<3x3xf32>) outs(%f : tensor<2x3x32x32xf32>) -> tensor<2x3x32x32xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<2x3x32x32xf32>, memref<2x3x32x32xf32>) -> ()
  return
}

// -----

// The window of a pooling with one output is 2x2 of an image of 3x3: its rows
// do not follow each other in memory, so its two loops are not one.

// CHECK-LABEL: func.func private @window
// CHECK-NOT:     memref.collapse_shape %arg0
// CHECK:         scf.for %[[Y:.*]] = %c0 to %c2
// CHECK:           vector.load %arg0[%{{.*}}, %{{.*}}, %[[Y]], %{{.*}}] : memref<1x1x3x3xf32>, vector<2xf32>
func.func private @window(%x: memref<1x1x3x3xf32>, %out: memref<1x1x1x1xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<1x1x3x3xf32> to tensor<1x1x3x3xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %kernel = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<1x1x1x1xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %m = linalg.generic {
    indexing_maps = [affine_map<(n, c, h, w, y, x) -> (n, c, h * 2 + y, w * 2 + x)>,
                     affine_map<(n, c, h, w, y, x) -> (y, x)>,
                     affine_map<(n, c, h, w, y, x) -> (n, c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%t, %kernel : tensor<1x1x3x3xf32>, tensor<2x2xf32>) outs(%f : tensor<1x1x1x1xf32>) {
  ^bb0(%in: f32, %k: f32, %acc: f32):
    %y = arith.maximumf %in, %acc : f32
    linalg.yield %y : f32
  } -> tensor<1x1x1x1xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x1x1x1xf32>, memref<1x1x1x1xf32>) -> ()
  return
}

// -----

// Where the window is as wide as the image, its rows do follow each other.

// CHECK-LABEL: func.func private @wide_window
// CHECK:         memref.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3]]
func.func private @wide_window(%x: memref<1x1x5x32xf32>, %out: memref<1x1x1x1xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<1x1x5x32xf32> to tensor<1x1x5x32xf32>
  %zero = arith.constant 0.0 : f32
  %kernel = tensor.empty() : tensor<4x32xf32>
  %e = tensor.empty() : tensor<1x1x1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x1x1xf32>) -> tensor<1x1x1x1xf32>
  %m = linalg.generic {
    indexing_maps = [affine_map<(n, c, h, w, y, x) -> (n, c, h + y, x)>,
                     affine_map<(n, c, h, w, y, x) -> (y, x)>,
                     affine_map<(n, c, h, w, y, x) -> (n, c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%t, %kernel : tensor<1x1x5x32xf32>, tensor<4x32xf32>) outs(%f : tensor<1x1x1x1xf32>) {
  ^bb0(%in: f32, %k: f32, %acc: f32):
    %y = arith.addf %in, %acc : f32
    linalg.yield %y : f32
  } -> tensor<1x1x1x1xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<1x1x1x1xf32>, memref<1x1x1x1xf32>) -> ()
  return
}

// -----

// A sum that may be too small for its reciprocal divides by itself.

// CHECK-LABEL: func.func private @divided_by_sum
// CHECK:         arith.divf {{.*}} : vector<16xf32>
func.func private @divided_by_sum(%a: memref<8x64xf32>, %out: memref<8x64xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<8x64xf32> to tensor<8x64xf32>
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8xf32>
  %e1 = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<8x64xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.addf %x, %acc : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                     affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}
    ins(%t, %sum : tensor<8x64xf32>, tensor<8xf32>) outs(%e1 : tensor<8x64xf32>) {
  ^bb0(%x: f32, %s: f32, %o: f32):
    %y = arith.divf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<8x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x64xf32>, memref<8x64xf32>) -> ()
  return
}

// -----

// The largest of a row and of a number is one comparison each; of a value that
// may be NaN it isn't.

// CHECK-LABEL: func.func private @largest
// CHECK-NOT:     arith.maxnumf
// CHECK:         arith.cmpf ogt, {{.*}} : vector<16xf32>
// CHECK-NEXT:    arith.select
// CHECK-NOT:     arith.maxnumf
// CHECK-LABEL: func.func private @largest_from_nan
// CHECK:         arith.maxnumf {{.*}} : vector<16xf32>
func.func private @largest(%a: memref<8x64xf32>, %out: memref<8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<8x64xf32> to tensor<8x64xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<8x64xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.maxnumf %acc, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

func.func private @largest_from_nan(%a: memref<8x64xf32>, %out: memref<8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<8x64xf32> to tensor<8x64xf32>
  %nan = arith.constant 0x7FC00000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%nan : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<8x64xf32>) outs(%f : tensor<8xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %y = arith.maxnumf %acc, %x : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  bufferization.materialize_in_destination %m in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

// Planes that become pixels: vectors of all planes are interleaved, instead of
// storing each element by itself. The last vectors begin where they end with
// the row.

// CHECK-LABEL: func.func private @pixels
// CHECK-NOT:     vector.scatter
// CHECK:         %[[LAST:.*]] = arith.subi
// CHECK:         scf.for %[[I:.*]] =
// CHECK:           arith.minsi %[[I]], %[[LAST]]
// CHECK-COUNT-3: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-6: vector.shuffle {{.*}} : vector<16xi8>, vector<16xi8>
// CHECK-COUNT-3: vector.store {{.*}} : memref<?xi8>, vector<16xi8>
// CHECK:         memref.store
func.func private @pixels(%a: memref<3x?xf32>, %out: memref<?x3xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<3x?xf32> to tensor<3x?xf32>
  %c1 = arith.constant 1 : index
  %n = tensor.dim %t, %c1 : tensor<3x?xf32>
  %e = tensor.empty(%n) : tensor<?x3xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<3x?xf32>) outs(%e : tensor<?x3xi8>) {
  ^bb0(%x: f32, %o: i8):
    %0 = arith.fptosi %x : f32 to i8
    linalg.yield %0 : i8
  } -> tensor<?x3xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x3xi8>, memref<?x3xi8>) -> ()
  return
}

// -----

// Pixels that become planes: what lies beside each other is loaded once and
// taken apart.

// CHECK-LABEL: func.func private @planes
// CHECK-NOT:     vector.gather
// CHECK:         scf.for
// CHECK-COUNT-3: vector.load {{.*}} : memref<?xf32>, vector<16xf32>
// CHECK-NOT:     vector.load
// CHECK-COUNT-6: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK-COUNT-3: vector.store {{.*}} : memref<3x?xf32>, vector<16xf32>
// CHECK:         memref.store
func.func private @planes(%a: memref<?x3xf32>, %out: memref<3x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?x3xf32> to tensor<?x3xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<3x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<?x3xf32>) outs(%e : tensor<3x?xf32>) {
  ^bb0(%x: f32, %o: f32):
    %0 = arith.negf %x : f32
    linalg.yield %0 : f32
  } -> tensor<3x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3x?xf32>, memref<3x?xf32>) -> ()
  return
}

// -----

// Rows that are shorter than a register of bytes have shorter vectors.

// CHECK-LABEL: func.func private @short_rows_of_pixels
// CHECK-COUNT-2: vector.load {{.*}} vector<32xi8>
// CHECK-COUNT-2: vector.store {{.*}} vector<32xi8>
func.func private @short_rows_of_pixels(%a: memref<2x40xi8>, %out: memref<40x2xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<2x40xi8> to tensor<2x40xi8>
  %e = tensor.empty() : tensor<40x2xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<2x40xi8>) outs(%e : tensor<40x2xi8>) {
  ^bb0(%x: i8, %o: i8):
    linalg.yield %x : i8
  } -> tensor<40x2xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<40x2xi8>, memref<40x2xi8>) -> ()
  return
}

// -----

// A padded row: the copy in its middle goes by vectors, of which the last one
// begins earlier, the ends go one by one.

// CHECK-LABEL: func.func private @padded_rows
// CHECK:         scf.parallel
// CHECK:           scf.for %{{.*}} = %c0{{.*}} to %c1{{.*}} step %c1
// CHECK:             memref.store
// CHECK:           scf.for %{{.*}} = %c1{{.*}} to %c33{{.*}} step %c32
// CHECK:             vector.load %arg1{{.*}} : memref<9x56xi8>, vector<32xi8>
// CHECK:           scf.for %[[AT:.*]] = %c33{{.*}} to %c57{{.*}} step %c32
// CHECK:             %[[LAST:.*]] = arith.minsi %[[AT]], %c25
// CHECK:             %[[FROM:.*]] = arith.subi %[[LAST]], %c1
// CHECK:             vector.load %arg1[%{{.*}}, %[[FROM]]] : memref<9x56xi8>, vector<32xi8>
// CHECK-NOT:         vector.gather
// CHECK:             vector.store
// CHECK:           scf.for %{{.*}} = %c57{{.*}} to %c58{{.*}} step %c1
// CHECK:             memref.store
func.func private @padded_rows(%table: memref<58xi32>, %a: memref<9x56xi8>, %out: memref<9x58xi8>) attributes {sdx.kernel} {
  %p = bufferization.to_tensor %table restrict : memref<58xi32> to tensor<58xi32>
  %t = bufferization.to_tensor %a restrict : memref<9x56xi8> to tensor<9x56xi8>
  %c1 = arith.constant 1 : index
  %c56 = arith.constant 56 : index
  %e = tensor.empty() : tensor<9x58xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<58xi32>) outs(%e : tensor<9x58xi8>) {
  ^bb0(%x: i32, %o: i8):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %at = arith.subi %j, %c1 : index
    %inside = arith.cmpi ult, %at, %c56 : index
    %far = arith.index_cast %x : i32 to index
    %from = arith.select %inside, %at, %far : index
    %0 = tensor.extract %t[%i, %from] : tensor<9x56xi8>
    linalg.yield %0 : i8
  } -> tensor<9x58xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<9x58xi8>, memref<9x58xi8>) -> ()
  return
}

// -----

// Rows between rows of a constant: no load is under a mask.

// CHECK-LABEL: func.func private @surrounded
// CHECK:         scf.parallel (%[[ROW:.*]]) =
// CHECK:           %[[INSIDE:.*]] = arith.cmpi ult
// CHECK:           scf.if
// CHECK:             vector.load {{.*}} vector<32xi8>
// CHECK:           } else {
// CHECK-NEXT:        vector.broadcast %arg1 : i8 to vector<32xi8>
// CHECK-NOT:       arith.select {{.*}} vector<32xi8>
func.func private @surrounded(%a: memref<9x56xi8>, %fill: i8, %out: memref<11x58xi8>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<9x56xi8> to tensor<9x56xi8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %c56 = arith.constant 56 : index
  %e = tensor.empty() : tensor<11x58xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<11x58xi8>) {
  ^bb0(%o: i8):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.subi %i, %c1 : index
    %q = arith.subi %j, %c1 : index
    %in = arith.cmpi ult, %p, %c9 : index
    %is = arith.cmpi ult, %q, %c56 : index
    %row = arith.select %in, %p, %c0 : index
    %column = arith.select %is, %q, %c0 : index
    %both = arith.andi %in, %is : i1
    %x = tensor.extract %t[%row, %column] : tensor<9x56xi8>
    %0 = arith.select %both, %x, %fill : i8
    linalg.yield %0 : i8
  } -> tensor<11x58xi8>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<11x58xi8>, memref<11x58xi8>) -> ()
  return
}

// -----

// What nothing read depends on: each vector is loaded once and stored to both
// rows.

// CHECK-LABEL: func.func private @repeat
// CHECK:         %[[X:.*]] = vector.load %arg0
// CHECK-NOT:     vector.load
// CHECK:         vector.store %[[X]], %arg1[%{{.*}}, %c0
// CHECK:         vector.store %[[X]], %arg1[%{{.*}}, %c1
func.func private @repeat(%a: memref<?x16xf32>, %out: memref<?x2x16xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %a restrict : memref<?x16xf32> to tensor<?x16xf32>
  %n = tensor.dim %t, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x2x16xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(n, r, c) -> (n, c)>, affine_map<(n, r, c) -> (n, r, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t : tensor<?x16xf32>) outs(%e : tensor<?x2x16xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<?x2x16xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x2x16xf32>, memref<?x2x16xf32>) -> ()
  return
}
