// RUN: onnx-opt %s --sdx-fuse-elementwise --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// A chain becomes one operation; the fill a scalar of its body.
// CHECK-LABEL: @chain
// CHECK: linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: linalg.yield
// CHECK-NOT: linalg.generic
func.func @chain(%x: tensor<?x8xf32>, %b: tensor<8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %0 = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %b : tensor<?x8xf32>, tensor<8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %2 = linalg.max ins(%1, %f : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// Neither what has two users nor what would be computed once for each row.
// CHECK-LABEL: @apart
// CHECK-COUNT-2: math.exp
// CHECK: arith.addf
// CHECK: arith.mulf
func.func @apart(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %e = tensor.empty() : tensor<4x8xf32>
  %eb = tensor.empty() : tensor<8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.exp ins(%b : tensor<8xf32>) outs(%eb : tensor<8xf32>) -> tensor<8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %3 = linalg.mul ins(%0, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>

// The bias is added before the rows are split into batches, the residual is
// seen as rows.
// CHECK-LABEL: @bias_after_reshape
// CHECK-SAME: %[[M:.*]]: tensor<?x8xf32>, %[[B:.*]]: tensor<8xf32>, %[[R:.*]]: tensor<?x?x8xf32>
// CHECK: %[[RC:.*]] = tensor.collapse_shape %[[R]]
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[M]], %[[B]], %[[RC]] : tensor<?x8xf32>, tensor<8xf32>, tensor<?x8xf32>)
// CHECK: tensor.expand_shape %[[S]]
func.func @bias_after_reshape(%m: tensor<?x8xf32>, %b: tensor<8xf32>, %r: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = tensor.dim %r, %c0 : tensor<?x?x8xf32>
  %d1 = tensor.dim %r, %c1 : tensor<?x?x8xf32>
  %m3 = tensor.expand_shape %m [[0, 1], [2]] output_shape [%d0, %d1, 8] : tensor<?x8xf32> into tensor<?x?x8xf32>
  %e = tensor.empty(%d0, %d1) : tensor<?x?x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #col, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%m3, %b, %r : tensor<?x?x8xf32>, tensor<8xf32>, tensor<?x?x8xf32>) outs(%e : tensor<?x?x8xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %t = arith.addf %a, %c : f32
    %u = arith.addf %t, %d : f32
    linalg.yield %u : f32
  } -> tensor<?x?x8xf32>
  return %s : tensor<?x?x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#keep = affine_map<(d0, d1) -> (d0, 0)>

// What a reduction that keeps its dimension made is read by rows.
// CHECK-LABEL: @kept_dimension
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[R:.*]]: tensor<4xf32>
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[R]] : tensor<4x8xf32>, tensor<4xf32>)
func.func @kept_dimension(%x: tensor<4x8xf32>, %r: tensor<4xf32>) -> tensor<4x8xf32> {
  %k = tensor.expand_shape %r [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %k : tensor<4x8xf32>, tensor<4x1xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.subf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// The type knows a size that the operation still asks for: it says the size,
// as an expanding view of a buffer must.
// CHECK-LABEL: func.func @size_of_type
// CHECK-SAME: (%[[X:.*]]: tensor<15x4xf32>
// CHECK: tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [3, 5, 4]
func.func @size_of_type(%x: tensor<15x4xf32>, %n: index) -> tensor<3x5x4xf32> {
  %0 = tensor.expand_shape %x [[0, 1], [2]] output_shape [3, %n, 4] : tensor<15x4xf32> into tensor<3x5x4xf32>
  return %0 : tensor<3x5x4xf32>
}

// -----

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#mask = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#scalar = affine_map<(d0, d1, d2, d3) -> ()>

// Scores become bytes behind their product, with a mask that is the same for
// all heads of the only batch; the softmax reads bytes.
// CHECK-LABEL: @bytes_for_rows
// CHECK: %[[P:.*]] = sdx.matmul
// CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<6x8x8xi32>, tensor<8xf32>) outs(%{{.*}} : tensor<6x8x8xi8>)
// CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<6x8x8xi8>) outs(%{{.*}} : tensor<6x8x8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[F]] : tensor<6x8x8xf32>)
func.func @bytes_for_rows(%a: tensor<6x8x4xi8>, %b: tensor<6x4x8xi8>, %m: tensor<1x8xf32>) -> tensor<1x6x8xf32> {
  %zero = arith.constant 0 : i32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<6x8x8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<6x8x8xi32>) -> tensor<6x8x8xi32>
  %p = sdx.matmul ins(%a, %b : tensor<6x8x4xi8>, tensor<6x4x8xi8>) outs(%f : tensor<6x8x8xi32>) {lhs_unsigned} -> tensor<6x8x8xi32>
  %x = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 6, 8, 8] : tensor<6x8x8xi32> into tensor<1x6x8x8xi32>
  %e1 = tensor.empty() : tensor<1x6x8x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #mask, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %m : tensor<1x6x8x8xi32>, tensor<1x8xf32>) outs(%e1 : tensor<1x6x8x8xf32>) {
  ^bb0(%i: i32, %j: f32, %o: f32):
    %0 = arith.sitofp %i : i32 to f32
    %1 = arith.addf %0, %j : f32
    linalg.yield %1 : f32
  } -> tensor<1x6x8x8xf32>
  %e2 = tensor.empty() : tensor<1x6x8x8xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x6x8x8xf32>) outs(%e2 : tensor<1x6x8x8xi8>) {
  ^bb0(%i: f32, %o: i8):
    %0 = arith.fptosi %i : f32 to i8
    linalg.yield %0 : i8
  } -> tensor<1x6x8x8xi8>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : tensor<1x6x8x8xi8>) outs(%e1 : tensor<1x6x8x8xf32>) {
  ^bb0(%i: i8, %o: f32):
    %0 = arith.sitofp %i : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<1x6x8x8xf32>
  %e3 = tensor.empty() : tensor<1x6x8xf32>
  %f3 = linalg.fill ins(%lowest : f32) outs(%e3 : tensor<1x6x8xf32>) -> tensor<1x6x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%d : tensor<1x6x8x8xf32>) outs(%f3 : tensor<1x6x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = arith.maxnumf %i, %o : f32
    linalg.yield %0 : f32
  } -> tensor<1x6x8xf32>
  return %r : tensor<1x6x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// What computes on picked elements picks them; a sum along a row reads them.
// CHECK-LABEL: @picks
// CHECK:         %[[P:.*]] = linalg.generic
// CHECK:           tensor.extract
// CHECK-NEXT:      math.exp
// CHECK-NEXT:      linalg.yield
// CHECK-NOT:     linalg.generic
// CHECK:         return %[[P]]
func.func @picks(%x: tensor<5x8xf32>, %e: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %two = arith.constant 2 : index
  %0 = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.divui %i, %two : index
    %v = tensor.extract %x[%k, %j] : tensor<5x8xf32>
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  %1 = linalg.exp ins(%0 : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}

// -----

#id = affine_map<(d0) -> (d0)>

// What checks positions runs as often as it is written.
// CHECK-LABEL: @checked_picks
// CHECK:         linalg.generic
// CHECK:           sdx.check
// CHECK:         linalg.generic
// CHECK-NOT:       sdx.check
// CHECK:         return
func.func @checked_picks(%x: tensor<?xf32>, %i: tensor<6xindex>, %n: index, %e: tensor<6xf32>) -> tensor<6xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : tensor<6xindex>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: index, %o: f32):
    %c = arith.cmpi ult, %k, %n : index
    sdx.check %c, "no such row"
    %v = tensor.extract %x[%k] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %1 = linalg.exp ins(%0 : tensor<6xf32>) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// What is observed and goes into its reader gets a copy, which stays as it is;
// what is there in any case has none.
// CHECK-LABEL: func.func @observed
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.yield %{{.*}} {sdx.observed} : f32
// CHECK: sdx.observe %[[COPY]] site 0
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[COPY]] :
// CHECK: math.sqrt
// CHECK: linalg.yield %{{.*}} {sdx.observed} : f32
// CHECK: sdx.observe %[[NEXT]] site 1
// CHECK: %[[Y:.*]] = linalg.generic
// CHECK: math.exp
// CHECK-NEXT: math.sqrt
// CHECK-NEXT: arith.negf
// CHECK-NEXT: linalg.yield %{{[0-9]+}} : f32
// CHECK: sdx.observe %[[Y]] site 2
// CHECK: return %[[Y]]
func.func @observed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = math.exp %i : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  sdx.observe %0 site 0 <range> : tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = math.sqrt %i : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  sdx.observe %1 site 1 <range> : tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.negf %i : f32
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  sdx.observe %2 site 2 <range> : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

#row = affine_map<(d0, d1, d2) -> (d0, d1)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// What is made of the only row keeps its dimension, so that rows are in one
// kernel, however many they are.
// CHECK: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @one_row
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ["parallel", "reduction"]} {{.*}} outs(%{{.*}} : tensor<1xf32>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROW]], #{{.*}}], iterator_types = ["parallel", "parallel"]} ins(%{{.*}}, %[[S]] : tensor<1x64xf32>, tensor<1xf32>)
func.func @one_row(%x: tensor<1x64xf32>, %z: tensor<1x1xf32>) -> tensor<1x1x64xf32> {
  %e = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, 1, 64] : tensor<1x64xf32> into tensor<1x1x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e : tensor<1x1x64xf32>) outs(%z : tensor<1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<1x1xf32>
  %empty = tensor.empty() : tensor<1x1x64xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<1x1x64xf32>, tensor<1x1xf32>) outs(%empty : tensor<1x1x64xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  } -> tensor<1x1x64xf32>
  return %y : tensor<1x1x64xf32>
}

// -----

// Two casts hide what the types of others tell: each operation takes the sizes
// of its result's tensor, and it ends.
// CHECK-LABEL: @hidden_sizes
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<4x33xi8>) outs(%{{.*}} : tensor<4x33xi8>)
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<4x33xi8>) outs(%{{.*}} : tensor<4x33xi16>)
// CHECK:         tensor.cast %{{.*}} : tensor<4x33xi16> to tensor<?x33xi16>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @hidden_sizes(%x: tensor<?x?xi8>, %table: tensor<256xi8>) -> (tensor<?x33xi16>, tensor<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %m = tensor.dim %x, %c0 : tensor<?x?xi8>
  %n = tensor.dim %x, %c1 : tensor<?x?xi8>
  %rows = tensor.cast %x : tensor<?x?xi8> to tensor<4x?xi8>
  %e0 = tensor.empty(%n) : tensor<4x?xi8>
  %y = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4x?xi8>) outs(%e0 : tensor<4x?xi8>) {
  ^bb0(%in: i8, %out: i8):
    %i = arith.index_castui %in : i8 to index
    %e = tensor.extract %table[%i] : tensor<256xi8>
    linalg.yield %e : i8
  } -> tensor<4x?xi8>
  %columns = tensor.cast %y : tensor<4x?xi8> to tensor<?x33xi8>
  %k = tensor.dim %columns, %c0 : tensor<?x33xi8>
  %e1 = tensor.empty(%k) : tensor<?x33xi16>
  %wide = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%columns : tensor<?x33xi8>) outs(%e1 : tensor<?x33xi16>) {
  ^bb0(%in: i8, %out: i16):
    %e = arith.extui %in : i8 to i16
    linalg.yield %e : i16
  } -> tensor<?x33xi16>
  %e2 = tensor.empty(%m) : tensor<?xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e2 : tensor<?xi32>) -> tensor<?xi32>
  %sums = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
      ins(%columns : tensor<?x33xi8>) outs(%f : tensor<?xi32>) {
  ^bb0(%in: i8, %out: i32):
    %e = arith.extui %in : i8 to i32
    %s = arith.addi %out, %e : i32
    linalg.yield %s : i32
  } -> tensor<?xi32>
  return %wide, %sums : tensor<?x33xi16>, tensor<?xi32>
}
