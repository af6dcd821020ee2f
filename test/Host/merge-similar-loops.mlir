// RUN: onnx-opt %s -sdx-merge-similar-loops=min-ops=8 | FileCheck %s
// RUN: onnx-opt %s -sdx-merge-similar-loops | FileCheck %s --check-prefix=SHORT

// Two bodies with the same loops over other numbers of rows, of which one also
// writes something else behind them: the loops become a function, which takes
// the address that it reads and writes, the row that each begins with, computes
// the address of the first row anew, and takes what differs.
// SHORT-NOT: llvm.func @a_par0_loop

// CHECK-LABEL: llvm.func @a_par0_loop(
// CHECK-SAME:    %[[X:.*]]: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[STRIDE:.*]]: i64, %[[ROWS:.*]]: i64)
// CHECK-SAME:    attributes {no_inline}
// CHECK:         %[[AT:.*]] = llvm.mul %[[BEGIN]], %[[STRIDE]]
// CHECK:         %[[ROW:.*]] = llvm.getelementptr %[[X]][%[[AT]]]
// CHECK:         llvm.br ^[[HEAD:.*]](%{{.*}} : i64)
// CHECK:       ^[[HEAD]](%[[I:.*]]: i64):
// CHECK:         llvm.icmp "slt" %[[I]], %[[ROWS]]
// CHECK:         llvm.return

// CHECK-LABEL: llvm.func @a_par0(
// CHECK-SAME:    %[[BEGIN:.*]]: i64, %{{.*}}: i64, %[[X:.*]]: !llvm.ptr)
// CHECK:         llvm.br ^[[CALL:.*]]
// CHECK-NEXT:  ^[[CALL]]:
// CHECK-NEXT:    %[[STRIDE:.*]] = llvm.mlir.constant(64 : i64)
// CHECK-NEXT:    %[[ROWS:.*]] = llvm.mlir.constant(80 : i64)
// CHECK:         llvm.call @a_par0_loop(%[[X]], %[[BEGIN]], %[[STRIDE]], %[[ROWS]])
// CHECK-NEXT:    llvm.br ^[[EXIT:.*]]
// CHECK-NEXT:  ^[[EXIT]]:
// CHECK-NEXT:    llvm.return
llvm.func @a_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c16 = llvm.mlir.constant(16 : i64) : i64
  %c64 = llvm.mlir.constant(64 : i64) : i64
  %c80 = llvm.mlir.constant(80 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %at = llvm.mul %begin, %c64 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c80 : i64
  llvm.cond_br %more, ^inner(%c0 : i64), ^exit
^inner(%j: i64):
  %left = llvm.icmp "slt" %j, %c16 : i64
  llvm.cond_br %left, ^body, ^next
^body:
  %k = llvm.add %i, %j : i64
  %element = llvm.getelementptr %row[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %j1 = llvm.add %j, %c1 : i64
  llvm.br ^inner(%j1 : i64)
^next:
  %i1 = llvm.add %i, %c1 : i64
  llvm.br ^head(%i1 : i64)
^exit:
  llvm.return
}

// CHECK-LABEL: llvm.func @b_par0(
// CHECK:         llvm.call @a_par0_loop(
// CHECK-NOT:     llvm.icmp
// CHECK:         llvm.store
llvm.func @b_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c16 = llvm.mlir.constant(16 : i64) : i64
  %c96 = llvm.mlir.constant(96 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %at = llvm.mul %begin, %c96 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c96 : i64
  llvm.cond_br %more, ^inner(%c0 : i64), ^exit
^inner(%j: i64):
  %left = llvm.icmp "slt" %j, %c16 : i64
  llvm.cond_br %left, ^body, ^next
^body:
  %k = llvm.add %i, %j : i64
  %element = llvm.getelementptr %row[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %j1 = llvm.add %j, %c1 : i64
  llvm.br ^inner(%j1 : i64)
^next:
  %i1 = llvm.add %i, %c1 : i64
  llvm.br ^head(%i1 : i64)
^exit:
  llvm.store %one, %x : f32, !llvm.ptr
  llvm.return
}

// The sum of the elements is a value that the loop gives: it stays.
// CHECK-LABEL: llvm.func @c_par0(
// CHECK-NOT:     llvm.call
// CHECK:       llvm.func @sdx_parallel_for
llvm.func @c_par0(%begin: i64, %end: i64, %x: !llvm.ptr) {
  %c0 = llvm.mlir.constant(0 : i64) : i64
  %c1 = llvm.mlir.constant(1 : i64) : i64
  %c16 = llvm.mlir.constant(16 : i64) : i64
  %c96 = llvm.mlir.constant(96 : i64) : i64
  %one = llvm.mlir.constant(1.0 : f32) : f32
  %at = llvm.mul %begin, %c96 : i64
  %row = llvm.getelementptr %x[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.br ^head(%c0 : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %c96 : i64
  llvm.cond_br %more, ^inner(%c0 : i64), ^exit
^inner(%j: i64):
  %left = llvm.icmp "slt" %j, %c16 : i64
  llvm.cond_br %left, ^body, ^next
^body:
  %k = llvm.add %i, %j : i64
  %element = llvm.getelementptr %row[%k] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %one, %element : f32, !llvm.ptr
  %j1 = llvm.add %j, %c1 : i64
  llvm.br ^inner(%j1 : i64)
^next:
  %i1 = llvm.add %i, %c1 : i64
  llvm.br ^head(%i1 : i64)
^exit:
  %last = llvm.sitofp %i : i64 to f32
  llvm.store %last, %x : f32, !llvm.ptr
  llvm.return
}

llvm.func @sdx_parallel_for_a_par0(i64, i64, !llvm.ptr)
llvm.func @sdx_parallel_for_b_par0(i64, i64, !llvm.ptr)
llvm.func @sdx_parallel_for_c_par0(i64, i64, !llvm.ptr)
