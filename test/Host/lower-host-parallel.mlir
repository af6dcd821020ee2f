// RUN: onnx-opt %s -sdx-lower-host-parallel -canonicalize | FileCheck %s

// The body's function gets a range of the linearised iterations, and nested
// parallel loops become sequential. Constants are cloned, not captured.

// CHECK-LABEL: func.func private @k_par0
// CHECK-SAME:    (%[[BEGIN:.*]]: index, %[[END:.*]]: index, %{{.*}}: memref<?x8xf32>
// CHECK:         scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:           arith.remui %[[I]], %c4
// CHECK:           arith.divui %[[I]], %c4
// CHECK-NOT:       scf.parallel
// CHECK:           scf.for
// CHECK:             memref.store
// CHECK:       func.func private @sdx_parallel_for_k_par0(index, index,
// CHECK-LABEL: func.func private @k(
// CHECK:         %[[N:.*]] = arith.muli %{{.*}}, %c4
// CHECK:         call @sdx_parallel_for_k_par0(%[[N]], %{{.*}}, %arg0
func.func private @k(%a: memref<?x8xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %d = memref.dim %a, %c0 : memref<?x8xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%d, %c8) step (%c1, %c2) {
    scf.parallel (%k) = (%c0) to (%c2) step (%c1) {
      %at = arith.addi %j, %k : index
      memref.store %zero, %a[%i, %at] : memref<?x8xf32>
    }
  }
  return
}

// A buffer of each iteration serves a whole range; stack slots go to the entry.
// CHECK-LABEL: func.func private @buffers_par0
// CHECK:         memref.alloca
// CHECK:         memref.alloc(
// CHECK:         scf.for
// CHECK-NOT:       memref.alloc
// CHECK:         }
// CHECK:         memref.dealloc
func.func private @buffers(%a: memref<?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = memref.dim %a, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%d) step (%c1) {
    %heap = memref.alloc(%d) : memref<?xf32>
    %stack = memref.alloca() : memref<4xf32>
    %x = memref.load %a[%i] : memref<?xf32>
    memref.store %x, %stack[%c0] : memref<4xf32>
    memref.store %x, %heap[%i] : memref<?xf32>
    %z = memref.load %stack[%c1] : memref<4xf32>
    %w = memref.load %heap[%c0] : memref<?xf32>
    %y = arith.addf %z, %w : f32
    memref.store %y, %a[%i] : memref<?xf32>
    memref.dealloc %heap : memref<?xf32>
  }
  return
}

// How many threads there are is known when the kernel runs.
// CHECK-LABEL: func.func private @threads
// CHECK: %[[N:.*]] = call @sdx_rt_threads() : () -> index
// CHECK: memref.store %[[N]]
func.func private @threads(%a: memref<1xindex>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %n = sdx.thread_count : index
  memref.store %n, %a[%c0] : memref<1xindex>
  return
}

// A row of 32 registers takes some 256 cycles to be read and written; what is worth a hand-over, 20,000 cycles, is 78 of them.
// CHECK-LABEL: func.func private @copy(
// CHECK:         call @sdx_parallel_for_copy_par0(%c640, %c78,
func.func private @copy(%a: memref<640x512xf32>, %b: memref<640x512xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c512 = arith.constant 512 : index
  %c640 = arith.constant 640 : index
  scf.parallel (%i) = (%c0) to (%c640) step (%c1) {
    scf.for %j = %c0 to %c512 step %c16 {
      %x = vector.load %a[%i, %j] : memref<640x512xf32>, vector<16xf32>
      vector.store %x, %b[%i, %j] : memref<640x512xf32>, vector<16xf32>
    }
  }
  return
}

// Where sizes are open, positions are counted: a division takes as long as a
// short iteration.
// CHECK-LABEL: func.func private @open_sizes_par0
// CHECK:         %[[COLUMN:.*]] = arith.remui %arg0, %[[COLUMNS:[0-9]+]] : index
// CHECK:         %[[ROW:.*]] = arith.divui %arg0, %[[COLUMNS]] : index
// CHECK:         scf.for %{{.*}} = %arg0 to %arg1 step %{{[a-z0-9]+}} iter_args(%[[I:.*]] = %[[ROW]], %[[J:.*]] = %[[COLUMN]])
// CHECK-NOT:       arith.divui
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[J]], %c1
// CHECK:           %[[WRAPS:.*]] = arith.cmpi eq, %[[NEXT]], %{{.*}}
// CHECK:           %[[NEXT_J:.*]] = arith.select %[[WRAPS]], %c0{{.*}}, %[[NEXT]]
// CHECK:           %[[BELOW:.*]] = arith.addi %[[I]], %c1
// CHECK:           %[[NEXT_I:.*]] = arith.select %[[WRAPS]], %[[BELOW]], %[[I]]
// CHECK:           scf.yield %[[NEXT_I]], %[[NEXT_J]]
func.func private @open_sizes(%a: memref<?x?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %m = memref.dim %a, %c1 : memref<?x?xf32>
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
    memref.store %zero, %a[%i, %j] : memref<?x?xf32>
  }
  return
}
