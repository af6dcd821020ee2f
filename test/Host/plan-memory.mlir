// RUN: onnx-opt %s --sdx-plan-memory --split-input-file | FileCheck %s

func.func private @k(memref<16xf32>, memref<16xf32>) attributes {sdx.kernel}

// %a and %c share memory, %b lives at the same time as both, also by its view.
// CHECK-LABEL: func.func @chain
// CHECK: %[[ARENA:.*]] = sdx.arena : memref<128xi8>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK: %[[A:.*]] = memref.view %[[ARENA]][%[[C0]]][]
// CHECK: %[[B:.*]] = memref.view %[[ARENA]][%[[C64]]][]
// CHECK: %[[C:.*]] = memref.view %[[ARENA]][%[[C0]]][]
// CHECK-NOT: memref.alloc
func.func @chain(%x: memref<16xf32>, %y: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  sdx.call @k(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  %b = memref.alloc() : memref<16xf32>
  sdx.call @k(%a : memref<16xf32>) outs(%b : memref<16xf32>)
  %v = memref.expand_shape %b [[0, 1]] output_shape [4, 4] : memref<16xf32> into memref<4x4xf32>
  %c = memref.alloc() : memref<16xf32>
  sdx.call @k(%x : memref<16xf32>) outs(%c : memref<16xf32>)
  %w = memref.collapse_shape %v [[0, 1]] : memref<4x4xf32> into memref<16xf32>
  sdx.call @k(%w : memref<16xf32>) outs(%y : memref<16xf32>)
  sdx.call @k(%c : memref<16xf32>) outs(%y : memref<16xf32>)
  return
}

// -----

func.func private @k(memref<?xf32>, memref<?xf32>) attributes {sdx.kernel}

// CHECK-LABEL: func.func @dynamic
// CHECK: %[[A:.*]] = memref.alloc(%arg0)
// CHECK: sdx.call
// CHECK: %[[B:.*]] = memref.alloc(%arg0)
// CHECK: sdx.call
// CHECK-NEXT: memref.dealloc %[[A]]
// CHECK: sdx.call
// CHECK-NEXT: memref.dealloc %[[B]]
func.func @dynamic(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %a = memref.alloc(%n) : memref<?xf32>
  sdx.call @k(%x : memref<?xf32>) outs(%a : memref<?xf32>)
  %b = memref.alloc(%n) : memref<?xf32>
  sdx.call @k(%a : memref<?xf32>) outs(%b : memref<?xf32>)
  sdx.call @k(%b : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// -----

func.func private @k(memref<16xf32>, memref<16xf32>) attributes {sdx.kernel}

// Memory that a loop needs lives as long as the loop. What an iteration hands on
// is freed when it is replaced, and what the last one does after its last use:
// the loop begins with a copy of its own.
// CHECK-LABEL: func.func @loop
// CHECK: sdx.arena : memref<128xi8>
// CHECK: %[[FIRST:.*]] = memref.alloc() {{.*}} : memref<16xf32>
// CHECK: memref.copy %{{.*}}, %[[FIRST]]
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[STATE:.*]] = %[[FIRST]])
// CHECK: memref.view
// CHECK: %[[NEXT:.*]] = memref.alloc() : memref<16xf32>
// CHECK: memref.dealloc %[[STATE]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: sdx.call @k(%[[LAST]] :
// CHECK-NEXT: memref.dealloc %[[LAST]]
func.func @loop(%n: index, %x: memref<16xf32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<16xf32>
  %s = memref.alloc() : memref<16xf32>
  sdx.call @k(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  sdx.call @k(%x : memref<16xf32>) outs(%s : memref<16xf32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%st = %s) -> memref<16xf32> {
    %t = memref.alloc() : memref<16xf32>
    sdx.call @k(%a : memref<16xf32>) outs(%t : memref<16xf32>)
    sdx.call @k(%st : memref<16xf32>) outs(%t : memref<16xf32>)
    %next = memref.alloc() : memref<16xf32>
    sdx.call @k(%t : memref<16xf32>) outs(%next : memref<16xf32>)
    scf.yield %next : memref<16xf32>
  }
  sdx.call @k(%r : memref<16xf32>) outs(%y : memref<16xf32>)
  return
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {sdx.kernel}

// Pieces of placed buffers have places; a piece of an argument is passed as it
// is.
// CHECK-LABEL: func.func @pieces
// CHECK: %[[ARENA:.*]] = sdx.arena
// CHECK: scf.for %[[I:.*]] =
// CHECK-NOT: memref.copy
// CHECK: %[[FROM:.*]] = memref.subview %arg0[%[[I]], 0]
// CHECK: %[[SHIFT:.*]] = arith.addi
// CHECK: %[[PIECE:.*]] = memref.view %[[ARENA]][%[[SHIFT]]][] : {{.*}} to memref<8xf32>
// CHECK: sdx.call @k(%[[FROM]] : memref<8xf32, strided<[1], offset: ?>>) outs(%[[PIECE]] : memref<8xf32>)
func.func @pieces(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<4x8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %p = memref.subview %x[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    %q = memref.subview %a[%i, 0] [1, 8] [1, 1] : memref<4x8xf32> to memref<8xf32, strided<[1], offset: ?>>
    sdx.call @k(%p : memref<8xf32, strided<[1], offset: ?>>) outs(%q : memref<8xf32, strided<[1], offset: ?>>)
  }
  memref.copy %a, %y : memref<4x8xf32> to memref<4x8xf32>
  return
}

// -----

func.func private @k(memref<?xf32>, memref<?xf32>) attributes {sdx.kernel}

// What one side made is freed where that side was taken.
// CHECK-LABEL: func.func @branch
// CHECK: %[[R:.*]] = scf.if %arg1
// CHECK: %[[MADE:.*]] = memref.alloc(%arg0)
// CHECK: scf.yield %[[MADE]]
// CHECK: scf.yield %arg2
// CHECK: sdx.call @k(%[[R]] :
// CHECK-NEXT: scf.if %arg1 {
// CHECK-NEXT: memref.dealloc %[[R]]
// CHECK-NEXT: }
// CHECK: %[[T:.*]] = scf.if %arg1
// CHECK: scf.yield %arg2
// CHECK: scf.yield %{{.*}} :
// CHECK: sdx.call @k(%[[T]] :
// CHECK: %[[NOT:.*]] = arith.xori %arg1, %true
// CHECK-NEXT: scf.if %[[NOT]] {
// CHECK-NEXT: memref.dealloc %[[T]]
// CHECK: %[[S:.*]] = scf.if
// CHECK: scf.yield %arg2
// CHECK: scf.yield %arg3
// CHECK-NOT: memref.dealloc
func.func @branch(%n: index, %c: i1, %x: memref<?xf32>, %y: memref<?xf32>) {
  %r = scf.if %c -> memref<?xf32> {
    %a = memref.alloc(%n) : memref<?xf32>
    sdx.call @k(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    scf.yield %a : memref<?xf32>
  } else {
    scf.yield %x : memref<?xf32>
  }
  sdx.call @k(%r : memref<?xf32>) outs(%y : memref<?xf32>)
  %t = scf.if %c -> memref<?xf32> {
    scf.yield %x : memref<?xf32>
  } else {
    %a = memref.alloc(%n) : memref<?xf32>
    sdx.call @k(%x : memref<?xf32>) outs(%a : memref<?xf32>)
    scf.yield %a : memref<?xf32>
  }
  sdx.call @k(%t : memref<?xf32>) outs(%y : memref<?xf32>)
  %s = scf.if %c -> memref<?xf32> {
    scf.yield %x : memref<?xf32>
  } else {
    scf.yield %y : memref<?xf32>
  }
  sdx.call @k(%s : memref<?xf32>) outs(%y : memref<?xf32>)
  return
}

// -----

func.func private @k(memref<?xf32>, memref<?xf32>) attributes {sdx.kernel}

// A loop wants a buffer that is its own in each case.
// CHECK-LABEL: func.func @branch_in_loop
// CHECK: scf.for
// CHECK: scf.if
// CHECK: %[[MADE:.*]] = memref.alloc(%arg0)
// CHECK: scf.yield %[[MADE]]
// CHECK: %[[COPY:.*]] = memref.alloc(
// CHECK-NEXT: memref.copy %arg2, %[[COPY]]
// CHECK-NEXT: scf.yield %[[COPY]]
// CHECK: memref.dealloc
func.func @branch_in_loop(%n: index, %c: i1, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> memref<?xf32> {
    %r = scf.if %c -> memref<?xf32> {
      %a = memref.alloc(%n) : memref<?xf32>
      sdx.call @k(%s : memref<?xf32>) outs(%a : memref<?xf32>)
      scf.yield %a : memref<?xf32>
    } else {
      scf.yield %x : memref<?xf32>
    }
    scf.yield %r : memref<?xf32>
  }
  memref.copy %l, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

func.func private @k(memref<?xf32>, memref<?xf32>) attributes {sdx.kernel}

// The argument is still needed when the new value is there.
// CHECK-LABEL: func.func @handed_on
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @handed_on(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x, %t = %x) -> (memref<?xf32>, memref<?xf32>) {
    %a = memref.alloc(%n) : memref<?xf32>
    sdx.call @k(%t : memref<?xf32>) outs(%a : memref<?xf32>)
    scf.yield %a, %s : memref<?xf32>, memref<?xf32>
  }
  memref.copy %r#1, %y : memref<?xf32> to memref<?xf32>
  return
}

// -----

func.func private @k(memref<16xf32>, memref<16xf32, 1>) attributes {sdx.kernel}
func.func private @r(memref<16xf32, 1>, memref<16xf32>) attributes {sdx.kernel}
func.func private @p(memref<4xf32, 1>, memref<16xf32>) attributes {sdx.kernel}

// Each memory space has an arena of its own; pieces of a buffer are views of
// that of its space.
// CHECK-LABEL: func.func @spaces
// CHECK-DAG: %[[DEVICE:.*]] = sdx.arena : memref<256xi8, 1>
// CHECK-DAG: %[[HOST:.*]] = sdx.arena : memref<64xi8>
// CHECK: %[[A:.*]] = memref.view %[[DEVICE]][%{{.*}}][] : memref<256xi8, 1> to memref<16xf32, 1>
// CHECK: sdx.call @k(%arg0 : memref<16xf32>) outs(%[[A]] : memref<16xf32, 1>)
// CHECK: %[[B:.*]] = memref.view %[[HOST]][%{{.*}}][] : memref<64xi8> to memref<16xf32>
// CHECK: sdx.call @r(%[[A]] : memref<16xf32, 1>) outs(%[[B]] : memref<16xf32>)
// CHECK: %[[PIECE:.*]] = memref.view %[[DEVICE]][%{{.*}}][] : memref<256xi8, 1> to memref<4xf32, 1>
// CHECK: sdx.call @p(%[[PIECE]] : memref<4xf32, 1>) outs(%arg1 : memref<16xf32>)
func.func @spaces(%x: memref<16xf32>, %y: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32, 1>
  sdx.call @k(%x : memref<16xf32>) outs(%a : memref<16xf32, 1>)
  %b = memref.alloc() : memref<16xf32>
  sdx.call @r(%a : memref<16xf32, 1>) outs(%b : memref<16xf32>)
  %s = memref.subview %a[4] [4] [1] : memref<16xf32, 1> to memref<4xf32, strided<[1], offset: 4>, 1>
  sdx.call @p(%s : memref<4xf32, strided<[1], offset: 4>, 1>) outs(%y : memref<16xf32>)
  sdx.call @k(%b : memref<16xf32>) outs(%a : memref<16xf32, 1>)
  return
}

// -----

func.func private @k(memref<16xf32>, memref<16xf32, #gpu.address_space<global>>) attributes {sdx.kernel}
func.func private @p(memref<3xf32, #gpu.address_space<global>>, memref<16xf32>) attributes {sdx.kernel}

// On a device pieces are read where they are if they begin at a multiple of 16
// bytes.
// CHECK-LABEL: func.func @aligned
// CHECK-NOT: memref.copy
// CHECK: sdx.call @p
// CHECK: memref.copy
// CHECK: sdx.call @p
func.func @aligned(%x: memref<16xf32>, %y: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32, #gpu.address_space<global>>
  sdx.call @k(%x : memref<16xf32>) outs(%a : memref<16xf32, #gpu.address_space<global>>)
  %s = memref.subview %a[4] [3] [1] : memref<16xf32, #gpu.address_space<global>> to memref<3xf32, strided<[1], offset: 4>, #gpu.address_space<global>>
  sdx.call @p(%s : memref<3xf32, strided<[1], offset: 4>, #gpu.address_space<global>>) outs(%y : memref<16xf32>)
  %t = memref.subview %a[5] [3] [1] : memref<16xf32, #gpu.address_space<global>> to memref<3xf32, strided<[1], offset: 5>, #gpu.address_space<global>>
  sdx.call @p(%t : memref<3xf32, strided<[1], offset: 5>, #gpu.address_space<global>>) outs(%y : memref<16xf32>)
  return
}

// -----

func.func private @k(memref<16xf32>, memref<64xf32, 1>) attributes {sdx.kernel}
func.func private @q(memref<64xf32, 1>, memref<64xf32, 1>) attributes {sdx.kernel}

// On a device a kernel writes nothing over what one shortly before it has read,
// so that the two can start together, unless that is large.
// CHECK-LABEL: func.func @together
// CHECK: sdx.arena : memref<1024xi8, 1>
func.func @together(%x: memref<16xf32>, %y: memref<64xf32, 1>) {
  %a = memref.alloc() : memref<64xf32, 1>
  %b = memref.alloc() : memref<64xf32, 1>
  %c = memref.alloc() : memref<64xf32, 1>
  %d = memref.alloc() : memref<64xf32, 1>
  sdx.call @k(%x : memref<16xf32>) outs(%a : memref<64xf32, 1>)
  sdx.call @q(%a : memref<64xf32, 1>) outs(%b : memref<64xf32, 1>)
  sdx.call @q(%b : memref<64xf32, 1>) outs(%c : memref<64xf32, 1>)
  sdx.call @q(%c : memref<64xf32, 1>) outs(%d : memref<64xf32, 1>)
  sdx.call @q(%d : memref<64xf32, 1>) outs(%y : memref<64xf32, 1>)
  return
}

// -----

func.func private @l(memref<16xf32>, memref<1024x512xf32, 1>) attributes {sdx.kernel}
func.func private @m(memref<1024x512xf32, 1>, memref<16xf32>) attributes {sdx.kernel}

// CHECK-LABEL: func.func @large
// CHECK: sdx.arena : memref<2097152xi8, 1>
func.func @large(%x: memref<16xf32>, %y: memref<16xf32>) {
  %a = memref.alloc() : memref<1024x512xf32, 1>
  %b = memref.alloc() : memref<1024x512xf32, 1>
  sdx.call @l(%x : memref<16xf32>) outs(%a : memref<1024x512xf32, 1>)
  sdx.call @m(%a : memref<1024x512xf32, 1>) outs(%y : memref<16xf32>)
  sdx.call @l(%y : memref<16xf32>) outs(%b : memref<1024x512xf32, 1>)
  sdx.call @m(%b : memref<1024x512xf32, 1>) outs(%y : memref<16xf32>)
  return
}
