// RUN: onnx-opt %s -sdx-convert-to-llvm -reconcile-unrealized-casts | FileCheck %s

// One conversion for operations of all dialects, so no casts are left between
// them.

// CHECK-LABEL: llvm.func @dialects(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i64
// CHECK-NOT: unrealized_conversion_cast
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK: llvm.intr.fmuladd
// CHECK: llvm.intr.sqrt
// CHECK: llvm.store
// CHECK: llvm.cond_br
// CHECK: llvm.call @other
func.func @dialects(%n: index, %x: memref<16xf32>) -> index {
  %c0 = arith.constant 0 : index
  %v = vector.load %x[%n] : memref<16xf32>, vector<8xf32>
  %f = vector.fma %v, %v, %v : vector<8xf32>
  %r = math.sqrt %f : vector<8xf32>
  vector.store %r, %x[%n] : memref<16xf32>, vector<8xf32>
  %same = arith.cmpi eq, %n, %c0 : index
  cf.cond_br %same, ^equal, ^different
^equal:
  return %n : index
^different:
  %other = func.call @other(%n) : (index) -> index
  return %other : index
}

// CHECK: llvm.func @other(i64) -> i64
func.func private @other(index) -> index

// Sums of a vector's elements may be added in any order.
// CHECK-LABEL: llvm.func @reassociates
// CHECK: vector.reduce.fadd
// CHECK-SAME: reassoc
func.func @reassociates(%v: vector<8xf32>) -> f32 {
  %sum = vector.reduction <add>, %v : vector<8xf32> into f32
  return %sum : f32
}

// A size comes from the descriptor: on the stack it would stay there for each
// trip of a loop around it.
// CHECK-LABEL: llvm.func @size
// CHECK-NOT:   llvm.alloca
// CHECK:       llvm.extractvalue %{{.*}}[3, 1]
// CHECK-NOT:   llvm.alloca
// CHECK:       llvm.return
func.func @size(%m: memref<?x?xf32>) -> index {
  %c1 = arith.constant 1 : index
  %size = memref.dim %m, %c1 : memref<?x?xf32>
  return %size : index
}
