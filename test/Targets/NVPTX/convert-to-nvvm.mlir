// RUN: onnx-opt %s --pass-pipeline="builtin.module(gpu.module(nv-convert-to-nvvm,canonicalize))" --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: gpu.module @device attributes {nv.messages = [{kind = 1 : i64, text = "node 'g' (Gather): index {0} is below {1}"}]}
gpu.module @device {

// The thread that sets the first word writes the others; all that fail end.
// CHECK-LABEL: llvm.func @check(
// CHECK-SAME: %[[RECORD:[^:]+]]: !llvm.ptr<1>,
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 256, 1, 1>
// CHECK: llvm.cond_br
// CHECK: %[[OLD:.+]] = llvm.cmpxchg %[[RECORD]], %{{.+}}, %{{.+}} monotonic monotonic : !llvm.ptr<1>, i64
// CHECK: %[[FIRST:.+]] = llvm.extractvalue %[[OLD]][1]
// CHECK: llvm.cond_br %[[FIRST]]
// CHECK: llvm.store %{{.+}}, %{{.+}} : i64, !llvm.ptr<1>
// CHECK: llvm.store %{{.+}}, %{{.+}} : i64, !llvm.ptr<1>
// CHECK: llvm.store %{{.+}}, %{{.+}} : i64, !llvm.ptr<1>
// CHECK: nvvm.exit
// CHECK: llvm.intr.sqrt
// CHECK: llvm.return
gpu.func @check(%record: !llvm.ptr<1> {nv.failure_record}, %n: index, %x: f32, %p: !llvm.ptr<1>) kernel
    attributes {known_block_size = array<i32: 256, 1, 1>} {
  %i = gpu.thread_id x
  %ok = arith.cmpi ult, %i, %n : index
  sdx.check %ok, "node 'g' (Gather): index {0} is below {1}" (%i, %n) as invalid_argument
  %r = math.sqrt %x : f32
  llvm.store %r, %p : f32, !llvm.ptr<1>
  gpu.return
}

}

// -----

// A parameter in place stays one, and instructions without an intrinsic become
// text.
gpu.module @device {
// CHECK-LABEL: llvm.func @in_place(
// CHECK-SAME: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %{{.+}}: !llvm.ptr<1>
// CHECK: llvm.inline_asm {{.*}}mbarrier.try_wait.parity
gpu.func @in_place(%map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>}, %p: !llvm.ptr<1>,
                   %barrier: !llvm.ptr<3>, %phase: i32) kernel {
  nvvm.mbarrier.try_wait.parity %barrier, %phase, %phase : !llvm.ptr<3>, i32, i32
  %r = llvm.load %map : !llvm.ptr -> f32
  llvm.store %r, %p : f32, !llvm.ptr<1>
  gpu.return
}
}

// -----

gpu.module @device {
gpu.func @unknown(%x: f32, %p: !llvm.ptr<1>) kernel {
  // expected-error@+1 {{is a function that no instruction computes}}
  %r = math.erf %x : f32
  llvm.store %r, %p : f32, !llvm.ptr<1>
  gpu.return
}
}

// -----

gpu.module @device {
gpu.func @no_record(%ok: i1) kernel {
  // expected-error@+1 {{is in a kernel that gets no failure record}}
  sdx.check %ok, "no"
  gpu.return
}
}
