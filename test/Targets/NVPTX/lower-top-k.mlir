// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-top-k))' | FileCheck %s

!x = memref<?x5000xf32, #gpu.address_space<global>>
!v = memref<?x7xf32, #gpu.address_space<global>>
!i = memref<?x7xi64, #gpu.address_space<global>>

// Of a row 2048 elements are sorted in shared memory, then 1024 more at a time
// with the best of those before.
// CHECK-LABEL: func private @few
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<16384xi8
// CHECK: memref.load %arg0
// CHECK: arith.minui
// CHECK: scf.for %{{.*}} = %c2048{{.*}} to %{{.*}} step %c1024
// CHECK: memref.load %arg0
// CHECK: arith.minui
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "top_k", nv.threads = 256 : i64
// CHECK-NOT: scf.forall
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @few(%x: !x, %v: !v, %i: !i) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i64
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x5000xf32>
  %n = memref.dim %v, %c0 : !v
  %e = tensor.empty(%n) : tensor<?x7xf32>
  %f = tensor.empty(%n) : tensor<?x7xi64>
  %r:2 = scf.forall (%task) in (%n) shared_outs(%a = %e, %b = %f) -> (tensor<?x7xf32>, tensor<?x7xi64>) {
    %p = tensor.extract_slice %a[%task, 0] [1, 7] [1, 1] : tensor<?x7xf32> to tensor<7xf32>
    %q = tensor.extract_slice %b[%task, 0] [1, 7] [1, 1] : tensor<?x7xi64> to tensor<7xi64>
    %first = tensor.extract %tx[%task, %c0] : tensor<?x5000xf32>
    %s = tensor.insert %first into %p[%c0] : tensor<7xf32>
    %t = tensor.insert %none into %q[%c0] : tensor<7xi64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %a[%task, 0] [1, 7] [1, 1] : tensor<7xf32> into tensor<?x7xf32>
      tensor.parallel_insert_slice %t into %b[%task, 0] [1, 7] [1, 1] : tensor<7xi64> into tensor<?x7xi64>
    }
  } {mapping = [#sdx.task], sdx.top_k = "largest"}
  bufferization.materialize_in_destination %r#0 in restrict writable %v : (tensor<?x7xf32>, !v) -> ()
  bufferization.materialize_in_destination %r#1 in restrict writable %i : (tensor<?x7xi64>, !i) -> ()
  return
}
}

// -----

!x = memref<?x?xi8, #gpu.address_space<global>>
!i = memref<?x?xi64, #gpu.address_space<global>>

// Where nobody knows how many are wanted, the host chooses between shared memory
// and a buffer of the device.
// CHECK-LABEL: func private @open
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %{{.*}}, %c2049
// CHECK: arith.select %[[FEW]], %{{.*}}, %c0
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<32768xi8
// CHECK: %[[MANY:.*]] = arith.select %[[FEW]], %c0{{.*}}, %
// CHECK: %[[BUFFER:.*]] = memref.alloc(%[[MANY]], %{{.*}}) : memref<?x?xi64, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: memref.store %{{.*}}, %[[BUFFER]]
// CHECK: memref.dealloc %[[BUFFER]]
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @open(%x: !x, %i: !i) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : i64
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x?xi8>
  %n = memref.dim %i, %c0 : !i
  %k = memref.dim %i, %c1 : !i
  %e = tensor.empty(%n, %k) : tensor<?x?xi8>
  %f = tensor.empty(%n, %k) : tensor<?x?xi64>
  %r:2 = scf.forall (%task) in (%n) shared_outs(%a = %e, %b = %f) -> (tensor<?x?xi8>, tensor<?x?xi64>) {
    %p = tensor.extract_slice %a[%task, 0] [1, %k] [1, 1] : tensor<?x?xi8> to tensor<?xi8>
    %q = tensor.extract_slice %b[%task, 0] [1, %k] [1, 1] : tensor<?x?xi64> to tensor<?xi64>
    %first = tensor.extract %tx[%task, %c0] : tensor<?x?xi8>
    %s = tensor.insert %first into %p[%c0] : tensor<?xi8>
    %t = tensor.insert %none into %q[%c0] : tensor<?xi64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %a[%task, 0] [1, %k] [1, 1] : tensor<?xi8> into tensor<?x?xi8>
      tensor.parallel_insert_slice %t into %b[%task, 0] [1, %k] [1, 1] : tensor<?xi64> into tensor<?x?xi64>
    }
  } {mapping = [#sdx.task], sdx.top_k = "smallest unsigned"}
  bufferization.materialize_in_destination %r#1 in restrict writable %i : (tensor<?x?xi64>, !i) -> ()
  return
}
}

// -----

!x = memref<3x100xi64, #gpu.address_space<global>>

// Of elements of 64 bits the key fills a word, and the index is a number beside
// it, which decides where keys are equal.
// CHECK-LABEL: func private @wide
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<1024xi8
// CHECK: nv.shared_memory : memref<512xi8
// CHECK: %[[KEY:.*]] = arith.xori %{{.*}}, %c-9223372036854775808
// CHECK: arith.index_cast %{{.*}} : index to i32
// CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i64
// CHECK: nv.step = "top_k", nv.threads = 64 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @wide(%x: !x, %y: !x, %i: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i64
  %tx = bufferization.to_tensor %x restrict : !x to tensor<3x100xi64>
  %e = tensor.empty() : tensor<3x100xi64>
  %f = tensor.empty() : tensor<3x100xi64>
  %r:2 = scf.forall (%task) in (3) shared_outs(%a = %e, %b = %f) -> (tensor<3x100xi64>, tensor<3x100xi64>) {
    %p = tensor.extract_slice %a[%task, 0] [1, 100] [1, 1] : tensor<3x100xi64> to tensor<100xi64>
    %q = tensor.extract_slice %b[%task, 0] [1, 100] [1, 1] : tensor<3x100xi64> to tensor<100xi64>
    %first = tensor.extract %tx[%task, %c0] : tensor<3x100xi64>
    %s = tensor.insert %first into %p[%c0] : tensor<100xi64>
    %t = tensor.insert %none into %q[%c0] : tensor<100xi64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %a[%task, 0] [1, 100] [1, 1] : tensor<100xi64> into tensor<3x100xi64>
      tensor.parallel_insert_slice %t into %b[%task, 0] [1, 100] [1, 1] : tensor<100xi64> into tensor<3x100xi64>
    }
  } {mapping = [#sdx.task], sdx.top_k = "smallest"}
  bufferization.materialize_in_destination %r#0 in restrict writable %y : (tensor<3x100xi64>, !x) -> ()
  bufferization.materialize_in_destination %r#1 in restrict writable %i : (tensor<3x100xi64>, !x) -> ()
  return
}
}
