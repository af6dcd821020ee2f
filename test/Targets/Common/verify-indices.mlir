// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-verify-indices
// RUN: not onnx-opt %s -split-input-file -sdx-verify-indices=fail=true 2>&1 | FileCheck %s

// CHECK: error: nothing keeps this load within

// The counter goes up to the size of another buffer.
func.func @other_size(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %a[%i] : memref<?xf32>
    // expected-remark @below {{nothing keeps this store within 'memref<?xf32>': the index of dimension 0 may be too large}}
    memref.store %v, %b[%i] : memref<?xf32>
  }
  return
}

// -----

// A check says that the sizes are equal.
func.func @checked(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  %m = memref.dim %b, %c0 : memref<?xf32>
  %same = arith.cmpi eq, %n, %m : index
  sdx.check %same, "sizes differ"
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %a[%i] : memref<?xf32>
    memref.store %v, %b[%i] : memref<?xf32>
  }
  return
}

// -----

// Whole vectors as far as they go, the tail under a mask.
func.func @vectors(%a: memref<?xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %n = memref.dim %a, %c0 : memref<?xf32>
  %rest = arith.remui %n, %c16 : index
  %middle = arith.subi %n, %rest : index
  %s = scf.for %i = %c0 to %middle step %c16 iter_args(%acc = %zero) -> vector<16xf32> {
    %v = vector.load %a[%i] : memref<?xf32>, vector<16xf32>
    %r = arith.addf %acc, %v : vector<16xf32>
    scf.yield %r : vector<16xf32>
  }
  %t = scf.for %i = %middle to %n step %c16 iter_args(%acc = %s) -> vector<16xf32> {
    %left = arith.subi %n, %i : index
    %mask = vector.create_mask %left : vector<16xi1>
    %v = vector.maskedload %a[%i], %mask, %zero : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %r = arith.addf %acc, %v : vector<16xf32>
    scf.yield %r : vector<16xf32>
  }
  return %t : vector<16xf32>
}

// -----

// The same without a mask.
func.func @no_mask(%a: memref<?xf32>) -> vector<16xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %n = memref.dim %a, %c0 : memref<?xf32>
  %s = scf.for %i = %c0 to %n step %c16 iter_args(%acc = %zero) -> vector<16xf32> {
    // expected-remark @below {{the index of dimension 0 may be too large}}
    %v = vector.load %a[%i] : memref<?xf32>, vector<16xf32>
    %r = arith.addf %acc, %v : vector<16xf32>
    scf.yield %r : vector<16xf32>
  }
  return %s : vector<16xf32>
}

// -----

// A buffer seen flat: sizes multiply.
func.func @flat(%a: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %m = memref.dim %a, %c1 : memref<?x?xf32>
  %flat = memref.collapse_shape %a [[0, 1]] : memref<?x?xf32> into memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %row = arith.muli %i, %m : index
      %at = arith.addi %row, %j : index
      memref.store %zero, %flat[%at] : memref<?xf32>
    }
  }
  return
}

// -----

// An index out of data, once unchecked and once checked.
func.func @data(%a: memref<?xf32>, %list: memref<4xindex>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %at = memref.load %list[%c0] : memref<4xindex>
  // expected-remark @below {{the index of dimension 0 may be negative}}
  %x = memref.load %a[%at] : memref<?xf32>
  %n = memref.dim %a, %c0 : memref<?xf32>
  %inside = arith.cmpi ult, %at, %n : index
  sdx.check %inside, "index out of range"
  %y = memref.load %a[%at] : memref<?xf32>
  return %x, %y : f32, f32
}

// -----

// A kernel takes one buffer's size for another's: right by one call and wrong
// by the other.
func.func @main(%a: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %size = memref.dim %a, %c0 : memref<?xf32>
  %same = memref.alloc(%size) : memref<?xf32>
  sdx.call @right(%a : memref<?xf32>) outs(%same : memref<?xf32>)
  %other = memref.alloc(%n) : memref<?xf32>
  sdx.call @wrong(%a : memref<?xf32>) outs(%other : memref<?xf32>)
  return
}
func.func private @right(%a: memref<?xf32>, %b: memref<?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %b, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    %v = memref.load %a[%i] : memref<?xf32>
    memref.store %v, %b[%i] : memref<?xf32>
  }
  return
}
func.func private @wrong(%a: memref<?xf32>, %b: memref<?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %b, %c0 : memref<?xf32>
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    // expected-remark @below {{the index of dimension 0 may be too large}}
    %v = memref.load %a[%i] : memref<?xf32>
    memref.store %v, %b[%i] : memref<?xf32>
  }
  return
}
