// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-scan))' | FileCheck %s

!x = memref<?x5000x1xf16, #gpu.address_space<global>>
!y = memref<?x5000x1xf32, #gpu.address_space<global>>

// A block has a row: 1024 elements at a time, of which a thread sums up four; 8
// steps scan the totals of 256 threads.
// CHECK-LABEL: func private @row
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<2048xi8
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1024 iter_args
// CHECK: arith.subi %{{.*}}, %{{.*}} : index
// CHECK: memref.load %arg0
// CHECK: arith.extf
// CHECK-COUNT-9: gpu.barrier
// CHECK-COUNT-4: memref.store %{{.*}}, %arg1
// CHECK: gpu.barrier
// CHECK-NOT: gpu.barrier
// CHECK: nv.step = "scan", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @row(%x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4999 = arith.constant 4999 : index
  %c5000 = arith.constant 5000 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x5000x1xf16>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x5000x1xf32>
  %r = scf.forall (%task) in (%n) shared_outs(%out = %e) -> (tensor<?x5000x1xf32>) {
    %p = tensor.extract_slice %out[%task, 0, 0] [1, 5000, 1] [1, 1, 1] : tensor<?x5000x1xf32> to tensor<5000x1xf32>
    %s:2 = scf.for %i = %c0 to %c5000 step %c1 iter_args(%t = %p, %sum = %zero) -> (tensor<5000x1xf32>, f32) {
      %at = arith.subi %c4999, %i : index
      %v = tensor.extract %tx[%task, %at, %c0] : tensor<?x5000x1xf16>
      %w = arith.extf %v : f16 to f32
      %a = arith.addf %sum, %w : f32
      %u = tensor.insert %a into %t[%at, %c0] : tensor<5000x1xf32>
      scf.yield %u, %a : tensor<5000x1xf32>, f32
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s#0 into %out[%task, 0, 0] [1, 5000, 1] [1, 1, 1] : tensor<5000x1xf32> into tensor<?x5000x1xf32>
    }
  } {mapping = [#sdx.task], sdx.scan = "sum reverse"}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x5000x1xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<4x100x64xi32, #gpu.address_space<global>>

// 64 neighbouring rows are those of 64 threads.
// CHECK-LABEL: func private @columns
// CHECK: scf.parallel {{.*}} to (%c1{{(_[0-9]+)?}})
// CHECK-NOT: nv.shared_memory
// CHECK: scf.for
// CHECK: memref.load %arg0
// CHECK: arith.muli
// CHECK: memref.store %{{.*}}, %arg1
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @columns(%x: !x, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %tx = bufferization.to_tensor %x restrict : !x to tensor<4x100x64xi32>
  %e = tensor.empty() : tensor<4x100x64xi32>
  %r = scf.forall (%task) in (4) shared_outs(%out = %e) -> (tensor<4x100x64xi32>) {
    %p = tensor.extract_slice %out[%task, 0, 0] [1, 100, 64] [1, 1, 1] : tensor<4x100x64xi32> to tensor<100x64xi32>
    %v = tensor.extract %tx[%task, %c0, %c0] : tensor<4x100x64xi32>
    %u = tensor.insert %v into %p[%c0, %c0] : tensor<100x64xi32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %out[%task, 0, 0] [1, 100, 64] [1, 1, 1] : tensor<100x64xi32> into tensor<4x100x64xi32>
    }
  } {mapping = [#sdx.task], sdx.scan = "product"}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<4x100x64xi32>, !x) -> ()
  return
}
}

// -----

!x = memref<2x100000x1xf32, #gpu.address_space<global>>

// Two rows are cut into 25 parts each: blocks sum the parts up, a block for each
// row scans their sums, and blocks scan the parts, beginning with those.
// CHECK-LABEL: func private @parts
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}, %{{.*}}) : memref<?x?x1xf32, #gpu.address_space<global>>
// CHECK: scf.parallel {{.*}} to (%c50{{(_[0-9]+)?}})
// CHECK: memref.load %arg0
// CHECK-NOT: memref.store %{{.*}}, %arg1
// CHECK: memref.store %{{.*}}, %[[SUMS]]
// CHECK: nv.step = "scan"
// CHECK: %[[ROWS:.*]] = memref.dim %[[SUMS]], %c0
// CHECK: scf.parallel {{.*}} to (%[[ROWS]])
// CHECK: memref.load %[[SUMS]]
// CHECK: memref.store %{{.*}}, %[[SUMS]]
// CHECK: nv.step = "scan"
// CHECK: scf.parallel {{.*}} to (%c50{{(_[0-9]+)?}})
// CHECK: %[[BEFORE:.*]] = memref.load %[[SUMS]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[BEFORE]])
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: nv.step = "scan"
// CHECK: memref.dealloc %[[SUMS]]
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @parts(%x: !x, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %tx = bufferization.to_tensor %x restrict : !x to tensor<2x100000x1xf32>
  %e = tensor.empty() : tensor<2x100000x1xf32>
  %r = scf.forall (%task) in (2) shared_outs(%out = %e) -> (tensor<2x100000x1xf32>) {
    %p = tensor.extract_slice %out[%task, 0, 0] [1, 100000, 1] [1, 1, 1] : tensor<2x100000x1xf32> to tensor<100000x1xf32>
    %v = tensor.extract %tx[%task, %c0, %c0] : tensor<2x100000x1xf32>
    %u = tensor.insert %v into %p[%c0, %c0] : tensor<100000x1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %u into %out[%task, 0, 0] [1, 100000, 1] [1, 1, 1] : tensor<100000x1xf32> into tensor<2x100000x1xf32>
    }
  } {mapping = [#sdx.task], sdx.scan = "sum"}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<2x100000x1xf32>, !x) -> ()
  return
}
}
