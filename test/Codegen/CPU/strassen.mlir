// RUN: onnx-opt %s -split-input-file -sdx-cpu-lower-contractions -canonicalize -cse | FileCheck %s
// RUN: onnx-opt %s -split-input-file -sdx-cpu-lower-contractions=vector-bits=128 | FileCheck %s --check-prefix=SSE

// Where threads can share it, seven products of halves: the first two and the
// last of the weights themselves, the others with sums.
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
// CHECK: memref.subview %[[B]][%{{.*}}, 0, 0] [2, 256, 32] [1, 1, 1]
// CHECK: memref.subview %[[A]][%{{.*}}, 0] [6, 256] [1, 1]
// Weights that the next phase wants go to the L2 cache.
// CHECK: scf.for {{.*}} to %c256 step %c16
// CHECK-COUNT-2: memref.prefetch %[[B]]{{.*}} locality<2>
// CHECK: scf.for {{.*}} step %c4
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// CHECK: memref.subview %[[B]][%{{.*}}, 256, 0] [2, 256, 32] [1, 1, 1]
// CHECK: memref.subview %[[A]][%{{.*}}, 256] [6, 256] [1, 1]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// The first tile makes the sum of columns that its product takes,
// CHECK: scf.for {{.*}} step %c4
// CHECK-COUNT-2: vector.load %{{.*}} : memref<2x256x32xf32
// CHECK: %[[T1:.*]] = arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store %[[T1]], %[[SUM]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// or, if it does not go by way of sums, no tile does.
// CHECK: } else {
// CHECK: scf.for {{.*}} to %c256 step %c1
// CHECK: arith.subf {{.*}} : vector<32xf32>
// CHECK-NEXT: vector.store {{.*}} %[[SUM]]
// The others load it.
// CHECK: scf.for {{.*}} step %c4
// CHECK-NEXT: vector.load %[[SUM]]
// CHECK-NEXT: vector.load %[[SUM]]
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
// CHECK-COUNT-288: vector.fma {{.*}} : vector<32xf32>
// The last product.
// CHECK-COUNT-48: vector.fma {{.*}} : vector<32xf32>
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
  %m = sdx.packed_matmul ins(%ta, %tb : tensor<240x512xf32>, tensor<16x512x32xf32>)
      outs(%f : tensor<240x512xf32>) {strassen = 512 : i64} -> tensor<240x512xf32>
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
  %m = sdx.packed_matmul ins(%ta, %tb : tensor<47x512xf32>, tensor<16x512x32xf32>)
      outs(%f : tensor<47x512xf32>) {strassen = 512 : i64} -> tensor<47x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<47x512xf32>, memref<47x512xf32>) -> ()
  return
}
