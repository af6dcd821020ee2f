// REQUIRES: nvptx
// RUN: onnx-opt %s -split-input-file -sdx-place-buffers | FileCheck %s

// What kernels read and write is in the device's memory, inputs and results as
// well; what the host reads of it is copied.

// CHECK: func.func private @k0(memref<4xf32, #gpu.address_space<global>>, memref<4xf32, #gpu.address_space<global>>)
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: memref<4xf32, #gpu.address_space<global>> {sdx.input = 0 : i64}
// CHECK: %[[OUT:.*]] = sdx.output_buffer 0() : memref<4xf32, #gpu.address_space<global>>
// CHECK: %[[A:.*]] = memref.alloc() : memref<4xf32, #gpu.address_space<global>>
// CHECK: sdx.call @k0(%[[X]] : {{.*}}) outs(%[[A]]
// CHECK: %[[H:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
// CHECK: memref.copy %[[A]], %[[H]]
// CHECK: memref.load %[[H]][
// One copy serves until somebody writes.
// CHECK-NOT: memref.copy
// CHECK: memref.load %[[H]][
// CHECK: sdx.call @k0(%[[A]] : {{.*}}) outs(%[[OUT]]
// CHECK: sdx.call @k0(%[[OUT]] : {{.*}}) outs(%[[A]]
// CHECK: memref.copy %[[A]],
// CHECK: memref.load
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func private @k0(memref<4xf32>, memref<4xf32>) attributes {sdx.kernel}
  func.func @main(%x: memref<4xf32> {sdx.input = 0}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %out = sdx.output_buffer 0() : memref<4xf32>
    %a = memref.alloc() : memref<4xf32>
    sdx.call @k0(%x : memref<4xf32>) outs(%a : memref<4xf32>)
    %0 = memref.load %a[%c0] : memref<4xf32>
    %1 = memref.load %a[%c1] : memref<4xf32>
    sdx.call @k0(%a : memref<4xf32>) outs(%out : memref<4xf32>)
    sdx.call @k0(%out : memref<4xf32>) outs(%a : memref<4xf32>)
    %2 = memref.load %a[%c1] : memref<4xf32>
    return
  }
}

// -----

// What the host writes stays with it; kernels get a copy. An input, and a
// constant, that both need comes twice.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]*]]: memref<2xi64, #gpu.address_space<global>> {sdx.input = 0 : i64}
// CHECK-SAME: %[[TWIN:[a-z0-9]*]]: memref<2xi64> {sdx.input = 0 : i64})
// CHECK: %[[N:.*]] = memref.load %[[TWIN]][
// CHECK: %[[S:.*]] = memref.alloc() : memref<2xi64>
// CHECK: memref.store %[[N]], %[[S]][
// CHECK: memref.store %[[N]], %[[S]][
// CHECK: %[[D:.*]] = memref.alloc() {{.*}} : memref<2xi64, #gpu.address_space<global>>
// CHECK: memref.copy %[[S]], %[[D]]
// CHECK: sdx.call @k0(%[[X]], %[[D]] :
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func private @k0(memref<2xi64>, memref<2xi64>, memref<2xi64>) attributes {sdx.kernel}
  func.func @main(%x: memref<2xi64> {sdx.input = 0}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %out = sdx.output_buffer 0() : memref<2xi64>
    %n = memref.load %x[%c0] : memref<2xi64>
    %s = memref.alloc() : memref<2xi64>
    memref.store %n, %s[%c0] : memref<2xi64>
    memref.store %n, %s[%c1] : memref<2xi64>
    sdx.call @k0(%x, %s : memref<2xi64>, memref<2xi64>) outs(%out : memref<2xi64>)
    return
  }
}

// -----

// A loop's state is in one place from its initial value to its result, and
// pieces of buffers are where these are: what has gaps is made dense there
// before it goes to the host.

// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (memref<4x4xf32, #gpu.address_space<global>>)
// CHECK: %[[V:.*]] = memref.subview %[[R]]
// CHECK: %[[H:.*]] = memref.alloc() {{.*}} : memref<4x2xf32>
// CHECK: %[[DENSE:.*]] = memref.alloc() {{.*}} : memref<4x2xf32, #gpu.address_space<global>>
// CHECK: memref.copy %[[V]], %[[DENSE]]
// CHECK: memref.copy %[[DENSE]], %[[H]]
// CHECK: sdx.runtime_call "sdx_rt_f"(%[[H]] :
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func private @k0(memref<4x4xf32>, memref<4x4xf32>) attributes {sdx.kernel}
  func.func @main(%x: memref<4x4xf32> {sdx.input = 0}, %o: memref<i64> {sdx.input = 1}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %a = memref.alloc() : memref<4x4xf32>
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %a) -> (memref<4x4xf32>) {
      %b = memref.alloc() : memref<4x4xf32>
      sdx.call @k0(%s : memref<4x4xf32>) outs(%b : memref<4x4xf32>)
      scf.yield %b : memref<4x4xf32>
    }
    %v = memref.subview %r[0, 1] [4, 2] [1, 1] : memref<4x4xf32> to memref<4x2xf32, strided<[4, 1], offset: 1>>
    sdx.runtime_call "sdx_rt_f" (%v : memref<4x2xf32, strided<[4, 1], offset: 1>>) outs(%o : memref<i64>)
    return
  }
}

// -----

// A constant that kernels read is an argument, which is there once and for all.

// CHECK-LABEL: func.func @main
// CHECK-SAME: memref<2xi64, #gpu.address_space<global>> {sdx.input = 0 : i64}
// CHECK-SAME: %[[C:[a-z0-9]*]]: memref<2xi64, #gpu.address_space<global>> {sdx.constant = dense<[1, 2]> : tensor<2xi64>})
// CHECK: sdx.call @k0(%{{.*}}, %[[C]] :
module attributes {sdx.target = #nv.target<sm = 80>} {
  memref.global "private" constant @table : memref<2xi64> = dense<[1, 2]>
  func.func private @k0(memref<2xi64>, memref<2xi64>, memref<2xi64>) attributes {sdx.kernel}
  func.func @main(%x: memref<2xi64> {sdx.input = 0}) {
    %out = sdx.output_buffer 0() : memref<2xi64>
    %c = memref.get_global @table : memref<2xi64>
    sdx.call @k0(%x, %c : memref<2xi64>, memref<2xi64>) outs(%out : memref<2xi64>)
    return
  }
}

// -----

// So is one that a loop begins with.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[C:[a-z0-9]*]]: memref<4x4xf32, #gpu.address_space<global>> {sdx.constant = dense<0.000000e+00> : tensor<4x4xf32>})
// CHECK-NOT: memref.get_global
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[C]])
module attributes {sdx.target = #nv.target<sm = 80>} {
  memref.global "private" constant @zeros : memref<4x4xf32> = dense<0.0>
  func.func private @k0(memref<4x4xf32>, memref<4x4xf32>) attributes {sdx.kernel}
  func.func @main(%x: memref<4x4xf32> {sdx.input = 0}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %out = sdx.output_buffer 0() : memref<4x4xf32>
    %a = memref.get_global @zeros : memref<4x4xf32>
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %a) -> (memref<4x4xf32>) {
      %b = memref.alloc() : memref<4x4xf32>
      sdx.call @k0(%s : memref<4x4xf32>) outs(%b : memref<4x4xf32>)
      scf.yield %b : memref<4x4xf32>
    }
    sdx.call @k0(%r : memref<4x4xf32>) outs(%out : memref<4x4xf32>)
    return
  }
}

// -----

// Without a device nothing changes.
// CHECK-LABEL: func.func @main
// CHECK-NOT: gpu.address_space
module attributes {sdx.target = #cpu.target<>} {
  func.func private @k0(memref<4xf32>, memref<4xf32>) attributes {sdx.kernel}
  func.func @main(%x: memref<4xf32> {sdx.input = 0}, %y: memref<4xf32> {sdx.input = 1}) {
    sdx.call @k0(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
}

// -----

// Copies to the host stand in a row where nothing is done on the device between
// them, but for one that is of the place that another one tells.
// CHECK: #nv.target<sm = 80>
// CHECK-LABEL: func.func @main
// CHECK: sdx.call @k0(
// CHECK: sdx.call @k0(
// CHECK: memref.copy %{{.*}}, %[[B:.*]] :
// CHECK-NEXT: memref.copy %{{.*}}, %[[A:.*]] :
// CHECK: memref.load %[[A]][
// CHECK: memref.load %[[B]][
// CHECK: memref.copy
// CHECK: memref.load
module attributes {sdx.target = #nv.target<sm = 80>} {
  func.func private @k0(memref<4xi64>, memref<4xi64>) attributes {sdx.kernel}
  func.func private @k1(memref<4xi64>, memref<1000xi64>) attributes {sdx.kernel}
  func.func @main(%x: memref<4xi64> {sdx.input = 0}) {
    %c0 = arith.constant 0 : index
    %a = memref.alloc() : memref<4xi64>
    %b = memref.alloc() : memref<4xi64>
    %c = memref.alloc() : memref<1000xi64>
    sdx.call @k1(%x : memref<4xi64>) outs(%c : memref<1000xi64>)
    sdx.call @k0(%x : memref<4xi64>) outs(%a : memref<4xi64>)
    sdx.call @k0(%x : memref<4xi64>) outs(%b : memref<4xi64>)
    %0 = memref.load %a[%c0] : memref<4xi64>
    %1 = memref.load %b[%c0] : memref<4xi64>
    %at = arith.index_cast %1 : i64 to index
    %2 = memref.load %c[%at] : memref<1000xi64>
    return
  }
}
