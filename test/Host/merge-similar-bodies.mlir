// RUN: onnx-opt %s -split-input-file -sdx-merge-similar-bodies | FileCheck %s

// The bound of the loop and the stride outside of it differ: they are arguments
// of the first body, and its callers give each its own. The third grows its
// counter by another step in the innermost loop, and stays.

// CHECK-LABEL: llvm.func @a_par0(
// CHECK-SAME:    %[[BEGIN:.*]]: i64, %{{.*}}: i64, %[[X:.*]]: !llvm.ptr, %[[STRIDE:.*]]: i64, %[[OFFSET:.*]]: i64, %[[BOUND:.*]]: i64)
// CHECK:         llvm.mul %[[BEGIN]], %[[STRIDE]]
// CHECK:         llvm.getelementptr %{{.*}}[%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         llvm.icmp "slt" %{{.*}}, %[[BOUND]] : i64
llvm.func @a_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c64 = llvm.mlir.constant(64 : i64) : i64
  %c80 = llvm.mlir.constant(80 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %at = llvm.mul %begin, %c64 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %moved = llvm.getelementptr %row[16] : (!llvm.ptr) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c80 : i64
  llvm.cond_br %more, ^body, ^exit
^body:
  %element = llvm.getelementptr %moved[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %next = llvm.add %i, %c1 : i64
  llvm.br ^head(%next : i64)
^exit:
  llvm.return
}

// CHECK-NOT: @b_par0
llvm.func @b_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c96 = llvm.mlir.constant(96 : i64) : i64
  %at = llvm.mul %begin, %c96 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %moved = llvm.getelementptr %row[24] : (!llvm.ptr) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c96 : i64
  llvm.cond_br %more, ^body, ^exit
^body:
  %element = llvm.getelementptr %moved[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %next = llvm.add %i, %c1 : i64
  llvm.br ^head(%next : i64)
^exit:
  llvm.return
}

// CHECK: llvm.func @c_par0(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) {
llvm.func @c_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c2 = llvm.mlir.constant(2 : i64) : i64
  %c96 = llvm.mlir.constant(96 : i64) : i64
  %at = llvm.mul %begin, %c96 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %moved = llvm.getelementptr %row[24] : (!llvm.ptr) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c96 : i64
  llvm.cond_br %more, ^body, ^exit
^body:
  %element = llvm.getelementptr %moved[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %next = llvm.add %i, %c2 : i64
  llvm.br ^head(%next : i64)
^exit:
  llvm.return
}

// CHECK:     llvm.func @sdx_parallel_for_a_par0(i64, i64, !llvm.ptr, i64, i64, i64)
// CHECK-NOT: @sdx_parallel_for_b_par0(i64
// CHECK:     llvm.func @sdx_parallel_for_c_par0(i64, i64, !llvm.ptr)
llvm.func @sdx_parallel_for_a_par0(i64, i64, !llvm.ptr) attributes {sym_visibility = "private"}
llvm.func @sdx_parallel_for_b_par0(i64, i64, !llvm.ptr) attributes {sym_visibility = "private"}
llvm.func @sdx_parallel_for_c_par0(i64, i64, !llvm.ptr) attributes {sym_visibility = "private"}

// CHECK-LABEL: llvm.func @a(
// CHECK-DAG:     %[[C64:.*]] = llvm.mlir.constant(64 : i64)
// CHECK-DAG:     %[[C16:.*]] = llvm.mlir.constant(16 : i64)
// CHECK-DAG:     %[[C80:.*]] = llvm.mlir.constant(80 : i64)
// CHECK:         llvm.call @sdx_parallel_for_a_par0(%arg0, %arg0, %arg1, %[[C64]], %[[C16]], %[[C80]])
llvm.func @a(%n: i64, %x: !llvm.ptr) attributes {sdx.kernel} {
  llvm.call @sdx_parallel_for_a_par0(%n, %n, %x) : (i64, i64, !llvm.ptr) -> ()
  llvm.return
}
// CHECK-LABEL: llvm.func @b(
// CHECK-DAG:     %[[STRIDE:.*]] = llvm.mlir.constant(96 : i64)
// CHECK-DAG:     %[[C24:.*]] = llvm.mlir.constant(24 : i64)
// CHECK-DAG:     %[[BOUND:.*]] = llvm.mlir.constant(96 : i64)
// CHECK:         llvm.call @sdx_parallel_for_a_par0(%arg0, %arg0, %arg1, %[[STRIDE]], %[[C24]], %[[BOUND]])
llvm.func @b(%n: i64, %x: !llvm.ptr) attributes {sdx.kernel} {
  llvm.call @sdx_parallel_for_b_par0(%n, %n, %x) : (i64, i64, !llvm.ptr) -> ()
  llvm.return
}
// CHECK-LABEL: llvm.func @c(
// CHECK:         llvm.call @sdx_parallel_for_c_par0(%arg0, %arg0, %arg1)
llvm.func @c(%n: i64, %x: !llvm.ptr) attributes {sdx.kernel} {
  llvm.call @sdx_parallel_for_c_par0(%n, %n, %x) : (i64, i64, !llvm.ptr) -> ()
  llvm.return
}

// -----

// Memory on the stack has a known size.
// CHECK: llvm.func @a_par0(%{{.*}}: i64, %{{.*}}: i64) {
llvm.func @a_par0(%begin: i64, %end: i64) {
  %c64 = llvm.mlir.constant(64 : i64) : i64
  %x = llvm.alloca %c64 x f32 : (i64) -> !llvm.ptr
  llvm.store %begin, %x : i64, !llvm.ptr
  llvm.return
}
// CHECK: llvm.func @b_par0(%{{.*}}: i64, %{{.*}}: i64) {
llvm.func @b_par0(%begin: i64, %end: i64) {
  %c96 = llvm.mlir.constant(96 : i64) : i64
  %x = llvm.alloca %c96 x f32 : (i64) -> !llvm.ptr
  llvm.store %begin, %x : i64, !llvm.ptr
  llvm.return
}
llvm.func @sdx_parallel_for_a_par0(i64, i64) attributes {sym_visibility = "private"}
llvm.func @sdx_parallel_for_b_par0(i64, i64) attributes {sym_visibility = "private"}
