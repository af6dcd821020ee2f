// RUN: onnx-opt %s --nv-lower-loops --split-input-file --verify-diagnostics | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {

// The sum of a row is a value, and begins with the value of the fill.
// CHECK-LABEL: func.func private @sum(
// CHECK-SAME: %[[X:.+]]: memref<?x20xf32, #gpu.address_space<global>>, %[[Y:.+]]: memref
// CHECK: %[[ZERO:.+]] = arith.constant 0.0
// CHECK-NOT: memref.alloc
// CHECK: scf.parallel (%[[I:.+]]) =
// CHECK-NEXT: %[[SUM:.+]] = scf.for %[[K:.+]] = %{{.+}} iter_args(%[[ACC:.+]] = %[[ZERO]]) -> (f32) {
// CHECK-NEXT: %[[V:.+]] = memref.load %[[X]][%[[I]], %[[K]]]
// CHECK-NEXT: %[[A:.+]] = arith.addf %[[V]], %[[ACC]]
// CHECK-NEXT: scf.yield %[[A]]
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[SUM]], %[[Y]][%[[I]]]
// CHECK: {nv.step = "reduce"}
// CHECK-NOT: scf.parallel
// CHECK: return
func.func private @sum(%x: memref<?x20xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?x20xf32, #g> to tensor<?x20xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<?x20xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %out : f32
    linalg.yield %a : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}

// A warp has a task that asks whether something holds for one of many indices:
// each thread tests another one, and all go on from what one of them found.
// CHECK-LABEL: func.func private @any(
// CHECK: scf.parallel
// CHECK: scf.while
// CHECK: ^bb0(%[[FIRST:.+]]: index, %{{.+}}: i1):
// CHECK: %[[THREAD:.+]] = gpu.thread_id x
// CHECK: %[[OWN:.+]] = arith.addi %[[FIRST]], %[[THREAD]]
// CHECK: %[[AT:.+]] = arith.minsi %[[OWN]], %{{.+}}
// CHECK: memref.load %{{.+}}[%{{.+}}, %[[AT]]]
// CHECK: %[[NEXT:.+]] = arith.addi %[[FIRST]], %c32
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: %[[FOUND:.+]] = arith.trunci
// CHECK: scf.yield %[[NEXT]], %[[FOUND]]
// CHECK: nv.threads = 32 : i64
func.func private @any(%x: memref<6x100xf32, #g>, %y: memref<6xi8, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %no = arith.constant false
  %yes = arith.constant true
  %zero = arith.constant 0.0 : f32
  %0 = bufferization.to_tensor %x restrict : memref<6x100xf32, #g> to tensor<6x100xf32>
  %e = tensor.empty() : tensor<6xi8>
  %r = scf.forall (%task) in (6) shared_outs(%out = %e) -> (tensor<6xi8>) {
    %p = tensor.extract_slice %out[%task] [1] [1] : tensor<6xi8> to tensor<1xi8>
    %w:2 = scf.while (%i = %c0, %f = %no) : (index, i1) -> (index, i1) {
      %more = arith.cmpi slt, %i, %c100 : index
      %open = arith.xori %f, %yes : i1
      %on = arith.andi %more, %open : i1
      scf.condition(%on) %i, %f : index, i1
    } do {
    ^bb0(%i: index, %f: i1):
      %v = tensor.extract %0[%task, %i] : tensor<6x100xf32>
      %found = arith.cmpf olt, %v, %zero : f32
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %found : index, i1
    } attributes {sdx.any}
    %n = arith.extui %w#1 : i1 to i8
    %q = tensor.insert %n into %p[%c0] : tensor<1xi8>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %q into %out[%task] [1] [1] : tensor<1xi8> into tensor<6xi8>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<6xi8>, memref<6xi8, #g>) -> ()
  return
}

// A scalar that the device reads is read in a loop of one iteration, and then
// in each thread that uses it. Scalars of the host are computed there.
// CHECK-LABEL: func.func private @scalar(
// CHECK-SAME: %[[X:.+]]: memref<4xf32, {{.+}}>, %[[N:.+]]: i64, %[[Y:.+]]: memref
// CHECK: %[[PLACE:.+]] = memref.alloc() : memref<1xf32, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: %[[V:.+]] = memref.load %[[X]]
// CHECK: memref.store %[[V]], %[[PLACE]]
// CHECK: {nv.step = "scalars"}
// CHECK: %[[M:.+]] = arith.sitofp %[[N]] : i64 to f32
// CHECK: scf.parallel
// CHECK: %[[AGAIN:.+]] = memref.load %[[PLACE]]
// CHECK: arith.mulf %[[AGAIN]], %[[M]]
// CHECK: {nv.step = "elementwise"}
// CHECK: memref.dealloc %[[PLACE]]
func.func private @scalar(%x: memref<4xf32, #g>, %n: i64, %y: memref<4xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<4xf32, #g> to tensor<4xf32>
  %c2 = arith.constant 2 : index
  %v = tensor.extract %0[%c2] : tensor<4xf32>
  %m = arith.sitofp %n : i64 to f32
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %a = arith.mulf %v, %m : f32
    linalg.yield %a : f32
  } -> tensor<4xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<4xf32>, memref<4xf32, #g>) -> ()
  return
}

// A small temporary of a task is its variable, one of open size a piece of a
// buffer for all tasks.
// CHECK-LABEL: func.func private @temporaries(
// CHECK: %[[ALL:.+]] = memref.alloc(%{{.+}}) : memref<?xi8, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: memref.view %[[ALL]][%{{.+}}][%{{.+}}] : memref<?xi8, {{.+}}> to memref<?xf32
// CHECK: memref.alloca() : memref<8xf32
// CHECK: {nv.step = "tasks"}
// CHECK: memref.dealloc %[[ALL]]
func.func private @temporaries(%x: memref<6x?xf32, #g>, %y: memref<6xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %x, %c1 : memref<6x?xf32, #g>
  scf.parallel (%i) = (%c0) to (%c6) step (%c1) {
    %small = memref.alloc() : memref<8xf32, #g>
    %open = memref.alloc(%n) : memref<?xf32, #g>
    scf.for %k = %c0 to %n step %c1 {
      %v = memref.load %x[%i, %k] : memref<6x?xf32, #g>
      memref.store %v, %open[%k] : memref<?xf32, #g>
      %r = arith.remui %k, %c8 : index
      memref.store %v, %small[%r] : memref<8xf32, #g>
    }
    %a = memref.load %open[%c0] : memref<?xf32, #g>
    %b = memref.load %small[%c0] : memref<8xf32, #g>
    %c = arith.addf %a, %b : f32
    memref.store %c, %y[%i] : memref<6xf32, #g>
  }
  return
}

}

// -----

#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @size(%n: memref<1xindex, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.load %n[%c0] : memref<1xindex, #g>
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{needs a number on the host that the device computes, which is not supported}}
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    memref.store %zero, %y[%i] : memref<?xf32, #g>
  }
  return
}
}

// -----

#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @thread_size(%n: memref<6xindex, #g>, %y: memref<6xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%c6) step (%c1) {
    %m = memref.load %n[%i] : memref<6xindex, #g>
    // expected-error@+1 {{makes a temporary in each thread whose size is not known before}}
    %t = memref.alloc(%m) : memref<?xf32, #g>
    memref.store %zero, %t[%c0] : memref<?xf32, #g>
    %v = memref.load %t[%c0] : memref<?xf32, #g>
    memref.store %v, %y[%i] : memref<6xf32, #g>
  }
  return
}
}

// -----

// expected-error@+1 {{no 'sdx.target' says which device code is for}}
func.func private @nothing(%x: memref<4xf32>) attributes {sdx.kernel} {
  return
}
