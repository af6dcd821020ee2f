// RUN: onnx-opt %s -split-input-file -verify-diagnostics \
// RUN:   -cpu-lower-contractions -canonicalize -cse | FileCheck %s
// RUN: onnx-opt %s --target=alderlake -split-input-file -verify-diagnostics \
// RUN:   -cpu-lower-contractions | FileCheck %s --check-prefix=AVX2

#row = affine_map<(m, n) -> (n)>
#id = affine_map<(m, n) -> (m, n)>

// A bias and a relu stay in registers: one store a row, no other memory.
// CHECK-LABEL: func.func private @bias_relu
// CHECK-SAME: (%[[A:.*]]: memref<16x768xf32>, %[[B:.*]]: memref<24x768x32xf32>, %[[BIAS:.*]]: memref<768xf32>, %[[OUT:.*]]: memref<16x768xf32>)
// CHECK-NOT: tensor
// CHECK: scf.parallel (%[[PANEL:.*]]) =
// CHECK: scf.for
// CHECK: %[[ACC:.*]]:8 = scf.for %[[K:.*]] = %c0 to %c768 step %c1
// CHECK: %[[COLUMNS:.*]] = vector.load %[[B]][%[[PANEL]], %[[K]], %c0]
// CHECK: %[[SCALAR:.*]] = memref.load %[[A]][%{{.*}}, %[[K]]]
// CHECK: %[[SPLAT:.*]] = vector.broadcast %[[SCALAR]] : f32 to vector<32xf32>
// CHECK: vector.fma %[[SPLAT]], %[[COLUMNS]], %{{.*}} : vector<32xf32>
// CHECK: %[[SHIFT:.*]] = vector.load %[[BIAS]]
// CHECK: arith.addf %[[ACC]]#0, %[[SHIFT]]
// CHECK: arith.maximumf
// CHECK: vector.store %{{.*}}, %[[OUT]]
// CHECK: arith.addf %[[ACC]]#1, %[[SHIFT]]
// CHECK-NOT: mask
// AVX2-LABEL: func.func private @bias_relu
// AVX2: vector.fma {{.*}} : vector<16xf32>
func.func private @bias_relu(%a: memref<16x768xf32>, %b: memref<24x768x32xf32>,
    %bias: memref<768xf32>, %out: memref<16x768xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<16x768xf32> to tensor<16x768xf32>
  %tb = bufferization.to_tensor %b restrict : memref<24x768x32xf32> to tensor<24x768x32xf32>
  %tbias = bufferization.to_tensor %bias restrict : memref<768xf32> to tensor<768xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x768xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x768xf32>) -> tensor<16x768xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<16x768xf32>, tensor<24x768x32xf32>)
      outs(%f : tensor<16x768xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<16x768xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%m, %tbias : tensor<16x768xf32>, tensor<768xf32>) outs(%e : tensor<16x768xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %t = arith.maximumf %s, %zero : f32
    linalg.yield %t : f32
  } -> tensor<16x768xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<16x768xf32>, memref<16x768xf32>) -> ()
  return
}

// -----

// Rows that do not fill a tile, with M unknown: a tile for one, and tiles whose
// missing rows repeat the last. Columns past N are masked. The last of three
// panels is alone, the others are multiplied together.
// CHECK-LABEL: func.func private @tails
// CHECK: scf.parallel
// CHECK: scf.if
// CHECK: scf.for
// CHECK: vector.create_mask
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>) {
// CHECK: vector.maskedstore
// CHECK: scf.if
// CHECK: scf.for {{.*}} -> (vector<32xf32>) {
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>, vector<32xf32>, vector<32xf32>) {
// CHECK: scf.if
// CHECK: } else {
// CHECK: %{{.*}}:12 = scf.for
// CHECK: %{{.*}}:2 = scf.for
// CHECK: %{{.*}}:8 = scf.for
func.func private @tails(%a: memref<?x?xf32>, %b: memref<3x?x32xf32>,
    %c: memref<?x70xf32>, %out: memref<?x70xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<?x?xf32> to tensor<?x?xf32>
  %tb = bufferization.to_tensor %b restrict : memref<3x?x32xf32> to tensor<3x?x32xf32>
  %tc = bufferization.to_tensor %c restrict : memref<?x70xf32> to tensor<?x70xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<?x?xf32>, tensor<3x?x32xf32>)
      outs(%tc : tensor<?x70xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x70xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<?x70xf32>, memref<?x70xf32>) -> ()
  return
}

// -----

// One row: several panels in a tile, so that memory is kept busy. Processors of
// narrow vectors fetch one stream best.
// CHECK-LABEL: func.func private @one_row
// CHECK: %{{.*}}:4 = scf.for
// CHECK-COUNT-4: vector.load
// CHECK: memref.load
// CHECK-NOT: memref.load
// CHECK-COUNT-4: vector.fma
// AVX2-LABEL: func.func private @one_row
// AVX2-COUNT-1: vector.fma {{.*}} : vector<32xf32>
// AVX2-NOT: vector.fma
// AVX2: return
func.func private @one_row(%a: memref<1x64xf32>, %b: memref<4x64x32xf32>,
    %out: memref<1x128xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1x64xf32> to tensor<1x64xf32>
  %tb = bufferization.to_tensor %b restrict : memref<4x64x32xf32> to tensor<4x64x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<1x64xf32>, tensor<4x64x32xf32>)
      outs(%f : tensor<1x128xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x128xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x128xf32>, memref<1x128xf32>) -> ()
  return
}

// -----

// Of many rows each tile of 6 fetches a part of the next two panels: 6 tiles,
// and 1,024 lines in 6 x 256 steps.
// CHECK-LABEL: func.func private @next_panel
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %{{.*}} {{.*}} : memref<16x256x32xf32> into memref<131072xf32>
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c6
// CHECK: scf.for %{{.*}} = %{{.*}} to %c256 step %c1
// CHECK: memref.prefetch %[[FLAT]][%{{.*}}], read, locality<2>, data
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-12: vector.fma
// CHECK-NOT: vector.fma
// CHECK: scf.yield
func.func private @next_panel(%a: memref<128x256xf32>, %b: memref<16x256x32xf32>,
    %out: memref<128x512xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<128x256xf32> to tensor<128x256xf32>
  %tb = bufferization.to_tensor %b restrict : memref<16x256x32xf32> to tensor<16x256x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<128x256xf32>, tensor<16x256x32xf32>)
      outs(%f : tensor<128x512xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<128x512xf32>, memref<128x512xf32>) -> ()
  return
}

// -----

// What is not a kernel is not touched.
// CHECK-LABEL: func.func @host
// CHECK: cpu.packed_matmul
func.func @host(%a: tensor<1x64xf32>, %b: tensor<4x64x32xf32>, %c: tensor<1x128xf32>) -> tensor<1x128xf32> {
  %m = cpu.packed_matmul ins(%a, %b : tensor<1x64xf32>, tensor<4x64x32xf32>)
      outs(%c : tensor<1x128xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x128xf32>
  return %m : tensor<1x128xf32>
}

// -----

#id = affine_map<(m, n) -> (m, n)>
#sum = affine_map<(m, n) -> (m)>

func.func private @reduction(%a: memref<1x64xf32>, %b: memref<4x64x32xf32>,
    %out: memref<1xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1x64xf32> to tensor<1x64xf32>
  %tb = bufferization.to_tensor %b restrict : memref<4x64x32xf32> to tensor<4x64x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<1x64xf32>, tensor<4x64x32xf32>)
      outs(%f : tensor<1x128xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x128xf32>
  %e1 = tensor.empty() : tensor<1xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1xf32>) -> tensor<1xf32>
  // expected-error @below {{is not elementwise, so it cannot follow a contraction in its kernel}}
  %r = linalg.generic {indexing_maps = [#id, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%m : tensor<1x128xf32>) outs(%f1 : tensor<1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %o : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<1xf32>, memref<1xf32>) -> ()
  return
}

// -----

// A result of 4 MB is not in the cache: each tile asks for the lines of the next
// while it multiplies, two lines of 16 elements for each row of two panels. The
// rows that fill no tile, four, ask for their own before.
// CHECK-LABEL: func.func private @large_result
// AVX2-LABEL: func.func private @large_result
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64 step %c4
// CHECK-COUNT-4: memref.prefetch %{{.*}}, write, locality<3>, data : memref<1048576xf32>
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-48: vector.fma
// CHECK-COUNT-16: memref.prefetch %{{.*}}, write, locality<3>, data : memref<1024x1024xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for
// CHECK: vector.fma
func.func private @large_result(%a: memref<1024x64xf32>, %b: memref<32x64x32xf32>, %out: memref<1024x1024xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1024x64xf32> to tensor<1024x64xf32>
  %tb = bufferization.to_tensor %b restrict : memref<32x64x32xf32> to tensor<32x64x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<1024x64xf32>, tensor<32x64x32xf32>)
      outs(%f : tensor<1024x1024xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1024x1024xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<1024x1024xf32>, memref<1024x1024xf32>) -> ()
  return
}

// -----

// Where lines are of an open length a tile asks for its own before it
// multiplies.
// CHECK-LABEL: func.func private @large_open_result
// AVX2-LABEL: func.func private @large_open_result
// CHECK: scf.for %{{.*}} = %{{.*}} step %c6
// CHECK-COUNT-12: memref.prefetch %{{.*}}, write, locality<3>, data : memref<1024x?xf32>
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-6: vector.fma
// CHECK-NOT: memref.prefetch
// CHECK: vector.maskedstore
func.func private @large_open_result(%a: memref<1024x64xf32>, %b: memref<?x64x32xf32>, %out: memref<1024x?xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1024x64xf32> to tensor<1024x64xf32>
  %tb = bufferization.to_tensor %b restrict : memref<?x64x32xf32> to tensor<?x64x32xf32>
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = memref.dim %out, %c1 : memref<1024x?xf32>
  %e = tensor.empty(%n) : tensor<1024x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x?xf32>) -> tensor<1024x?xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<1024x64xf32>, tensor<?x64x32xf32>)
      outs(%f : tensor<1024x?xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1024x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<1024x?xf32>, memref<1024x?xf32>) -> ()
  return
}

// -----

// Weights that come from memory, for an open number of rows: a row takes four
// panels at a time, and of few rows each step fetches a line of the next panel.
// CHECK-LABEL: func.func private @open_rows
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[M:.*]], %c1
// CHECK: scf.if %[[ONE]]
// CHECK: scf.parallel ({{.*}}) = (%c0) to (%c2)
// CHECK: scf.for {{.*}} = %c0 to %c256 step %c1
// CHECK-COUNT-4: vector.fma
// CHECK-NOT: vector.fma
// CHECK: } else {
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[M]], %c33
// CHECK: scf.if %[[FEW]]
// CHECK: scf.for {{.*}} = %c0 to %c256 step %c1
// CHECK-NEXT: arith.muli
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.prefetch
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-8: vector.fma
// CHECK: scf.for {{.*}} step %c6
// CHECK: scf.for {{.*}} = %c0 to %c256 step %c1
// CHECK: memref.prefetch
// CHECK-COUNT-12: vector.fma
// AVX2-LABEL: func.func private @open_rows
// AVX2: scf.if
// AVX2-NOT: memref.prefetch
// AVX2: vector.fma {{.*}} : vector<32xf32>
// AVX2: } else {
// AVX2: memref.prefetch
func.func private @open_rows(%a: memref<?x256xf32>, %b: memref<8x256x32xf32>, %out: memref<?x256xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<?x256xf32> to tensor<?x256xf32>
  %tb = bufferization.to_tensor %b restrict : memref<8x256x32xf32> to tensor<8x256x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = memref.dim %out, %c0 : memref<?x256xf32>
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x256xf32>) -> tensor<?x256xf32>
  %r = cpu.packed_matmul ins(%ta, %tb : tensor<?x256xf32>, tensor<8x256x32xf32>)
      outs(%f : tensor<?x256xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x256xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<?x256xf32>, memref<?x256xf32>) -> ()
  return
}

// -----

// Two chunks of 64 rows share a panel of 384 lines, of which each of their four
// blocks of 12 steps fetches its part of the next.
// CHECK-LABEL: func.func private @chunks_share_a_panel
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %{{.*}} to %c12 step %c1
// CHECK-COUNT-2: "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-8: memref.prefetch %{{.*}}, read, locality<2>, data
// CHECK-NOT: memref.prefetch
// CHECK: "llvm.x86.tdpbusd.internal"
func.func private @chunks_share_a_panel(%x: memref<128x768xi8>, %w: memref<24x192x128xi8>, %out: memref<128x768xi32>)
    attributes {sdx.kernel, cpu.plan = #cpu.matmul_plan<[<"amx_int8", rows = 128, tile_rows = 8, tile_columns = 32, chunk_tiles = 8, prefetch = near>]>, sdx.target = #cpu.target<int8 = amx>} {
  %tx = bufferization.to_tensor %x restrict : memref<128x768xi8> to tensor<128x768xi8>
  %tw = bufferization.to_tensor %w restrict : memref<24x192x128xi8> to tensor<24x192x128xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x768xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x768xi32>) -> tensor<128x768xi32>
  %p = cpu.packed_matmul ins(%tx, %tw : tensor<128x768xi8>, tensor<24x192x128xi8>) outs(%f : tensor<128x768xi32>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<128x768xi32>
  bufferization.materialize_in_destination %p in restrict writable %out : (tensor<128x768xi32>, memref<128x768xi32>) -> ()
  return
}

// -----

// Values that are observed are put behind each other on the stack, as many of a
// row as exist of 40 columns, and seen when there is no room for a tile and at
// the end of the task.
// CHECK-LABEL: func.func private @observed
// CHECK: scf.parallel
// CHECK-DAG: %[[SEEN:.*]] = memref.alloca() : memref<1x1024xf32>
// CHECK-DAG: %[[COUNT:.*]] = memref.alloca() : memref<index>
// CHECK: memref.store %c0, %[[COUNT]][]
// CHECK: scf.for
// CHECK: %[[LANES:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: vector.store %{{.*}}, %[[SEEN]][%c0, %[[FIRST:.*]]] :
// CHECK: %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[LANES]]
// CHECK: vector.store %{{.*}}, %[[SEEN]][%c0, %[[NEXT]]] :
// CHECK: sdx.observe %[[SEEN]][%c1, %{{.*}}] site 0 <range|bits> : memref<1x1024xf32>
// CHECK: memref.store %c0, %[[COUNT]][] : memref<index>{{[[:space:]]+}}scf.reduce
#row = affine_map<(m, n) -> (n)>
#id = affine_map<(m, n) -> (m, n)>
func.func private @observed(%a: memref<20x768xf32>, %b: memref<2x768x32xf32>,
    %bias: memref<40xf32>, %out: memref<20x40xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<20x768xf32> to tensor<20x768xf32>
  %tb = bufferization.to_tensor %b restrict : memref<2x768x32xf32> to tensor<2x768x32xf32>
  %tbias = bufferization.to_tensor %bias restrict : memref<40xf32> to tensor<40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20x40xf32>) -> tensor<20x40xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<20x768xf32>, tensor<2x768x32xf32>)
      outs(%f : tensor<20x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<20x40xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%m, %tbias : tensor<20x40xf32>, tensor<40xf32>) outs(%e : tensor<20x40xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<20x40xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<20x40xf32>, memref<20x40xf32>) -> ()
  sdx.observe %m site 0 <range|bits> : tensor<20x40xf32>
  return
}
