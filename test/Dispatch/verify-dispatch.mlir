// RUN: onnx-opt %s --sdx-verify-dispatch --split-input-file --verify-diagnostics
// RUN: not onnx-opt %s --sdx-verify-dispatch=bufferized --split-input-file 2>&1 | FileCheck %s

// CHECK: 'tensor.extract' op works on tensors after bufferization
func.func @main(%x: tensor<4xf32> {sdx.input = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%c0] : tensor<4xf32>
  return
}

// -----

func.func @main(%x: tensor<4xf32> {sdx.input = 0 : i64}, %y: tensor<4xf32> {sdx.input = 1 : i64}) -> tensor<4xf32> {
  // expected-error@+1 {{is left on the host; it belongs in a kernel}}
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0 must have exactly one of 'sdx.input', 'sdx.constant' and 'sdx.persistent', has 0}}
func.func @main(%x: tensor<4xf32>) {
  return
}

// -----

// A loop that goes through elements.
func.func @main(%x: tensor<?xf32> {sdx.input = 0 : i64}, %y: tensor<?xf32> {sdx.input = 1 : i64}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %y) -> (tensor<?xf32>) {
    // expected-error@+1 {{accesses an element on the host at a place that is not constant; it belongs in a kernel}}
    %e = tensor.extract %x[%i] : tensor<?xf32>
    %1 = tensor.insert %e into %t[%i] : tensor<?xf32>
    scf.yield %1 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}

// -----

// The same on buffers.
func.func @main(%x: memref<8xf32> {sdx.input = 0 : i64}, %v: f32 {sdx.input = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    // expected-error@+1 {{accesses an element on the host}}
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}

// -----

// An index read from data.
func.func @main(%x: tensor<8xf32> {sdx.input = 0 : i64}, %at: index {sdx.input = 1 : i64}) -> tensor<1xf32> {
  // expected-error@+1 {{accesses an element on the host}}
  %e = tensor.extract %x[%at] : tensor<8xf32>
  %0 = tensor.from_elements %e : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<1x8xf32> {sdx.input = 0 : i64}) -> tensor<1x8xf32> {
  // expected-error@+1 {{is left on the host; it belongs in a kernel}}
  %0 = scf.forall (%i) in (1) shared_outs(%o = %x) -> (tensor<1x8xf32>) {
  } {mapping = [#sdx.task]}
  return %0 : tensor<1x8xf32>
}

// -----

// What the host may do: a Loop's condition and trip count, a size, an index of
// a view; a kernel's elements are its own.
func.func private @k0(memref<8xf32>, memref<8xf32>) attributes {sdx.kernel}
func.func private @k1(%x: memref<8xf32>, %v: f32) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    memref.store %v, %x[%i] : memref<8xf32>
  }
  return
}
func.func @main(%x: tensor<8xf32> {sdx.input = 0 : i64}, %trips: tensor<i64> {sdx.input = 1 : i64}, %go: tensor<i1> {sdx.input = 2 : i64}, %at: tensor<2xi64> {sdx.input = 3 : i64}, %rows: tensor<9x8xf32> {sdx.input = 4 : i64}) -> (tensor<8xf32>, tensor<1x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.extract %trips[] : tensor<i64>
  %trip = arith.index_cast %n : i64 to index
  %0:2 = scf.while (%i = %c0, %s = %x) : (index, tensor<8xf32>) -> (index, tensor<8xf32>) {
    %more = arith.cmpi slt, %i, %trip : index
    %on = tensor.extract %go[] : tensor<i1>
    %both = arith.andi %more, %on : i1
    scf.condition(%both) %i, %s : index, tensor<8xf32>
  } do {
  ^bb0(%i: index, %s: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %r = sdx.call @k0(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %next = arith.addi %i, %c1 : index
    scf.yield %next, %r : index, tensor<8xf32>
  }
  %raw = tensor.extract %at[%c1] : tensor<2xi64>
  %row = arith.index_cast %raw : i64 to index
  %1 = tensor.extract_slice %rows[%row, 0] [1, 8] [1, 1] : tensor<9x8xf32> to tensor<1x8xf32>
  return %0#1, %1 : tensor<8xf32>, tensor<1x8xf32>
}
