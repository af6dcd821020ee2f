// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-finalize-host | FileCheck %s

// CHECK-NOT: @k_par0(
llvm.func @k_par0(%begin: i64, %end: i64, %a: !llvm.ptr, %unused: i64, %n: i64) {
  %0 = llvm.getelementptr %a[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %begin, %0 : i64, !llvm.ptr
  llvm.return
}
// Captures that nothing reads are not stored.
// CHECK-LABEL: llvm.func internal @sdx_parallel_for_k_par0
// CHECK:         %[[ENV:.*]] = llvm.alloca {{.*}} !llvm.struct<(ptr, i64)>
// CHECK-COUNT-2: llvm.store
// CHECK:         %[[BODY:.*]] = llvm.mlir.addressof @k_par0_env
// CHECK:         llvm.call @sdx_rt_parallel_for(%arg0, %arg1, %[[BODY]], %[[ENV]])
llvm.func @sdx_parallel_for_k_par0(i64, i64, !llvm.ptr, i64, i64) attributes {sym_visibility = "private"}
// CHECK-LABEL: llvm.func hidden @k(
llvm.func @k(%n: i64, %a: !llvm.ptr) attributes {sdx.kernel} {
  // CHECK: llvm.call @sdx_rt_scratch(
  %m = llvm.call @malloc(%n) : (i64) -> !llvm.ptr
  llvm.call @sdx_parallel_for_k_par0(%n, %n, %a, %n, %n) : (i64, i64, !llvm.ptr, i64, i64) -> ()
  llvm.return
}
// CHECK-NOT:   @malloc
llvm.func @malloc(i64) -> !llvm.ptr
// CHECK-LABEL: llvm.func @sdx_main(%arg0: !llvm.ptr)
// CHECK-SAME:    sdx.host
llvm.func @main(%0: !llvm.ptr) {
  llvm.return
}
// The body reads its captures from the structure.
// CHECK-LABEL: llvm.func internal @k_par0_env(
// CHECK-SAME:    %[[BEGIN:.*]]: i64, %{{.*}}: i64, %[[GIVEN:.*]]: !llvm.ptr)
// CHECK-DAG:     %[[FIRST:.*]] = llvm.getelementptr %[[GIVEN]][0, 0]
// CHECK-DAG:     %[[SECOND:.*]] = llvm.getelementptr %[[GIVEN]][0, 1]
// CHECK-DAG:     %[[A:.*]] = llvm.load %[[FIRST]] : !llvm.ptr -> !llvm.ptr
// CHECK-DAG:     %[[N:.*]] = llvm.load %[[SECOND]] : !llvm.ptr -> i64
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[A]][%[[N]]]
// CHECK-NEXT:    llvm.store %[[BEGIN]], %[[AT]]

// -----

// expected-error @below {{must take the pointer that sdx-lower-host-ops makes of its arguments}}
llvm.func @main(%0: i64) {
  llvm.return
}

// -----

// The runtime learns which node the host program allocates for.
// CHECK: llvm.mlir.global internal constant @[[$NAME:sdx_node_[0-9]+]]("node 'expand'\00")
llvm.func @malloc(i64) -> !llvm.ptr
// CHECK-LABEL: llvm.func @sdx_main
// CHECK:         %[[NAME:.*]] = llvm.mlir.addressof @[[$NAME]]
// CHECK:         llvm.call @sdx_rt_alloc_for(%{{.*}}, %[[NAME]])
// CHECK:         llvm.call @sdx_rt_alloc(
llvm.func @main(%0: !llvm.ptr) {
  %n = llvm.load %0 : !llvm.ptr -> i64
  %a = llvm.call @malloc(%n) : (i64) -> !llvm.ptr loc("expand")
  %b = llvm.call @malloc(%n) : (i64) -> !llvm.ptr
  llvm.return
}
// A kernel allocates on many threads, for nobody in particular.
// CHECK-LABEL: llvm.func hidden @k
// CHECK:         llvm.call @sdx_rt_scratch(
llvm.func @k(%n: i64) attributes {sdx.kernel} {
  %m = llvm.call @malloc(%n) : (i64) -> !llvm.ptr loc("expand")
  llvm.return
}
