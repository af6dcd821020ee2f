// RUN: onnx-opt %s --nv-merge-launches --split-input-file | FileCheck %s

#device = #gpu.address_space<global>

// Two products of one activation are the blocks of one kernel, which choose
// between arguments. What reads both comes after it.
// CHECK-LABEL: func.func private @k0_copy_x2(
// CHECK-SAME: %[[X:[^:]+]]: memref<64xf32, #gpu.address_space<global>>, %[[V:[^:]+]]: memref<64xf32, #gpu.address_space<global>>, %[[W:[^:]+]]: memref<64xf32, #gpu.address_space<global>>,
// CHECK-SAME: %[[Y:[^:]+]]: memref<64xf32, #gpu.address_space<global>>, %[[Z:[^:]+]]: memref<64xf32, #gpu.address_space<global>>) attributes {sdx.kernel}
// CHECK: scf.parallel (%[[B:.*]]) = (%{{.*}}) to (%[[N:.*]]) step
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %[[B]], %[[HALF:.*]] : index
// CHECK: %[[BEGIN:.*]] = arith.select %[[FIRST]], %{{.*}}, %[[HALF]] : index
// CHECK: arith.subi %[[B]], %[[BEGIN]]
// CHECK: %[[F:.*]] = arith.select %[[FIRST]], %[[V]], %[[W]] : memref<64xf32, #gpu.address_space<global>>
// CHECK: %[[R:.*]] = arith.select %[[FIRST]], %[[Y]], %[[Z]] : memref<64xf32, #gpu.address_space<global>>
// CHECK: memref.load %[[X]]
// CHECK: memref.load %[[F]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: nv.threads = 32
// CHECK-NOT: func.func private @k0_copy(
// CHECK: func.func private @k1_add(
// CHECK-LABEL: func.func @main
// CHECK: sdx.call @k0_copy_x2(
// CHECK-NEXT: sdx.output_buffer
// CHECK-NEXT: sdx.call @k1_add(
// CHECK-NEXT: return
func.func private @k0_copy(%x: memref<64xf32, #device>, %w: memref<64xf32, #device>, %y: memref<64xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%b) = (%c0) to (%c2) step (%c1) {
    %t = gpu.thread_id x
    %0 = arith.muli %b, %c32 : index
    %i = arith.addi %0, %t : index
    %v = memref.load %x[%i] : memref<64xf32, #device>
    %u = memref.load %w[%i] : memref<64xf32, #device>
    %p = arith.mulf %v, %u : f32
    memref.store %p, %y[%i] : memref<64xf32, #device>
    scf.reduce
  } {nv.step = "copy", nv.threads = 32 : i64}
  return
}
func.func private @k1_add(%x: memref<64xf32, #device>, %y: memref<64xf32, #device>, %z: memref<64xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xf32, #device>
    %u = memref.load %y[%t] : memref<64xf32, #device>
    %s = arith.addf %v, %u : f32
    memref.store %s, %z[%t] : memref<64xf32, #device>
    scf.reduce
  } {nv.step = "add", nv.threads = 64 : i64}
  return
}
func.func @main(%x: memref<64xf32, #device>, %v: memref<64xf32, #device>, %w: memref<64xf32, #device>) {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %arena = sdx.arena : memref<512xi8, #device>
  %y = memref.view %arena[%c0][] : memref<512xi8, #device> to memref<64xf32, #device>
  sdx.call @k0_copy(%x, %v : memref<64xf32, #device>, memref<64xf32, #device>) outs(%y : memref<64xf32, #device>)
  %z = memref.view %arena[%c256][] : memref<512xi8, #device> to memref<64xf32, #device>
  sdx.call @k0_copy(%x, %w : memref<64xf32, #device>, memref<64xf32, #device>) outs(%z : memref<64xf32, #device>)
  %r = sdx.output_buffer 0 () : memref<64xf32, #device>
  sdx.call @k1_add(%y, %z : memref<64xf32, #device>, memref<64xf32, #device>) outs(%r : memref<64xf32, #device>)
  return
}

// -----

#device = #gpu.address_space<global>

// Different kernels are branches, which have the same shared memory. Nothing is
// merged with what it reads, or whose memory it writes.
// CHECK-LABEL: func.func private @k0_one_k1_two(
// CHECK: scf.parallel
// CHECK: %[[ALL:.*]] = nv.shared_memory : memref<256xi8, #gpu.address_space<workgroup>>
// CHECK: scf.if
// CHECK: memref.view %[[ALL]][%{{.*}}][] : {{.*}} to memref<128xi8, #gpu.address_space<workgroup>>
// CHECK: } else {
// CHECK: memref.view %[[ALL]][%{{.*}}][] : {{.*}} to memref<200xi8, #gpu.address_space<workgroup>>
// CHECK-NOT: nv.shared_memory
// CHECK-LABEL: func.func private @k0_one(
// CHECK-LABEL: func.func @main
// CHECK: sdx.call @k0_one_k1_two(
// CHECK: sdx.call @k0_one(
// CHECK: sdx.call @k1_two(
// CHECK: return
func.func private @k0_one(%x: memref<32xf32, #device>, %y: memref<32xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    %t = gpu.thread_id x
    %bytes = nv.shared_memory : memref<128xi8, #gpu.address_space<workgroup>>
    %s = memref.view %bytes[%c0][] : memref<128xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
    %v = memref.load %x[%t] : memref<32xf32, #device>
    memref.store %v, %s[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %u = memref.load %s[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %u, %y[%t] : memref<32xf32, #device>
    scf.reduce
  } {nv.threads = 32 : i64}
  return
}
func.func private @k1_two(%x: memref<32xf32, #device>, %y: memref<32xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    %t = gpu.thread_id x
    %bytes = nv.shared_memory : memref<200xi8, #gpu.address_space<workgroup>>
    %s = memref.view %bytes[%c0][] : memref<200xi8, #gpu.address_space<workgroup>> to memref<50xf32, #gpu.address_space<workgroup>>
    %v = memref.load %x[%t] : memref<32xf32, #device>
    memref.store %v, %s[%t] : memref<50xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %u = memref.load %s[%c1] : memref<50xf32, #gpu.address_space<workgroup>>
    memref.store %u, %y[%t] : memref<32xf32, #device>
    scf.reduce
  } {nv.threads = 32 : i64}
  return
}
func.func @main(%x: memref<32xf32, #device>) {
  %a = memref.alloc() : memref<32xf32, #device>
  %b = memref.alloc() : memref<32xf32, #device>
  sdx.call @k0_one(%x : memref<32xf32, #device>) outs(%a : memref<32xf32, #device>)
  sdx.call @k1_two(%x : memref<32xf32, #device>) outs(%b : memref<32xf32, #device>)
  sdx.call @k0_one(%b : memref<32xf32, #device>) outs(%a : memref<32xf32, #device>)
  sdx.call @k1_two(%x : memref<32xf32, #device>) outs(%b : memref<32xf32, #device>)
  memref.dealloc %a : memref<32xf32, #device>
  memref.dealloc %b : memref<32xf32, #device>
  return
}

// -----

#device = #gpu.address_space<global>

// What stands between two products of one activation and reads the first one's
// result comes behind both, and what it starts with as well.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<32xf32, {{.*}})
// CHECK: sdx.call @k0_one_x2(%[[X]] : {{.*}}) outs(%[[A:.*]], %[[C:.*]] : memref
// CHECK: sdx.call @k1_half_x2(%[[A]], %[[C]] :
// CHECK-NEXT: return
func.func private @k0_one(%x: memref<32xf32, #device>, %y: memref<32xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<32xf32, #device>
    memref.store %v, %y[%t] : memref<32xf32, #device>
    scf.reduce
  } {nv.threads = 32 : i64}
  return
}
func.func private @k1_half(%x: memref<32xf32, #device>, %y: memref<32xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%b) = (%c0) to (%c1) step (%c1) {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<32xf32, #device>
    %s = arith.addf %v, %v : f32
    memref.store %s, %y[%t] : memref<32xf32, #device>
    scf.reduce
  } {nv.threads = 64 : i64}
  return
}
func.func @main(%x: memref<32xf32, #device>) {
  %a = memref.alloc() : memref<32xf32, #device>
  %b = memref.alloc() : memref<32xf32, #device>
  sdx.call @k0_one(%x : memref<32xf32, #device>) outs(%a : memref<32xf32, #device>)
  sdx.call @k1_half(%a : memref<32xf32, #device>) outs(%b : memref<32xf32, #device>)
  %c = memref.alloc() : memref<32xf32, #device>
  %d = memref.alloc() : memref<32xf32, #device>
  sdx.call @k0_one(%x : memref<32xf32, #device>) outs(%c : memref<32xf32, #device>)
  sdx.call @k1_half(%c : memref<32xf32, #device>) outs(%d : memref<32xf32, #device>)
  return
}

// -----

#device = #gpu.address_space<global>

// Clusters of one kernel are followed by those of the other.
// CHECK-LABEL: func.func private @k0_copy_x2(
// CHECK: nv.cluster = 2 : i64, nv.step = "copy", nv.threads = 32
func.func private @k0_copy(%x: memref<64xf32, #device>, %y: memref<64xf32, #device>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  scf.parallel (%b) = (%c0) to (%c2) step (%c1) {
    %t = gpu.thread_id x
    %0 = arith.muli %b, %c32 : index
    %i = arith.addi %0, %t : index
    %v = memref.load %x[%i] : memref<64xf32, #device>
    memref.store %v, %y[%i] : memref<64xf32, #device>
    scf.reduce
  } {nv.cluster = 2 : i64, nv.step = "copy", nv.threads = 32 : i64}
  return
}
func.func @main(%x: memref<64xf32, #device>, %v: memref<64xf32, #device>) {
  %y = sdx.output_buffer 0 () : memref<64xf32, #device>
  sdx.call @k0_copy(%x : memref<64xf32, #device>) outs(%y : memref<64xf32, #device>)
  %z = sdx.output_buffer 1 () : memref<64xf32, #device>
  sdx.call @k0_copy(%v : memref<64xf32, #device>) outs(%z : memref<64xf32, #device>)
  return
}
