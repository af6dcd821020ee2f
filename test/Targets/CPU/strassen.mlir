// RUN: onnx-opt %s -split-input-file -cpu-lower-contractions -canonicalize -cse | FileCheck %s
// RUN: onnx-opt %s --target=nehalem -split-input-file -cpu-lower-contractions | FileCheck %s --check-prefix=SSE

// Where threads can share it, seven products of halves: one loop of six phases,
// the first two of rows of the upper half as such and of weights as such, the
// others of sums; then the last.
// CHECK-LABEL: func.func private @strassen
// CHECK-SAME: (%[[A:.*]]: memref<240x512xf32>, %[[B:.*]]: memref<16x512x32xf32>, %[[OUT:.*]]: memref<240x512xf32>)
// CHECK: %[[THREADS:.*]] = sdx.thread_count : index
// CHECK: arith.muli %{{.*}}, %[[THREADS]]
// CHECK: %[[PAYS:[0-9]+]] = arith.cmpi slt, %{{.*}}, %c634880
// CHECK-NEXT: scf.if %[[PAYS]]
// CHECK: %[[SUMS:.*]] = memref.alloc({{.*}} : memref<?x5x120x256xf32>
// CHECK: %[[DIRECT:.*]] = memref.alloc({{.*}} : memref<?x20xi1>
// CHECK: %[[COLUMNS:.*]] = memref.alloc({{.*}} : memref<?x1x2x256x32xf32>
// Each thread has a part, one of whose groups of panels it takes at a time, and
// then what others have left.
// CHECK: %[[TAKEN:.*]] = memref.alloc({{.*}} : memref<?x8xi64>
// CHECK: %[[HELD:.*]] = memref.alloc({{.*}} : memref<?x8xi64>
// CHECK: scf.parallel (%[[SELF:.*]]) =
// CHECK: scf.for
// CHECK: %[[PART:.*]] = arith.remui
// CHECK: scf.for
// CHECK: %[[NEXT:.*]] = memref.atomic_rmw addi %{{.*}}, %[[TAKEN]][%[[PART]], %c0]
// CHECK: scf.if
// CHECK: memref.load %[[HELD]][%[[SELF]], %c0]
// CHECK: %[[SUM:.*]] = memref.subview %[[COLUMNS]]
// The sums of rows, and whether they are of the same size.
// CHECK: arith.maxui
// CHECK: vector.reduction <maxui>
// CHECK: memref.store %{{.*}} : memref<20xi1,
// CHECK: scf.for %[[PHASE:.*]] = %c0 to %c6 step %c1 {
// CHECK: %[[IS_OF_ROWS:.*]] = arith.cmpi slt, %[[PHASE]], %c2
// If the first tile does not go by way of sums, the sum of columns is made
// before,
// CHECK: memref.subview %[[B]][%{{.*}}, %{{.*}}, 0] [2, 256, 32] [1, 1, 1]
// CHECK: memref.subview %[[B]][%{{.*}}, %{{.*}}, 0] [2, 256, 32] [1, 1, 1]
// CHECK: scf.for {{.*}} to %c256 step %c1 {
// CHECK: vector.load %[[SUM]]
// CHECK: arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store {{.*}} %[[SUM]]
// CHECK: } else {
// CHECK: scf.for {{.*}} to %c256 step %c1 {
// CHECK: arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store {{.*}} %[[SUM]]
// A tile begins with zeros or with a state that was kept.
// CHECK: scf.if %{{.*}} -> (vector<32xf32>, {{.*}}) {
// CHECK-COUNT-12: vector.load
// CHECK: } else {
// CHECK-NEXT: scf.yield
// The first one makes the sum of columns that its product takes: of weights and
// what the phase before has made,
// CHECK: scf.for {{.*}} to %c16 step %c1 iter_args
// CHECK-COUNT-2: memref.prefetch %[[B]]{{.*}} locality<2>
// CHECK: scf.for {{.*}} step %c4
// CHECK: vector.load %[[SUM]]
// CHECK-NEXT: %[[T:.*]] = arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store %[[T]], %[[SUM]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// or of weights.
// CHECK: } else {
// CHECK: scf.for {{.*}} step %c4
// CHECK-COUNT-2: vector.load %{{.*}} : memref<2x256x32xf32
// CHECK-NEXT: %[[T:.*]] = arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store %[[T]], %[[SUM]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// The others load it,
// CHECK: scf.for {{.*}} step %c4
// CHECK-NEXT: vector.load %[[SUM]]
// CHECK-NEXT: vector.load %[[SUM]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// or weights as such, and rows as such or sums.
// CHECK: memref.subview %[[B]][%{{.*}}, %{{.*}}, 0] [2, 256, 32] [1, 1, 1]
// CHECK: scf.if %[[IS_OF_ROWS]]
// CHECK: memref.subview %[[A]][%{{.*}}, %{{.*}}] [6, 256] [1, 1]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// CHECK: } else {
// CHECK-NOT: memref.prefetch %[[OUT]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// Tiles that do not go by way of sums are multiplied directly, once, and the
// last product begins with a state and fetches the results.
// CHECK: scf.for {{.*}} to %c512 step %c1
// CHECK-COUNT-12: vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT: vector.fma
// CHECK-COUNT-12: vector.load
// CHECK-NOT: vector.fma
// CHECK: memref.prefetch %[[OUT]]{{.*}} write
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// CHECK-NOT: vector.fma
// CHECK-NOT: mask
// Too many threads for so few columns take all of it directly.
// CHECK: } else {
// CHECK: scf.parallel
// CHECK: vector.fma
// SSE-LABEL: func.func private @strassen
// SSE-NOT: sdx.thread_count
func.func private @strassen(%a: memref<240x512xf32>, %b: memref<16x512x32xf32>,
    %out: memref<240x512xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<240x512xf32> to tensor<240x512xf32>
  %tb = bufferization.to_tensor %b restrict : memref<16x512x32xf32> to tensor<16x512x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<240x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<240x512xf32>) -> tensor<240x512xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<240x512xf32>, tensor<16x512x32xf32>)
      outs(%f : tensor<240x512xf32>) {strassen = 512 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<240x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<240x512xf32>, memref<240x512xf32>) -> ()
  return
}

// -----

// Few rows are not worth the sums.
// CHECK-LABEL: func.func private @few_rows
// CHECK-NOT: sdx.thread_count
func.func private @few_rows(%a: memref<47x512xf32>, %b: memref<16x512x32xf32>,
    %out: memref<47x512xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<47x512xf32> to tensor<47x512xf32>
  %tb = bufferization.to_tensor %b restrict : memref<16x512x32xf32> to tensor<16x512x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<47x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<47x512xf32>) -> tensor<47x512xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<47x512xf32>, tensor<16x512x32xf32>)
      outs(%f : tensor<47x512xf32>) {strassen = 512 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<47x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<47x512xf32>, memref<47x512xf32>) -> ()
  return
}

// -----

// Of an open number of rows those that are too few go directly: 48 of them are
// a chunk, whose tiles fetch the next panel.
// CHECK-LABEL: func.func private @open_rows
// CHECK: sdx.thread_count
// CHECK: %[[ENOUGH:.*]] = arith.cmpi sgt, %{{.*}}, %c47
// CHECK: %[[PAYS:.*]] = arith.andi %{{.*}}, %[[ENOUGH]]
// CHECK: scf.if %[[PAYS]] {
// CHECK: memref.atomic_rmw
// CHECK: } else {
// CHECK: scf.parallel
// CHECK: arith.muli %{{.*}}, %c48
func.func private @open_rows(%a: memref<?x512xf32>, %b: memref<64x512x32xf32>,
    %out: memref<?x2048xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<?x512xf32> to tensor<?x512xf32>
  %tb = bufferization.to_tensor %b restrict : memref<64x512x32xf32> to tensor<64x512x32xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %rows = memref.dim %out, %c0 : memref<?x2048xf32>
  %e = tensor.empty(%rows) : tensor<?x2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2048xf32>) -> tensor<?x2048xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<?x512xf32>, tensor<64x512x32xf32>)
      outs(%f : tensor<?x2048xf32>) {strassen = 512 : i64, packing = #cpu.packing<f32, panel = 32>} -> tensor<?x2048xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<?x2048xf32>, memref<?x2048xf32>) -> ()
  return
}
