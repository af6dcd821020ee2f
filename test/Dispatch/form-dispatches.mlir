// RUN: onnx-opt %s --sdx-form-dispatches --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>

// A product takes its epilogue along, over an operation in between that does
// not need it; a residual comes from outside.
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = tensor.empty() : tensor<1xf32>
// CHECK: sdx.call @k{{[0-9]+}}_fill() outs(%{{.*}} : tensor<1xf32>)
// CHECK: sdx.call @[[K:k[0-9]+_matmul]](%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<2x64x32xf32>, tensor<40xf32>, tensor<?x40xf32>) outs(%{{.*}} : tensor<?x40xf32>) -> tensor<?x40xf32>
// CHECK-NOT: linalg
// CHECK: return
// CHECK: func.func private @[[K]](%{{.*}}: memref<?x64xf32>, %{{.*}}: memref<2x64x32xf32>, %{{.*}}: memref<40xf32>, %{{.*}}: memref<?x40xf32>, %[[OUT:.*]]: memref<?x40xf32>) attributes {sdx.kernel}
// CHECK: memref.dim %[[OUT]]
// CHECK: linalg.fill
// CHECK: cpu.packed_matmul
// CHECK: linalg.generic
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
func.func @main(%x: tensor<?x64xf32>, %p: tensor<2x64x32xf32>, %b: tensor<40xf32>, %r: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%m) : tensor<?x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %0 = cpu.packed_matmul ins(%x, %p : tensor<?x64xf32>, tensor<2x64x32xf32>) outs(%f : tensor<?x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x40xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %other = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1xf32>) -> tensor<1xf32>
  %1 = linalg.generic {indexing_maps = [#id, #col, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %b, %r : tensor<?x40xf32>, tensor<40xf32>, tensor<?x40xf32>) outs(%e : tensor<?x40xf32>) {
  ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    %t = arith.addf %s, %d : f32
    linalg.yield %t : f32
  } -> tensor<?x40xf32>
  return %1, %other : tensor<?x40xf32>, tensor<1xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A softmax is one kernel; what the host still needs is a second result.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = sdx.call @[[K:k[0-9]+_rows]](%arg0 : tensor<?x?xf32>) outs(%{{.*}}, %{{.*}} : tensor<?xf32>, tensor<?x?xf32>)
// CHECK: return %[[R]]#1, %[[R]]#0
// CHECK: func.func private @[[K]](%{{.*}}: memref<?x?xf32>, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?x?xf32>)
func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %er = tensor.empty(%m) : tensor<?xf32>
  %fl = linalg.fill ins(%low : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%fl : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  } -> tensor<?x?xf32>
  %fz = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<?x?xf32>) outs(%fz : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<?xf32>
  %div = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  return %div, %max : tensor<?x?xf32>, tensor<?xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>

// The product cannot wait for its epilogue: something between needs it and is
// needed by the epilogue. Its value is a result, and the rest two kernels.
// CHECK-LABEL: func.func @main
// CHECK: sdx.call @{{k[0-9]+_matmul}}(
// CHECK: sdx.call @{{k[0-9]+_transpose}}(
// CHECK: sdx.call @{{k[0-9]+_elementwise}}(
func.func @main(%x: tensor<8x64xf32>, %p: tensor<1x64x32xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = cpu.packed_matmul ins(%x, %p : tensor<8x64xf32>, tensor<1x64x32xf32>) outs(%f : tensor<8x8xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x8xf32>
  %t = linalg.transpose ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) permutation = [1, 0]
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %t : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

#v = affine_map<(d0) -> (d0)>

// Bodies of loops are cut as well; scalars and captured tensors are operands;
// an init that holds values is copied in the kernel.
// CHECK-LABEL: func.func @main
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%[[S:.*]] = %arg0)
// CHECK: sdx.call @[[K:k[0-9]+_generic]](%[[S]], %arg1, %[[I]] : tensor<8xf32>, tensor<8xf32>, index)
// CHECK: func.func private @[[K]](%{{.*}}: memref<8xf32>, %{{.*}}: memref<8xf32>, %{{.*}}: index, %{{.*}}: memref<8xf32>)
// CHECK: linalg.copy
// CHECK: tensor.extract
func.func @main(%x: tensor<8xf32>, %t: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %x) -> tensor<8xf32> {
    %0 = linalg.generic {indexing_maps = [#v], iterator_types = ["parallel"]} outs(%s : tensor<8xf32>) {
    ^bb0(%o: f32):
      %v = tensor.extract %t[%i] : tensor<8xf32>
      %w = arith.addf %v, %o : f32
      linalg.yield %w : f32
    } -> tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The square of a product that is needed itself, too, is left to the row
// operation that sums it up: the product's kernel has one result.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = sdx.call @{{k[0-9]+_matmul}}({{.*}} -> tensor<8x16xf32>
// CHECK: sdx.call @[[K:k[0-9]+_rows]](%[[M]] : tensor<8x16xf32>)
// CHECK: func.func private @[[K]]
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: arith.subf
func.func @main(%x: tensor<8x64xf32>, %p: tensor<1x64x32xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %er = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<8xf32>) -> tensor<8xf32>
  %0 = cpu.packed_matmul ins(%x, %p : tensor<8x64xf32>, tensor<1x64x32xf32>) outs(%f : tensor<8x16xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<8x16xf32>) outs(%fr : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %2 : tensor<8x16xf32>, tensor<8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// What has no elements needs no kernel.
#id2 = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @empty
// CHECK: %[[E:.*]] = tensor.empty(%{{.*}}) : tensor<?x0xf32>
// CHECK-NOT: sdx.call
// CHECK: return %[[E]]
func.func @empty(%n: index) -> tensor<?x0xf32> {
  %e = tensor.empty(%n) : tensor<?x0xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%e : tensor<?x0xf32>) outs(%e : tensor<?x0xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<?x0xf32>
  return %0 : tensor<?x0xf32>
}

// -----

// Nor does what only such a result was made of.
#in = affine_map<(d0, d1) -> (d1)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @feeds_empty
// CHECK-NOT: linalg.generic
// CHECK-NOT: sdx.call
// CHECK: return
func.func @feeds_empty(%n: index) -> tensor<0x?xi64> {
  %e = tensor.empty(%n) : tensor<?xi64>
  %0 = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<?xi64>) {
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i64
    linalg.yield %c : i64
  } -> tensor<?xi64>
  %w = tensor.empty(%n) : tensor<0x?xi64>
  %1 = linalg.generic {indexing_maps = [#in, #all], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<?xi64>) outs(%w : tensor<0x?xi64>) {
  ^bb0(%a: i64, %o: i64):
    linalg.yield %a : i64
  } -> tensor<0x?xi64>
  return %1 : tensor<0x?xi64>
}

// -----

// A product without depth reads an operand that holds nothing from memory too.
// CHECK-LABEL: func.func @no_depth
// CHECK: %[[P:.*]] = tensor.empty() : tensor<1x0x32xf32>
// CHECK: sdx.call @{{.*}}(%{{.*}}, %[[P]] :
func.func @no_depth(%x: tensor<2x0xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<1x0x32xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %0 = cpu.packed_matmul ins(%x, %p : tensor<2x0xf32>, tensor<1x0x32xf32>) outs(%f : tensor<2x3xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// A program on elements starts from an argument, which it copies, and then from
// what only it reads, which it updates.
// CHECK-LABEL: func.func @programs
// CHECK: %[[E:.*]] = tensor.empty()
// CHECK: %[[A:.*]] = sdx.call @k0_forall(%{{.*}}, %{{.*}}) outs(%[[E]] : tensor<1x8xf32>) ->
// CHECK: sdx.call @k1_forall(%{{.*}}) outs(%[[A]] : tensor<1x8xf32>) {updates = array<i64: 0>} ->
// CHECK-LABEL: func.func private @k0_forall
// CHECK-SAME: (%[[X:.*]]: memref<1x8xf32>, %[[V:.*]]: f32, %[[OUT:.*]]: memref<1x8xf32>)
// CHECK: %[[IN:.*]] = bufferization.to_tensor %[[X]] restrict :
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[IN]]
// CHECK: scf.forall (%{{.*}}) in (1) shared_outs(%{{.*}} = %[[COPY]])
// CHECK-LABEL: func.func private @k1_forall
// CHECK-SAME: (%{{.*}}: f32, %[[OUT:.*]]: memref<1x8xf32>)
// CHECK: %[[HELD:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK-NOT: linalg.copy
// CHECK: scf.forall (%{{.*}}) in (1) shared_outs(%{{.*}} = %[[HELD]])
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
func.func @programs(%x: tensor<1x8xf32> {sdx.input = 0 : i64}, %v: f32) -> tensor<1x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.forall (%i) in (1) shared_outs(%o = %x) -> (tensor<1x8xf32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<8xf32>
    %next = tensor.insert %v into %row[%c0] : tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %next into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1x8xf32>
    }
  } {mapping = [#sdx.task]}
  %1 = scf.forall (%i) in (1) shared_outs(%o = %0) -> (tensor<1x8xf32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<8xf32>
    %next = tensor.insert %v into %row[%c1] : tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %next into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1x8xf32>
    }
  } {mapping = [#sdx.task]}
  return %1 : tensor<1x8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The bytes that a product leaves are made floats by the reduction that reads
// them.
// CHECK-LABEL: func.func private @k0_matmul
// CHECK-SAME: memref<8x16xi8>)
// CHECK: arith.fptosi
// CHECK-LABEL: func.func private @k1_rows
// CHECK-SAME: (%{{.*}}: memref<8x16xi8>
// CHECK: arith.sitofp
// CHECK: arith.maxnumf
func.func @bytes_for_rows(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = sdx.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %e2 = tensor.empty() : tensor<8x16xi8>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<8x16xf32>) outs(%e2 : tensor<8x16xi8>) {
  ^bb0(%i: f32, %o: i8):
    %0 = arith.fptosi %i : f32 to i8
    linalg.yield %0 : i8
  } -> tensor<8x16xi8>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<8x16xi8>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: i8, %o: f32):
    %0 = arith.sitofp %i : i8 to f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  %e3 = tensor.empty() : tensor<8xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%d : tensor<8x16xf32>) outs(%f3 : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = arith.maxnumf %i, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Readers that observe keep nothing apart: the product takes its epilogue, and
// both values are seen in its kernel, also where a reshape or a transpose lies
// between. Channels are told apart outside, and what rows make is seen there.
// CHECK-LABEL: func.func @observed
// CHECK: %[[P:.*]]:2 = sdx.call @k0_matmul(
// CHECK: sdx.observe %[[P]]#0 site 2 <channels> axis 1 : tensor<8x16xf32>
// CHECK: %[[R:.*]] = sdx.call @k1_rows(%[[P]]#1
// CHECK: sdx.observe %[[R]] site 3 <range> : tensor<8xf32>
// CHECK-LABEL: func.func private @k0_matmul
// CHECK: %[[SUM:.*]] = sdx.matmul
// CHECK: %[[ROOT:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[SUM]]
// CHECK: bufferization.materialize_in_destination %[[ROOT]]
// CHECK-DAG: sdx.observe %[[SUM]] site 0 <range|bits> : tensor<8x16xf32>
// CHECK-DAG: sdx.observe %[[ROOT]] site 1 <range> : tensor<8x16xf32>
// CHECK-LABEL: func.func private @k1_rows
// CHECK-NOT: sdx.observe
func.func @observed(%a: tensor<8x4xf32>, %b: tensor<4x16xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = sdx.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %x = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  sdx.observe %x site 0 <range|bits> : tensor<2x4x16xf32>
  sdx.observe %p site 2 <channels> axis 1 : tensor<8x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.sqrt %i : f32
    linalg.yield %0 : f32
  } -> tensor<8x16xf32>
  %te = tensor.empty() : tensor<16x8xf32>
  %t = linalg.transpose ins(%s : tensor<8x16xf32>) outs(%te : tensor<16x8xf32>) permutation = [1, 0]
  sdx.observe %t site 1 <range> : tensor<16x8xf32>
  %e3 = tensor.empty() : tensor<8xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<8x16xf32>) outs(%f3 : tensor<8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = arith.maxnumf %i, %o : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  sdx.observe %r site 3 <range> : tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// A loop whose results nobody reads is left out with its checks.
// CHECK-LABEL: func.func @checks_alone
// CHECK-NOT:     scf.forall
// CHECK-NOT:     sdx.kernel
func.func @checks_alone(%i: tensor<?xi64>, %n: index, %d: index) -> index {
  scf.forall (%k) in (%n) {
    %e = tensor.extract %i[%k] : tensor<?xi64>
    %x = arith.index_cast %e : i64 to index
    %c = arith.cmpi ult, %x, %d : index
    sdx.check %c, "index {0} is out of range for a dimension of size {1}"(%x, %d)
  } {mapping = [#sdx.task]}
  return %n : index
}
