// RUN: onnx-opt %s --nv-outline-kernels --split-input-file --verify-diagnostics | FileCheck %s

#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {

// Sizes that no address hangs on and constants are not passed, i1 is a byte, and
// a buffer with strides passes those that are open.
// CHECK-LABEL: func.func private @k(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x4xf32, {{[^:]+}}>, %[[P:[^:]+]]: memref<?x4xf32, strided<[?, 1], offset: 8>, {{[^:]+}}>, %[[F:[^:]+]]: i1
// CHECK: %[[BYTE:.+]] = arith.extui %[[F]] : i1 to i8
// CHECK: %[[BLOCKS:.+]] = arith.ceildivui %{{.+}}, %c256
// CHECK: sdx.launch "k_0_first" blocks(%[[BLOCKS]], %{{.+}}, %{{.+}}) threads [256, 1, 1]
// CHECK-SAME: (%[[X]], %[[BYTE]], %[[P]], %[[STRIDE:.+]]#0, %{{.+}} : memref
// CHECK: sdx.failure_record
// CHECK: sdx.launch "k_1_second" blocks(%[[ONE:.+]], %{{.+}}, %{{.+}})
// CHECK-NOT: scf.parallel
// CHECK: gpu.module @device
// CHECK: gpu.func @k_0_first(%{{.+}}: !llvm.ptr<1> {llvm.align = 16 : i64}, %{{.+}}: i8, %{{.+}}: !llvm.ptr<1>, %{{.+}}: index, %{{.+}}: index) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: nv.node = "node 'a' (Add)"
// CHECK-SAME: nvvm.minctasm = 1 : i32
// CHECK: llvm.getelementptr %{{.+}}[%{{.+}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: %[[BLOCK:.+]] = gpu.block_id x
// CHECK: %[[THREAD:.+]] = gpu.thread_id x
// CHECK: %[[AT:.+]] = arith.addi
// CHECK: arith.cmpi ult, %[[AT]]
// CHECK: scf.if
// CHECK: arith.remui %[[AT]], %c4
// CHECK: memref.load %{{.+}} : memref<?x4xf32>
// CHECK: gpu.func @k_1_second({{.*}}!llvm.ptr<1> {{{.*}}nv.failure_record}
// CHECK: sdx.check
func.func private @k(%x: memref<?x4xf32, #g>, %p: memref<?x4xf32, strided<[?, 1], offset: 8>, #g>, %f: i1) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32, #g>
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c4) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x4xf32, #g>
    %s = arith.select %f, %v, %zero : f32
    memref.store %s, %p[%i, %j] : memref<?x4xf32, strided<[?, 1], offset: 8>, #g>
  } {nv.step = "first"} loc(fused<"node 'a' (Add)">["a"])
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    sdx.check %f, "node 'g' (Gather): index {0} is out of range" (%i)
  } {nv.step = "second"}
  return
}

}

// -----

#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {

// A size that the addresses of two buffers hang on is passed once.
// CHECK-LABEL: func.func private @sizes(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x?xf32, {{[^:]+}}>, %[[Y:[^:]+]]: memref
// CHECK: sdx.launch "sizes"
// CHECK-SAME: (%[[X]], %[[N:.+]], %[[Y]], %[[M:.+]], %{{.+}} : memref<?x?xf32, {{.+}}>, index, memref<?x?xf32, {{.+}}>, index, index)
func.func private @sizes(%x: memref<?x?xf32, #g>, %y: memref<?x?xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32, #g>
  %n = memref.dim %x, %c1 : memref<?x?xf32, #g>
  scf.parallel (%i, %j) = (%c0, %c0) to (%m, %n) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : memref<?x?xf32, #g>
    memref.store %v, %y[%i, %j] : memref<?x?xf32, #g>
  }
  return
}

}

// -----

module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @of_host(%x: memref<4xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{uses a buffer of type 'memref<4xf32>', to which the device has no access}}
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    memref.store %zero, %x[%i] : memref<4xf32>
  }
  return
}
}

// -----

// A tensor map is described by the host, in words that come before all other
// arguments; the kernel has it as a parameter in place.
// CHECK-LABEL: func.func private @mapped(
// CHECK-SAME: %[[X:[^:]+]]: memref<?x64xf16, {{[^:]+}}>, %[[Y:[^:]+]]: memref<4xf32
// CHECK: %[[ADDRESS:.+]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[WORDS:.+]] = vector.from_elements {{.+}} : vector<16xi64>
// CHECK: sdx.launch "mapped" blocks(%{{.+}}) threads [128, 1, 1](%[[WORDS]], %[[Y]] : vector<16xi64>, memref<4xf32
// CHECK: gpu.func @mapped(%[[MAP:.+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>}, %{{.+}}: !llvm.ptr<1> {llvm.align = 16 : i64}) kernel
// CHECK: llvm.load %[[MAP]]
#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @mapped(%x: memref<?x64xf16, #g>, %y: memref<4xf32, #g>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x64xf16, #g>
  %map = nv.tensor_map %x sizes(%c64, %n) box [64, 8] swizzle 128 : memref<?x64xf16, #g>
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
    %f = llvm.load %map : !llvm.ptr -> f32
    memref.store %f, %y[%i] : memref<4xf32, #g>
    scf.reduce
  } {nv.threads = 128 : i64}
  return
}
}

// -----

// From compute capability 9.0 on a kernel may begin before the one before it
// has ended: it waits for that first.
// CHECK: gpu.module @device attributes {nv.waits} {
// CHECK: gpu.func @early(
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK: memref.store
module attributes {sdx.target = #nv.target<sm = 90>} {
  func.func private @early(%x: memref<64xf32, #gpu.address_space<global>>) attributes {sdx.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      memref.store %zero, %x[%i] : memref<64xf32, #gpu.address_space<global>>
      scf.reduce
    }
    return
  }
}

// -----

// CHECK: gpu.module @device {
// CHECK-NOT: griddepcontrol
module attributes {sdx.target = #nv.target<sm = 89>} {
  func.func private @late(%x: memref<64xf32, #gpu.address_space<global>>) attributes {sdx.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      memref.store %zero, %x[%i] : memref<64xf32, #gpu.address_space<global>>
      scf.reduce
    }
    return
  }
}

// -----

// What a kernel asks for before it is needed it asks for before it waits, in
// each of its branches.
// CHECK-LABEL: gpu.func @asking(
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: scf.if
// CHECK: nvvm.prefetch level = L2
// CHECK: nvvm.griddepcontrol wait
// CHECK: memref.store
// CHECK: else
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK: memref.store
// CHECK-NOT: nvvm.griddepcontrol
// CHECK: gpu.return
module attributes {sdx.target = #nv.target<sm = 90>} {
  func.func private @asking(%x: memref<64xf32, #gpu.address_space<global>>) attributes {sdx.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
      %isFirst = arith.cmpi slt, %i, %c1 : index
      scf.if %isFirst {
        %address = memref.extract_aligned_pointer_as_index %x : memref<64xf32, #gpu.address_space<global>> -> index
        %word = arith.index_cast %address : index to i64
        %p = llvm.inttoptr %word : i64 to !llvm.ptr<1>
        nvvm.prefetch level = L2, %p : !llvm.ptr<1>
        memref.store %zero, %x[%c0] : memref<64xf32, #gpu.address_space<global>>
      } else {
        memref.store %zero, %x[%c1] : memref<64xf32, #gpu.address_space<global>>
      }
      scf.reduce
    } {nv.threads = 32 : i64}
    return
  }
}
