// RUN: onnx-opt %s --allow-unregistered-dialect --sdx-poll-host-loops | FileCheck %s

// An ONNX Loop counts its trips and tells its name; so does one inside another,
// from the beginning each time.
// CHECK-DAG: llvm.mlir.global internal constant @[[$OUTER:sdx_loop_[0-9]+]]("node 'outer'\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[$INNER:sdx_loop_[0-9]+]]("node 'inner'\00")
// CHECK: llvm.func @sdx_rt_poll(i64, !llvm.ptr)
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[A:.*]] = llvm.alloca
// CHECK-DAG: %[[B:.*]] = llvm.alloca
// CHECK: llvm.store %{{.*}}, %[[OUT:.*]] : i64, !llvm.ptr
// CHECK: scf.while
// CHECK: } do {
// CHECK: %[[OLD:.*]] = llvm.load %[[OUT]]
// CHECK: %[[TRIP:.*]] = llvm.add %[[OLD]]
// CHECK: llvm.store %[[TRIP]], %[[OUT]]
// CHECK: %[[NAME:.*]] = llvm.mlir.addressof @[[$OUTER]]
// CHECK: llvm.call @sdx_rt_poll(%[[TRIP]], %[[NAME]])
// CHECK: llvm.store %{{.*}}, %[[IN:.*]] : i64, !llvm.ptr
// CHECK: scf.while
// CHECK: } do {
// CHECK: llvm.load %[[IN]]
// CHECK: llvm.mlir.addressof @[[$INNER]]
// CHECK: llvm.call @sdx_rt_poll
func.func @main(%n: index, %go: i1) {
  %r = scf.while (%a = %go) : (i1) -> i1 {
    scf.condition(%a) %a : i1
  } do {
  ^bb0(%a: i1):
    %s = scf.while (%b = %a) : (i1) -> i1 {
      scf.condition(%b) %b : i1
    } do {
    ^bb0(%b: i1):
      "test.body"() : () -> ()
      scf.yield %b : i1
    } loc("inner")
    scf.yield %s : i1
  } loc("outer")
  return
}

// A Scan has no trips to count: its inputs' sizes are known. Trips that call
// something may be long, of others only each 1,024th polls.
// CHECK-LABEL: func.func @init
// CHECK: scf.for
// CHECK-NEXT: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %[[NULL:.*]] = llvm.mlir.zero
// CHECK-NEXT: llvm.call @sdx_rt_poll(%[[ZERO]], %[[NULL]])
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: %[[LAST:.*]] = arith.constant 1023 : index
// CHECK-NEXT: %[[PLACE:.*]] = arith.andi %[[I]], %[[LAST]]
// CHECK-NEXT: %[[NOW:.*]] = arith.cmpi eq, %[[PLACE]], %[[LAST]]
// CHECK-NEXT: scf.if %[[NOW]] {
// CHECK: llvm.call @sdx_rt_poll
// CHECK: "test.body"
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: arith.constant 2047 : index
// CHECK: llvm.call @sdx_rt_check_failed
func.func private @callee()
llvm.func @sdx_rt_check_failed()
func.func @init(%n: index, %bad: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @callee() : () -> ()
  }
  scf.for %i = %c0 to %n step %c1 {
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
    "test.body"() : () -> ()
  }
  // A check that fails leaves the loop: the others make it no longer.
  scf.for %i = %c0 to %n step %c1 {
    scf.if %bad {
      llvm.call @sdx_rt_check_failed() : () -> ()
    }
    "test.body"() : () -> ()
  }
  return
}

// In a kernel a short trip is not worth it, nor is an innermost loop.
// CHECK-LABEL: func.func @light
// CHECK-NOT: sdx_rt_poll
// CHECK: return
func.func @light(%n: index) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      "test.body"() : () -> ()
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    "test.body"() : () -> ()
  }
  return
}

// Two levels are enough: a trip of the third takes a part of the second's time.
// CHECK-LABEL: func.func @heavy
// CHECK: scf.for
// CHECK: llvm.call @sdx_rt_poll
// CHECK: scf.for
// CHECK: llvm.call @sdx_rt_poll
// CHECK: scf.for
// CHECK-NOT: sdx_rt_poll
// CHECK: return
func.func @heavy(%n: index) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4000 = arith.constant 4000 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %n step %c1 {
        scf.for %l = %c0 to %c4000 step %c1 {
          "test.body"() : () -> ()
        }
      }
    }
  }
  return
}

// Iterations of a parallel loop that a thread was given, about a millisecond of
// them: of those that are long only if inner loops are, each 16th polls.
// CHECK-LABEL: func.func @iterations
// CHECK: scf.for %[[I:.*]] = %arg0 to %arg1
// CHECK-NEXT: %[[LAST:.*]] = arith.constant 15 : index
// CHECK-NEXT: %[[PLACE:.*]] = arith.andi %[[I]], %[[LAST]]
// CHECK: llvm.call @sdx_rt_poll
// CHECK-NOT: sdx_rt_poll
// CHECK: return
func.func @iterations(%begin: index, %end: index, %n: index) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      scf.for %k = %c0 to %c100 step %c1 {
        "test.body"() : () -> ()
      }
    }
  }
  return
}

// A kernel's search polls in one of so many trips where an index counts them,
// by itself or by vectors.
// CHECK-LABEL: func.func @search
// CHECK: scf.while
// CHECK: ^bb0(%[[I:.*]]: index, %{{.*}}: i1):
// CHECK-NEXT: %[[LAST:.*]] = arith.constant [[#%u,MASK:]] : index
// CHECK-NEXT: %[[PLACE:.*]] = arith.andi %[[I]], %[[LAST]]
// CHECK-NEXT: %[[FIRST:.*]] = arith.constant [[#MASK - 15]] : index
// CHECK-NEXT: %[[NOW:.*]] = arith.cmpi uge, %[[PLACE]], %[[FIRST]]
// CHECK-NEXT: scf.if %[[NOW]] {
// CHECK: llvm.call @sdx_rt_poll
func.func @search(%n: index, %a: memref<?xi1>) -> i1 {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %no = arith.constant false
  %yes = arith.constant true
  %r:2 = scf.while (%i = %c0, %f = %no) : (index, i1) -> (index, i1) {
    %more = arith.cmpi slt, %i, %n : index
    %open = arith.xori %f, %yes : i1
    %on = arith.andi %more, %open : i1
    scf.condition(%on) %i, %f : index, i1
  } do {
  ^bb0(%i: index, %f: i1):
    %is = memref.load %a[%i] : memref<?xi1>
    %next = arith.addi %i, %c16 : index
    scf.yield %next, %is : index, i1
  }
  return %r#1 : i1
}
