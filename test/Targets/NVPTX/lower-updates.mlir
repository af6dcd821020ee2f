// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-updates))' | FileCheck %s

!x = memref<50x64xf32, #gpu.address_space<global>>
!i = memref<6xi64, #gpu.address_space<global>>
!u = memref<6x64xf32, #gpu.address_space<global>>

// Few rows: a thread has 16 bytes of one and looks whether a later one has the
// same place.
// CHECK-LABEL: func private @rows
// CHECK-SAME: %[[I:.*]]: memref<6xi64, {{.*}}, %[[U:.*]]: memref<6x64xf32, {{.*}}, %[[X:.*]]: memref<50x64xf32
// CHECK-NOT: memref.copy
// CHECK: scf.parallel
// CHECK: memref.load %[[I]]
// CHECK: sdx.check
// CHECK: scf.for %{{.*}} = %{{.*}} to %c6{{.*}} step %c1{{.*}} iter_args(%{{.*}} = %false
// CHECK: memref.load %[[I]]
// CHECK-NOT: sdx.check
// CHECK: arith.cmpi eq
// CHECK: scf.if
// CHECK-COUNT-4: memref.load %[[U]]
// CHECK-COUNT-4: memref.store %{{.*}}, %{{.*}} : memref<1x50x64xf32
// CHECK: nv.step = "update", nv.threads = 256 : i64
// CHECK-NOT: scf.forall
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @rows(%i: !i, %u: !u, %x: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c50 = arith.constant 50 : index
  %m = memref.expand_shape %x [[0, 1], [2]] output_shape [1, 50, 64] : !x into memref<1x50x64xf32, #gpu.address_space<global>>
  %ti = bufferization.to_tensor %i restrict : !i to tensor<6xi64>
  %tu = bufferization.to_tensor %u restrict : !u to tensor<6x64xf32>
  %tx = bufferization.to_tensor %m restrict writable : memref<1x50x64xf32, #gpu.address_space<global>> to tensor<1x50x64xf32>
  %r = scf.forall (%task) in (1) shared_outs(%out = %tx) -> (tensor<1x50x64xf32>) {
    %p = tensor.extract_slice %out[0, 0, 0] [1, 50, 64] [1, 1, 1] : tensor<1x50x64xf32> to tensor<50x64xf32>
    %s = scf.for %k = %c0 to %c6 step %c1 iter_args(%t = %p) -> (tensor<50x64xf32>) {
      %at = tensor.extract %ti[%k] : tensor<6xi64>
      %row = arith.index_cast %at : i64 to index
      %ok = arith.cmpi ult, %row, %c50 : index
      sdx.check %ok, "index {0} is out of range"(%row)
      %safe = arith.select %ok, %row, %c0 : index
      %piece = tensor.extract_slice %tu[%k, 0] [1, 64] [1, 1] : tensor<6x64xf32> to tensor<64xf32>
      %n = tensor.insert_slice %piece into %t[%safe, 0] [1, 64] [1, 1] : tensor<64xf32> into tensor<50x64xf32>
      scf.yield %n : tensor<50x64xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[0, 0, 0] [1, 50, 64] [1, 1, 1] : tensor<50x64xf32> into tensor<1x50x64xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %m : (tensor<1x50x64xf32>, memref<1x50x64xf32, #gpu.address_space<global>>) -> ()
  return
}
}

// -----

!x = memref<1x?xf32, #gpu.address_space<global>>
!i = memref<?xi64, #gpu.address_space<global>>
!u = memref<?xf32, #gpu.address_space<global>>

// The host chooses: few updates look at the later ones, of many the last one of
// each place is found before.
// CHECK-LABEL: func private @elements
// CHECK: memref.copy %arg2, %arg3
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %{{.*}}, %c65
// CHECK: arith.select %[[FEW]], %{{.*}}, %c0
// CHECK: scf.parallel
// CHECK: %[[MANY:.*]] = arith.xori %[[FEW]]
// CHECK: %[[OWNERS:.*]] = memref.alloc(%{{.*}}) : memref<?xi64, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: memref.store %{{.*}}, %[[OWNERS]]
// CHECK: scf.parallel
// CHECK: llvm.atomicrmw max %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, i64
// CHECK: scf.parallel
// CHECK: memref.load %[[OWNERS]]
// CHECK: memref.store %{{.*}}, %arg3
// CHECK: memref.dealloc %[[OWNERS]]
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @elements(%i: !i, %u: !u, %x: !x, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %ti = bufferization.to_tensor %i restrict : !i to tensor<?xi64>
  %tu = bufferization.to_tensor %u restrict : !u to tensor<?xf32>
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x?xf32>
  %count = memref.dim %i, %c0 : !i
  %size = memref.dim %x, %c1 : !x
  %e = tensor.empty(%size) : tensor<1x?xf32>
  %c = linalg.copy ins(%tx : tensor<1x?xf32>) outs(%e : tensor<1x?xf32>) -> tensor<1x?xf32>
  %r = scf.forall (%task) in (1) shared_outs(%out = %c) -> (tensor<1x?xf32>) {
    %p = tensor.extract_slice %out[0, 0] [1, %size] [1, 1] : tensor<1x?xf32> to tensor<?xf32>
    %s = scf.for %k = %c0 to %count step %c1 iter_args(%t = %p) -> (tensor<?xf32>) {
      %at = tensor.extract %ti[%k] : tensor<?xi64>
      %place = arith.index_cast %at : i64 to index
      %v = tensor.extract %tu[%k] : tensor<?xf32>
      %n = tensor.insert %v into %t[%place] : tensor<?xf32>
      scf.yield %n : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[0, 0] [1, %size] [1, 1] : tensor<?xf32> into tensor<1x?xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x?xf32>, !x) -> ()
  return
}
}

// -----

!x = memref<1x9xf16, #gpu.address_space<global>>
!i = memref<30xi64, #gpu.address_space<global>>
!u = memref<30xf16, #gpu.address_space<global>>

// Elements that meet are exchanged until nobody was faster; the result starts
// from a number.
// CHECK-LABEL: func private @products
// CHECK: scf.parallel
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "fill"
// CHECK: scf.parallel
// CHECK: scf.while
// CHECK: arith.mulf
// CHECK: llvm.cmpxchg %{{.*}} syncscope("device") monotonic monotonic : !llvm.ptr<1>, i16
// CHECK-LABEL: func private @differences
// CHECK: scf.forall
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @products(%i: !i, %u: !u, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  %one = arith.constant 1.0 : f16
  %ti = bufferization.to_tensor %i restrict : !i to tensor<30xi64>
  %tu = bufferization.to_tensor %u restrict : !u to tensor<30xf16>
  %e = tensor.empty() : tensor<1x9xf16>
  %f = linalg.fill ins(%one : f16) outs(%e : tensor<1x9xf16>) -> tensor<1x9xf16>
  %r = scf.forall (%task) in (1) shared_outs(%out = %f) -> (tensor<1x9xf16>) {
    %p = tensor.extract_slice %out[0, 0] [1, 9] [1, 1] : tensor<1x9xf16> to tensor<9xf16>
    %s = scf.for %k = %c0 to %c30 step %c1 iter_args(%t = %p) -> (tensor<9xf16>) {
      %at = tensor.extract %ti[%k] : tensor<30xi64>
      %place = arith.index_cast %at : i64 to index
      %v = tensor.extract %tu[%k] : tensor<30xf16>
      %old = tensor.extract %t[%place] : tensor<9xf16>
      %w = arith.mulf %old, %v : f16
      %n = tensor.insert %w into %t[%place] : tensor<9xf16>
      scf.yield %n : tensor<9xf16>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[0, 0] [1, 9] [1, 1] : tensor<9xf16> into tensor<1x9xf16>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x9xf16>, !x) -> ()
  return
}

// The order of differences matters.
func.func private @differences(%i: !i, %u: !u, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c30 = arith.constant 30 : index
  %one = arith.constant 1.0 : f16
  %ti = bufferization.to_tensor %i restrict : !i to tensor<30xi64>
  %tu = bufferization.to_tensor %u restrict : !u to tensor<30xf16>
  %e = tensor.empty() : tensor<1x9xf16>
  %f = linalg.fill ins(%one : f16) outs(%e : tensor<1x9xf16>) -> tensor<1x9xf16>
  %r = scf.forall (%task) in (1) shared_outs(%out = %f) -> (tensor<1x9xf16>) {
    %p = tensor.extract_slice %out[0, 0] [1, 9] [1, 1] : tensor<1x9xf16> to tensor<9xf16>
    %s = scf.for %k = %c0 to %c30 step %c1 iter_args(%t = %p) -> (tensor<9xf16>) {
      %at = tensor.extract %ti[%k] : tensor<30xi64>
      %place = arith.index_cast %at : i64 to index
      %v = tensor.extract %tu[%k] : tensor<30xf16>
      %old = tensor.extract %t[%place] : tensor<9xf16>
      %w = arith.subf %v, %old : f16
      %n = tensor.insert %w into %t[%place] : tensor<9xf16>
      scf.yield %n : tensor<9xf16>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[0, 0] [1, 9] [1, 1] : tensor<9xf16> into tensor<1x9xf16>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x9xf16>, !x) -> ()
  return
}
}

// -----

!x = memref<100xf32, #gpu.address_space<global>>
!i = memref<?xi64, #gpu.address_space<global>>
!u = memref<?xf32, #gpu.address_space<global>>

// A loop that is cut into blocks: a block has 16384 threads at most, and no more
// than there are updates.
// CHECK-LABEL: func private @blocks
// CHECK: %[[N:.*]] = memref.dim %arg0, %c0
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %[[N]], %c16384
// CHECK: arith.minsi %[[N]], %c16384
// CHECK: llvm.atomicrmw fadd
// CHECK: nv.step = "update", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @blocks(%i: !i, %u: !u, %x: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16384 = arith.constant 16384 : index
  %ti = bufferization.to_tensor %i restrict : !i to tensor<?xi64>
  %tu = bufferization.to_tensor %u restrict : !u to tensor<?xf32>
  %tx = bufferization.to_tensor %x restrict writable : !x to tensor<100xf32>
  %n = memref.dim %i, %c0 : !i
  %r = scf.forall (%task) in (1) shared_outs(%out = %tx) -> (tensor<100xf32>) {
    %p = tensor.extract_slice %out[0] [100] [1] : tensor<100xf32> to tensor<100xf32>
    %s = scf.for %first = %c0 to %n step %c16384 iter_args(%t = %p) -> (tensor<100xf32>) {
      %next = arith.addi %first, %c16384 : index
      %end = arith.minsi %next, %n : index
      %v = scf.for %k = %first to %end step %c1 iter_args(%w = %t) -> (tensor<100xf32>) {
        %at = tensor.extract %ti[%k] : tensor<?xi64>
        %place = arith.index_cast %at : i64 to index
        %new = tensor.extract %tu[%k] : tensor<?xf32>
        %old = tensor.extract %w[%place] : tensor<100xf32>
        %sum = arith.addf %old, %new : f32
        %z = tensor.insert %sum into %w[%place] : tensor<100xf32>
        scf.yield %z : tensor<100xf32>
      }
      scf.yield %v : tensor<100xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[0] [100] [1] : tensor<100xf32> into tensor<100xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %x : (tensor<100xf32>, !x) -> ()
  return
}
}
