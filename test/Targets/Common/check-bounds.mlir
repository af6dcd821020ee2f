// RUN: onnx-opt %s -split-input-file -sdx-check-bounds -canonicalize | FileCheck %s

// Each access stands in a branch of its own: a check that fails in a parallel
// loop does not end it.

// CHECK-LABEL: func.func @scalar
// CHECK-SAME:    %[[M:.*]]: memref<?x4xf32>, %[[I:.*]]: index, %[[J:.*]]: index
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[N:.*]] = memref.dim %[[M]]
// CHECK-DAG:     %[[ROW:.*]] = arith.cmpi ult, %[[I]], %[[N]]
// CHECK-DAG:     %[[COLUMN:.*]] = arith.cmpi ult, %[[J]], %[[C4]]
// CHECK:         %[[OK:.*]] = arith.andi %[[ROW]], %[[COLUMN]]
// CHECK:         sdx.check %[[OK]], "node 'y': reads outside of a buffer of ?x4xf32 (bounds check in 'scalar')"
// CHECK:         scf.if %[[OK]] -> (f32)
// CHECK-NEXT:      memref.load %[[M]][%[[I]], %[[J]]]
// CHECK:         else
// CHECK-NEXT:      scf.yield %[[ZERO]]
func.func @scalar(%m: memref<?x4xf32>, %i: index, %j: index) -> f32 {
  %v = memref.load %m[%i, %j] : memref<?x4xf32> loc("y")
  return %v : f32
}

// -----

// All lanes of a vector, or those of the mask.

// CHECK-LABEL: func.func @vectors
// CHECK:         %[[END:.*]] = arith.addi %{{.*}}, %c7{{.*}} : index
// CHECK:         arith.cmpi ult, %[[END]]
// CHECK:         sdx.check {{.*}}reads outside
// CHECK:         vector.step
// CHECK:         %[[OUTSIDE:.*]] = arith.cmpi uge, {{.*}} : vector<8xindex>
// CHECK:         arith.andi %[[OUTSIDE]], %{{.*}} : vector<8xi1>
// CHECK:         vector.reduction <or>
// CHECK:         sdx.check {{.*}}writes outside
// CHECK:         scf.if
// CHECK-NEXT:      vector.maskedstore
func.func @vectors(%m: memref<?xf32>, %i: index, %mask: vector<8xi1>) {
  %v = vector.load %m[%i] : memref<?xf32>, vector<8xf32>
  vector.maskedstore %m[%i], %mask, %v : memref<?xf32>, vector<8xi1>, vector<8xf32>
  return
}

// -----

// The last dimension has one element: lanes lie along the one before it, and a
// first lane that is masked off may be to the left of both.

// CHECK-LABEL: func.func @column
// CHECK-SAME:    memref<3x1xf32>, %[[J:.*]]: index, %[[K:.*]]: index, %
// CHECK:         %[[FIRST:.*]] = arith.addi %[[J]], %[[K]] : index
// CHECK:         %[[SPREAD:.*]] = vector.broadcast %[[FIRST]]
// CHECK-NOT:     arith.cmpi ult
// CHECK:         scf.if
// CHECK:           vector.maskedload
func.func @column(%m: memref<3x1xf32>, %j: index, %k: index, %mask: vector<8xi1>, %none: vector<8xf32>) -> vector<8xf32> {
  %v = vector.maskedload %m[%j, %k], %mask, %none : memref<3x1xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  return %v : vector<8xf32>
}

// -----

// A gather may leave its row, but not its memref.

// CHECK-LABEL: func.func @gather
// CHECK-DAG:     %[[C12:.*]] = arith.constant dense<12> : vector<4xindex>
// CHECK:         arith.cmpi uge, %{{.*}}, %[[C12]]
// CHECK:         scf.if {{.*}} -> (vector<4xf32>)
// CHECK:           vector.gather
func.func @gather(%m: memref<3x4xf32>, %i: index, %places: vector<4xindex>, %mask: vector<4xi1>, %none: vector<4xf32>) -> vector<4xf32> {
  %v = vector.gather %m[%i, %i][%places], %mask, %none : memref<3x4xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return %v : vector<4xf32>
}

// -----

// What is certainly inside needs no check.

// CHECK-LABEL: func.func @certain
// CHECK-NOT:     sdx.check
// CHECK:         memref.load
func.func @certain(%m: memref<4xf32>) -> f32 {
  %c3 = arith.constant 3 : index
  %v = memref.load %m[%c3] : memref<4xf32>
  return %v : f32
}

// -----

// Views, copies, and the sizes that a kernel counts on.

// CHECK-LABEL: func.func @host
// CHECK:         sdx.check {{.*}}takes a part
// CHECK:         memref.subview
// CHECK:         sdx.check {{.*}}takes a view
// CHECK:         memref.expand_shape
// CHECK:         sdx.check {{.*}}copies
// CHECK:         memref.copy
// CHECK:         %[[IS:.*]] = arith.cmpi eq, %{{.*}}, %c8
// CHECK:         sdx.check %[[IS]], {{.*}}takes a view
// CHECK:         memref.cast
func.func @host(%m: memref<?xf32>, %o: index, %n: index) {
  %part = memref.subview %m[%o] [%n] [2] : memref<?xf32> to memref<?xf32, strided<[2], offset: ?>>
  %c4 = arith.constant 4 : index
  %wide = memref.expand_shape %m [[0, 1]] output_shape [%n, 4] : memref<?xf32> into memref<?x4xf32>
  %other = memref.alloc(%o) : memref<?xf32>
  memref.copy %part, %other : memref<?xf32, strided<[2], offset: ?>> to memref<?xf32>
  %known = memref.cast %m : memref<?xf32> to memref<8xf32>
  sdx.call @k(%known : memref<8xf32>) outs(%wide : memref<?x4xf32>)
  memref.dealloc %other : memref<?xf32>
  return
}
func.func private @k(%a: memref<8xf32>, %out: memref<?x4xf32>) attributes {sdx.kernel} {
  return
}
