// RUN: onnx-opt %s --sdx-bufferize-host --split-input-file | FileCheck %s

func.func private @k0(memref<?x8xf32>, memref<?x8xf32>) attributes {sdx.kernel}

// The last kernel writes to the output, through the view that is returned; the
// one before to memory of its own.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<?x8xf32> {sdx.input = 0 : i64}) attributes {sdx.results = [{onnx.name = "y", sdx.type = tensor<?x2x4xf32>}]}
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[OUT:.*]] = sdx.output_buffer 0(%[[N]]) : memref<?x2x4xf32>
// CHECK: %[[V:.*]] = memref.collapse_shape %[[OUT]]
// CHECK: %[[T:.*]] = memref.alloc(%[[N]])
// CHECK: sdx.call @k0(%[[X]] : memref<?x8xf32>) outs(%[[T]] : memref<?x8xf32>)
// CHECK: sdx.call @k0(%[[T]] : memref<?x8xf32>) outs(%[[V]] : memref<?x8xf32>)
// CHECK-NOT: memref.copy
// CHECK: return{{$}}
func.func @main(%x: tensor<?x8xf32> {sdx.input = 0 : i64}) -> (tensor<?x2x4xf32> {onnx.name = "y"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %0 = sdx.call @k0(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = sdx.call @k0(%0 : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = tensor.expand_shape %1 [[0], [1, 2]] output_shape [%n, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
  return %2 : tensor<?x2x4xf32>
}

// -----

func.func private @k0(memref<?xf32>, memref<?x2xf32>) attributes {sdx.kernel}

// An open size that is a multiple of a known one.
// CHECK-LABEL: func.func @pairs
// CHECK: %[[OUT:.*]] = sdx.output_buffer 0(%{{.*}}) : memref<?xf32>
// CHECK: %[[N:.*]] = arith.divui %{{.*}}, %c2
// CHECK: %[[V:.*]] = memref.expand_shape %[[OUT]] {{\[\[}}0, 1]] output_shape [%[[N]], 2]
// CHECK: sdx.call @k0(%arg0 : memref<?xf32>) outs(%[[V]] : memref<?x2xf32>)
// CHECK-NOT: memref.copy
// CHECK: return{{$}}
func.func @pairs(%x: tensor<?xf32> {sdx.input = 0 : i64}) -> (tensor<?xf32> {onnx.name = "y"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %0 = sdx.call @k0(%x : tensor<?xf32>) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

func.func private @k0(memref<8xf32>, memref<8xf32>) attributes {sdx.kernel}

// An input, a constant, and a value twice.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[O0:.*]] = sdx.output_buffer 0
// CHECK-DAG: %[[O1:.*]] = sdx.output_buffer 1
// CHECK-DAG: %[[O2:.*]] = sdx.output_buffer 2
// CHECK-DAG: %[[O3:.*]] = sdx.output_buffer 3
// CHECK-DAG: %[[C:.*]] = memref.get_global
// CHECK: sdx.call @k0(%arg0 : memref<8xf32>) outs(%[[O2]] : memref<8xf32>)
// CHECK-DAG: memref.copy %arg0, %[[O0]]
// CHECK-DAG: memref.copy %[[C]], %[[O1]]
// CHECK-DAG: memref.copy %[[O2]], %[[O3]]
func.func @main(%x: tensor<8xf32> {sdx.input = 0 : i64}) -> (tensor<8xf32>, tensor<2xf32>, tensor<8xf32>, tensor<8xf32>) {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %e = tensor.empty() : tensor<8xf32>
  %0 = sdx.call @k0(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %x, %c, %0, %0 : tensor<8xf32>, tensor<2xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

func.func private @k0(memref<8xf32>, memref<8xf32>, memref<8xf32>) attributes {sdx.kernel}

// A scan: the state stays in one place, slices are copied in and out.
// CHECK-LABEL: func.func @main
// CHECK: %[[STATE:.*]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK: memref.copy %arg1, %[[STATE]]
// CHECK: scf.for
// CHECK: sdx.call @k0(%{{.*}}, %[[STATE]] :
// CHECK: memref.copy %{{.*}}, %[[STATE]]
func.func @main(%xs: tensor<5x8xf32> {sdx.input = 0 : i64}, %h: tensor<8xf32> {sdx.input = 1 : i64}) -> (tensor<5x8xf32>, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %out = tensor.empty() : tensor<5x8xf32>
  %ys, %last = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %out, %s = %h) -> (tensor<5x8xf32>, tensor<8xf32>) {
    %x = tensor.extract_slice %xs[%i, 0] [1, 8] [1, 1] : tensor<5x8xf32> to tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %t = sdx.call @k0(%x, %s : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    %y1 = tensor.insert_slice %t into %y[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<5x8xf32>
    scf.yield %y1, %t : tensor<5x8xf32>, tensor<8xf32>
  }
  return %ys, %last : tensor<5x8xf32>, tensor<8xf32>
}

// -----

func.func private @k0(memref<1x4xf32>, memref<1x4xf32>) attributes {sdx.kernel}
func.func private @k1(memref<1x8xf32>, memref<1x8xf32>) attributes {sdx.kernel}

// The parts of a concatenation are made in their places.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = memref.alloc() {{.*}} : memref<1x8xf32>
// CHECK: %[[A:.*]] = memref.subview %[[ALL]][0, 0]
// CHECK: sdx.call @k0({{.*}} outs(%[[A]] :
// CHECK: %[[B:.*]] = memref.subview %[[ALL]][0, 4]
// CHECK: sdx.call @k0({{.*}} outs(%[[B]] :
// CHECK-NOT: memref.copy
// CHECK: sdx.call @k1(%[[ALL]] :
func.func @main(%x: tensor<1x4xf32> {sdx.input = 0 : i64}, %y: tensor<1x4xf32> {sdx.input = 1 : i64}) -> tensor<1x8xf32> {
  %e = tensor.empty() : tensor<1x4xf32>
  %a = sdx.call @k0(%x : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  %b = sdx.call @k0(%y : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  %all = tensor.empty() : tensor<1x8xf32>
  %0 = tensor.insert_slice %a into %all[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %1 = tensor.insert_slice %b into %0[0, 4] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %er = tensor.empty() : tensor<1x8xf32>
  %r = sdx.call @k1(%1 : tensor<1x8xf32>) outs(%er : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %r : tensor<1x8xf32>
}

// -----

func.func private @k1(memref<1x8xf32>, memref<1x8xf32>) attributes {sdx.kernel}

// A concatenation that is a result is put together in its buffer, also where
// kernels read it.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = sdx.output_buffer 1() : memref<1x8xf32>
// CHECK: %[[A:.*]] = memref.subview %[[ALL]][0, 0]
// CHECK: memref.copy %arg0, %[[A]]
// CHECK: %[[B:.*]] = memref.subview %[[ALL]][0, 4]
// CHECK: memref.copy %arg1, %[[B]]
// CHECK: sdx.call @k1(%[[ALL]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<1x4xf32> {sdx.input = 0 : i64}, %y: tensor<1x4xf32> {sdx.input = 1 : i64}) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %all = tensor.empty() : tensor<1x8xf32>
  %0 = tensor.insert_slice %x into %all[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %1 = tensor.insert_slice %y into %0[0, 4] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %er = tensor.empty() : tensor<1x8xf32>
  %r = sdx.call @k1(%1 : tensor<1x8xf32>) outs(%er : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %r, %1 : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// Nothing is copied before the sizes are known to fit.
// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.copy
// CHECK: sdx.check %{{.*}}, "sizes differ"
// CHECK: memref.copy
func.func @main(%x: tensor<?x4xf32> {sdx.input = 0 : i64}, %y: tensor<?x4xf32> {sdx.input = 1 : i64}) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x4xf32>
  %n = tensor.dim %y, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %0 = tensor.insert_slice %x into %e[0, 0] [%m, 4] [1, 1] : tensor<?x4xf32> into tensor<?x8xf32>
  %1 = tensor.insert_slice %y into %0[0, 4] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x8xf32>
  %same = arith.cmpi eq, %n, %m : index
  sdx.check %same, "sizes differ"
  return %1 : tensor<?x8xf32>
}

// -----

// Elements are written over in place, also by a nest of loops: the tensor is
// copied once, before them.
// CHECK-LABEL: func.func @main
// CHECK: memref.copy %arg0, %[[MADE:.*]] :
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: memref.copy
// CHECK: memref.store %{{.*}}, %[[MADE]]
// CHECK-NOT: memref.copy
// CHECK: }
func.func @main(%x: tensor<10x10xf32> {sdx.input = 0 : i64}, %u: tensor<4x4xf32> {sdx.input = 1 : i64}) -> tensor<10x10xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %x) -> tensor<10x10xf32> {
    %1 = scf.for %j = %c0 to %c4 step %c1 iter_args(%t = %s) -> tensor<10x10xf32> {
      %e = tensor.extract %u[%i, %j] : tensor<4x4xf32>
      %2 = tensor.insert %e into %t[%j, %i] : tensor<10x10xf32>
      scf.yield %2 : tensor<10x10xf32>
    }
    scf.yield %1 : tensor<10x10xf32>
  }
  return %0 : tensor<10x10xf32>
}

// -----

func.func private @k0(memref<4xf32>, memref<4xf32>) attributes {sdx.kernel}

// A result does not change once it is made: what writes over it gets a copy.
// CHECK-LABEL: func.func @main
// CHECK: sdx.call @k0(%{{.*}}) outs(%[[Y:.*]] :
// CHECK: memref.copy %[[Y]], %[[Z:.*]] :
// CHECK: memref.store %{{.*}}, %[[Z]]
func.func @main(%x: tensor<4xf32> {sdx.input = 0 : i64}, %i: index {sdx.input = 1 : i64}, %u: f32 {sdx.input = 2 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %y = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %z = tensor.insert %u into %y[%i] : tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @k0(memref<?x4xf32>, memref<?x4xf32>) attributes {sdx.kernel}

// Also where the result is the same memory by another type.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = memref.cast
// CHECK: sdx.call @k0(%{{.*}}) outs(%[[Y]] :
// CHECK: memref.copy %[[Y]], %[[Z:.*]] :
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[Z]]
// CHECK-NOT: memref.copy %{{.*}}, %[[Y]]
// CHECK: return
func.func @main(%x: tensor<?x4xf32> {sdx.input = 0 : i64}, %n: index {sdx.input = 1 : i64}, %u: f32 {sdx.input = 2 : i64}) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %y = sdx.call @k0(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %wide = tensor.cast %y : tensor<?x4xf32> to tensor<?x?xf32>
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%t = %y) -> tensor<?x4xf32> {
    %w = tensor.insert %u into %t[%i, %c0] : tensor<?x4xf32>
    scf.yield %w : tensor<?x4xf32>
  }
  %other = tensor.cast %z : tensor<?x4xf32> to tensor<?x?xf32>
  return %wide, %other : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A tensor that more than 32 loops write to in turn is copied on the way.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-32: scf.for
// CHECK:          %[[COPY:.*]] = memref.alloc
// CHECK:          memref.copy %{{.*}}, %[[COPY]]
// CHECK-COUNT-2:  scf.for
func.func @chain(%r0: tensor<?xf32>, %n: index, %f: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r1 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r0) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r2 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r1) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r3 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r2) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r4 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r3) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r5 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r4) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r6 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r5) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r7 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r6) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r8 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r7) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r9 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r8) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r10 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r9) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r11 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r10) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r12 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r11) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r13 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r12) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r14 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r13) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r15 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r14) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r16 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r15) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r17 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r16) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r18 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r17) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r19 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r18) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r20 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r19) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r21 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r20) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r22 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r21) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r23 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r22) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r24 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r23) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r25 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r24) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r26 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r25) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r27 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r26) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r28 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r27) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r29 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r28) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r30 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r29) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r31 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r30) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r32 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r31) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r33 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r32) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  %r34 = scf.for %i = %c0 to %n step %c1 iter_args(%t = %r33) -> tensor<?xf32> {
    %u = tensor.insert %f into %t[%i] : tensor<?xf32>
    scf.yield %u : tensor<?xf32>
  }
  return %r34 : tensor<?xf32>
}

// -----

// A slice that drops the third dimension and keeps the first, of size 1 as
// well: a view of open strides could have dropped either.
// CHECK-LABEL: func.func @reduced
// CHECK: %[[WHOLE:.*]] = memref.subview %arg0[0, 0, 1, 0] [1, %[[M:.*]], 1, %[[N:.*]]] [1, 2, 1, 1] : memref<1x?x2x?xf32> to memref<1x?x1x?xf32,
// CHECK: memref.copy %[[WHOLE]], %[[DENSE:.*]] : {{.*}} to memref<1x?x1x?xf32>
// CHECK: %[[VIEW:.*]] = memref.collapse_shape %[[DENSE]] {{\[\[}}0], [1, 2], [3]]
// CHECK: memref.copy %[[VIEW]], %{{.*}} to memref<1x?x?xf32>
func.func @reduced(%x: tensor<1x?x2x?xf32> {sdx.input = 0 : i64}, %m: index, %n: index) -> (tensor<1x?x?xf32> {onnx.name = "y"}) {
  %0 = tensor.extract_slice %x[0, 0, 1, 0] [1, %m, 1, %n] [1, 2, 1, 1] : tensor<1x?x2x?xf32> to tensor<1x?x?xf32>
  return %0 : tensor<1x?x?xf32>
}

// -----

// A step that a view of known strides would have lost with the dimension.
// CHECK-LABEL: func.func @step_of_one
// CHECK: %[[WHOLE:.*]] = memref.subview %arg0[0, 9, 0] [61, 1, 1] [2, 3, 1] : memref<122x12x1xf32> to memref<61x1x1xf32, strided<[24, 3, 1], offset: 9>>
// CHECK: memref.collapse_shape %[[WHOLE]] {{\[\[}}0, 1], [2]]
// CHECK: memref.subview %{{.*}}[0, 4, 0] [61, 1, 1] [1, 5, 1] : memref<61x12x1xf32> to memref<61x1x1xf32, strided<[12, 5, 1], offset: 4>>
// CHECK-NOT: to memref<61x1xf32, strided<[12, 5]
func.func @step_of_one(%x: tensor<122x12x1xf32> {sdx.input = 0 : i64}, %y: tensor<61x12x1xf32> {sdx.input = 1 : i64}) -> (tensor<61x12x1xf32> {onnx.name = "z"}) {
  %0 = tensor.extract_slice %x[0, 9, 0] [61, 1, 1] [2, 3, 1] : tensor<122x12x1xf32> to tensor<61x1xf32>
  %1 = tensor.insert_slice %0 into %y[0, 4, 0] [61, 1, 1] [1, 5, 1] : tensor<61x1xf32> into tensor<61x12x1xf32>
  return %1 : tensor<61x12x1xf32>
}

// -----

func.func private @k0(memref<1x?x?xf32>, memref<1x?x?xf32>) attributes {sdx.kernel}

// The same where it is put into another.
// CHECK-LABEL: func.func @inserted
// CHECK: memref.subview %{{.*}}[0, 0, 1, 0] [1, %{{.*}}, 1, %{{.*}}] [1, 1, 1, 1] : memref<1x?x2x?xf32> to memref<1x?x1x?xf32,
// CHECK-NOT: to memref<1x?x?xf32
func.func @inserted(%x: tensor<1x?x?xf32> {sdx.input = 0 : i64}, %w: tensor<1x?x2x?xf32> {sdx.input = 1 : i64}, %m: index, %n: index) -> (tensor<1x?x2x?xf32> {onnx.name = "y"}) {
  %e = tensor.empty(%m, %n) : tensor<1x?x?xf32>
  %0 = sdx.call @k0(%x : tensor<1x?x?xf32>) outs(%e : tensor<1x?x?xf32>) -> tensor<1x?x?xf32>
  %1 = tensor.insert_slice %0 into %w[0, 0, 1, 0] [1, %m, 1, %n] [1, 1, 1, 1] : tensor<1x?x?xf32> into tensor<1x?x2x?xf32>
  return %1 : tensor<1x?x2x?xf32>
}

// -----

func.func private @k0(memref<1x4xf32>, memref<1x4xf32>) attributes {sdx.kernel}

// Where sizes are known each is in its place before the next is made.
// CHECK-LABEL: func.func @inserted_in_turn
// CHECK: sdx.call @k0
// CHECK: memref.copy %{{.*}} to memref<1x1x4xf32, strided<[4, 4, 1]>>
// CHECK: sdx.call @k0
// CHECK: memref.copy %{{.*}} to memref<1x1x4xf32, strided<[4, 4, 1], offset: 4>>
func.func @inserted_in_turn(%x: tensor<1x4xf32> {sdx.input = 0 : i64}, %z: tensor<1x4xf32> {sdx.input = 1 : i64}) -> (tensor<2x1x4xf32> {onnx.name = "y"}) {
  %e = tensor.empty() : tensor<1x4xf32>
  %0 = sdx.call @k0(%x : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  %1 = sdx.call @k0(%z : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
  %w = tensor.empty() : tensor<2x1x4xf32>
  %2 = tensor.insert_slice %0 into %w[0, 0, 0] [1, 1, 4] [1, 1, 1] : tensor<1x4xf32> into tensor<2x1x4xf32>
  %3 = tensor.insert_slice %1 into %2[1, 0, 0] [1, 1, 4] [1, 1, 1] : tensor<1x4xf32> into tensor<2x1x4xf32>
  return %3 : tensor<2x1x4xf32>
}

// -----

func.func private @k0(f32, memref<8xf32>) attributes {sdx.kernel}

// A kernel that updates what a loop carries works in its memory: the only copy
// is that of the argument.
// CHECK-LABEL: func.func @updated_in_a_loop
// CHECK: memref.copy %arg0, %[[STATE:.*]] :
// CHECK: scf.for
// CHECK-NOT: memref.copy
// CHECK: sdx.call @k0(%{{.*}} : f32) outs(%[[STATE]] : memref<8xf32>) {updates = array<i64: 0>}
// CHECK-NOT: memref.copy
// CHECK: }
func.func @updated_in_a_loop(%x: tensor<8xf32> {sdx.input = 0 : i64}, %n: index, %v: f32) -> (tensor<8xf32> {onnx.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<8xf32>) {
    %1 = sdx.call @k0(%v : f32) outs(%s : tensor<8xf32>) {updates = array<i64: 0>} -> tensor<8xf32>
    scf.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func private @k0(f32, memref<8xf32>) attributes {sdx.kernel}

// What others still read is copied before a kernel updates it.
// CHECK-LABEL: func.func @updated_copy
// CHECK: memref.copy %arg0, %[[COPY:.*]] :
// CHECK: sdx.call @k0(%{{.*}} : f32) outs(%[[COPY]] : memref<8xf32>) {updates = array<i64: 0>}
func.func @updated_copy(%x: tensor<8xf32> {sdx.input = 0 : i64}, %v: f32) -> (tensor<8xf32> {onnx.name = "y"}, tensor<8xf32> {onnx.name = "z"}) {
  %0 = sdx.call @k0(%v : f32) outs(%x : tensor<8xf32>) {updates = array<i64: 0>} -> tensor<8xf32>
  return %0, %x : tensor<8xf32>, tensor<8xf32>
}

// -----

func.func private @k0(memref<4xf32>, memref<1x8xf32>) attributes {sdx.kernel}
func.func private @k1(memref<1x8xf32>, memref<1x8xf32>) attributes {sdx.kernel}

// So is one that a kernel changes before it is a result.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = sdx.output_buffer 1() : memref<1x8xf32>
// CHECK: %[[A:.*]] = memref.subview %[[ALL]][0, 0]
// CHECK: memref.copy %arg0, %[[A]]
// CHECK: %[[B:.*]] = memref.subview %[[ALL]][0, 4]
// CHECK: memref.copy %arg1, %[[B]]
// CHECK: sdx.call @k0(%arg2 : memref<4xf32>) outs(%[[ALL]] : memref<1x8xf32>) {updates = array<i64: 0>}
// CHECK: sdx.call @k1(%[[ALL]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<1x4xf32> {sdx.input = 0 : i64}, %y: tensor<1x4xf32> {sdx.input = 1 : i64}, %z: tensor<4xf32> {sdx.input = 2 : i64}) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %all = tensor.empty() : tensor<1x8xf32>
  %0 = tensor.insert_slice %x into %all[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %1 = tensor.insert_slice %y into %0[0, 4] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<1x8xf32>
  %2 = sdx.call @k0(%z : tensor<4xf32>) outs(%1 : tensor<1x8xf32>) {updates = array<i64: 0>} -> tensor<1x8xf32>
  %er = tensor.empty() : tensor<1x8xf32>
  %r = sdx.call @k1(%2 : tensor<1x8xf32>) outs(%er : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %r, %2 : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

func.func private @k0(memref<?x4xf32>, memref<?x4xf32>) attributes {sdx.kernel}

// A branch makes its result where the caller wants it, or copies it there: its
// size is known before.
// CHECK-LABEL: func.func @branches
// CHECK-SAME:    (%[[X:.*]]: memref<?x?xf32>
// CHECK:         %[[M:.*]] = arith.select %{{.*}}, %c4, %{{.*}} : index
// CHECK:         %[[OK:.*]] = arith.cmpi eq, %[[M]], %c4
// CHECK:         sdx.check %[[OK]]
// CHECK:         %[[N:.*]] = memref.dim %[[X]], %c0
// CHECK:         %[[Y:.*]] = sdx.output_buffer 0(%[[N]]) : memref<?x4xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         scf.if %{{.*}} {
// CHECK:           sdx.call @k0({{.*}}) outs(%[[Y]] : memref<?x4xf32>)
// CHECK:         } else {
// CHECK:           memref.copy %{{.*}}, %[[Y]]
// CHECK:         }
// CHECK-NEXT:    return
func.func @branches(%x: tensor<?x?xf32> {sdx.input = 0 : i64}, %w: tensor<?x4xf32> {sdx.input = 1 : i64}, %p: i1) -> (tensor<?x4xf32> {onnx.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %r = scf.if %p -> (tensor<?x?xf32>) {
    %e = tensor.empty(%n) : tensor<?x4xf32>
    %k = sdx.call @k0(%w : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %s = tensor.cast %k : tensor<?x4xf32> to tensor<?x?xf32>
    scf.yield %s : tensor<?x?xf32>
  } else {
    scf.yield %x : tensor<?x?xf32>
  }
  %d = tensor.dim %r, %c1 : tensor<?x?xf32>
  %ok = arith.cmpi eq, %d, %c4 : index
  sdx.check %ok, "not {0}"(%d)
  %y = tensor.cast %r : tensor<?x?xf32> to tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// What something else reads, too, stays one value.
// CHECK-LABEL: func.func @read_branches
// CHECK:         %[[R:.*]] = arith.select %{{.*}} : memref<4xf32>
// CHECK:         memref.copy %[[R]]
// CHECK:         memref.copy %[[R]]
func.func @read_branches(%x: tensor<4xf32> {sdx.input = 0 : i64}, %w: tensor<4xf32> {sdx.input = 1 : i64}, %p: i1) -> (tensor<4xf32> {onnx.name = "y"}, tensor<4xf32> {onnx.name = "z"}) {
  %r = scf.if %p -> (tensor<4xf32>) {
    scf.yield %w : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r, %r : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @k0(memref<4xf32>, memref<4xf32>) attributes {sdx.kernel}

// What is known before a branch that gives it is copied: the other branch
// writes a result of its own there, and may read it after.
// CHECK-LABEL: func.func @known_before
// CHECK-DAG:     %[[Y:.*]] = sdx.output_buffer 0
// CHECK-DAG:     %[[Z:.*]] = sdx.output_buffer 1
// CHECK:         sdx.call @k0(%arg0 : memref<4xf32>) outs(%[[A:.*]] :
// CHECK:         scf.if %{{.*}} {
// CHECK-DAG:       memref.copy %[[A]], %[[Y]]
// CHECK-DAG:       sdx.call @k0(%arg0 : memref<4xf32>) outs(%[[Z]] :
// CHECK:         } else {
// CHECK:           sdx.call @k0(%arg0 : memref<4xf32>) outs(%[[Y]] :
// CHECK:           sdx.call @k0(%[[A]] : memref<4xf32>) outs(%[[Z]] :
// CHECK:         }
// CHECK-NEXT:    return
func.func @known_before(%x: tensor<4xf32> {sdx.input = 0 : i64}, %p: i1) -> (tensor<4xf32> {onnx.name = "y"}, tensor<4xf32> {onnx.name = "z"}) {
  %e = tensor.empty() : tensor<4xf32>
  %a = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r:2 = scf.if %p -> (tensor<4xf32>, tensor<4xf32>) {
    %b = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a, %b : tensor<4xf32>, tensor<4xf32>
  } else {
    %b = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %c = sdx.call @k0(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b, %c : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @k0(memref<4xf32>, memref<4xf32>) attributes {sdx.kernel}
func.func private @k1(f32, memref<4xf32>) attributes {sdx.kernel}

// Nor is what a branch changes of a tensor that is there before it.
// CHECK-LABEL: func.func @changed_in_a_branch
// CHECK:         %[[Y:.*]] = sdx.output_buffer 0
// CHECK:         sdx.call @k0(%arg0 : memref<4xf32>) outs(%[[A:.*]] :
// CHECK:         scf.if %{{.*}} {
// CHECK:           sdx.call @k1(%{{.*}} : f32) outs(%[[A]] : memref<4xf32>)
// CHECK:           memref.copy %[[A]], %[[Y]]
// CHECK:         } else {
// CHECK:           sdx.call @k0(%[[A]] : memref<4xf32>) outs(%[[Y]] :
func.func @changed_in_a_branch(%x: tensor<4xf32> {sdx.input = 0 : i64}, %v: f32, %p: i1) -> (tensor<4xf32> {onnx.name = "y"}) {
  %e = tensor.empty() : tensor<4xf32>
  %a = sdx.call @k0(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.if %p -> (tensor<4xf32>) {
    %b = sdx.call @k1(%v : f32) outs(%a : tensor<4xf32>) {updates = array<i64: 0>} -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  } else {
    %b = sdx.call @k0(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Whether an operand is broadcast only the run knows: a kernel of its own reads
// what there is. The one that would make it whole is gone.
// CHECK-LABEL: func.func @maybe_broadcast
// CHECK-SAME:    (%[[X:.*]]: memref<?xf32> {{{.*}}}, %[[Z:.*]]: memref<?x?xf32> {{{.*}}}, %[[NEEDED:.*]]: i1, %[[ONE:.*]]: i1)
// CHECK:         %[[Y:.*]] = sdx.output_buffer 0
// CHECK-NOT:     memref.alloc
// CHECK:         scf.if %[[NEEDED]] {
// CHECK-NEXT:      sdx.call @add_broadcast(%[[Z]], %[[X]], %[[ONE]] : memref<?x?xf32>, memref<?xf32>, i1) outs(%[[Y]] : memref<?x?xf32>)
// CHECK-NEXT:    } else {
// CHECK-NEXT:      sdx.call @add(%[[X]], %[[Z]] : memref<?xf32>, memref<?x?xf32>) outs(%[[Y]] : memref<?x?xf32>)
// CHECK-NEXT:    }
// CHECK-NEXT:    return
// CHECK-NOT:   @whole
// CHECK:       func.func private @add(
// CHECK:       func.func private @add_broadcast(%{{.*}}: memref<?x?xf32>, %[[FROM:.*]]: memref<?xf32>, %[[IS_ONE:.*]]: i1, %{{.*}}: memref<?x?xf32>)
// CHECK:         %[[T:.*]] = bufferization.to_tensor %[[FROM]]
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<?x?xf32>)
// CHECK:           %[[J:.*]] = linalg.index 1
// CHECK:           %[[AT:.*]] = arith.select %[[IS_ONE]], %{{.*}}, %[[J]]
// CHECK:           %[[READ:.*]] = tensor.extract %[[T]][%[[AT]]]
// CHECK:           arith.subf %[[READ]], %{{.*}}
func.func @maybe_broadcast(%x: tensor<?xf32> {sdx.input = 0 : i64}, %z: tensor<?x?xf32> {sdx.input = 1 : i64}, %needed: i1, %one: i1) -> (tensor<?x?xf32> {onnx.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %z, %c0 : tensor<?x?xf32>
  %n = tensor.dim %z, %c1 : tensor<?x?xf32>
  %w = scf.if %needed -> (tensor<?xf32>) {
    %e = tensor.empty(%n) : tensor<?xf32>
    %b = sdx.call @whole(%x, %one : tensor<?xf32>, i1) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %y = sdx.call @add(%w, %z : tensor<?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
func.func private @whole(%x: memref<?xf32>, %one: i1, %out: memref<?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  %n = memref.dim %out, %c0 : memref<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %at = arith.select %one, %c0, %i : index
    %v = tensor.extract %t[%at] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
  return
}
func.func private @add(%x: memref<?xf32>, %z: memref<?x?xf32>, %out: memref<?x?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
  %u = bufferization.to_tensor %z restrict : memref<?x?xf32> to tensor<?x?xf32>
  %m = memref.dim %out, %c0 : memref<?x?xf32>
  %n = memref.dim %out, %c1 : memref<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%t, %u : tensor<?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<?x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x?xf32>, memref<?x?xf32>) -> ()
  return
}
