// RUN: onnx-opt %s -pass-pipeline='builtin.module(func.func(nv-lower-gather))' | FileCheck %s

!i = memref<?xi64, #gpu.address_space<global>>
!x = memref<1000x768xf32, #gpu.address_space<global>>
!y = memref<?x768xf32, #gpu.address_space<global>>

// A thread has 16 bytes of a row, whose number it reads and checks.
// CHECK-LABEL: func private @rows
// CHECK-SAME: %[[I:.*]]: memref<?xi64, {{.*}}, %[[X:.*]]: memref<1000x768xf32, {{.*}}, %[[Y:.*]]: memref<?x768xf32
// CHECK: scf.parallel
// CHECK: %[[AT:.*]] = memref.load %[[I]]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[AT]]
// CHECK: sdx.check
// CHECK-COUNT-4: memref.load %[[X]][%[[ROW]], %
// CHECK-COUNT-4: memref.store %{{.*}}, %[[Y]]
// CHECK: nv.step = "gather", nv.threads = 256 : i64
// CHECK-NOT: scf.forall

// What is computed of pieces has no such kernel.
// CHECK-LABEL: func private @computed
// CHECK: scf.forall
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @rows(%i: !i, %x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1000 = arith.constant 1000 : index
  %ti = bufferization.to_tensor %i restrict : !i to tensor<?xi64>
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1000x768xf32>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x768xf32>
  %r = scf.forall (%task) in (%n) shared_outs(%out = %e) -> (tensor<?x768xf32>) {
    %at = tensor.extract %ti[%task] : tensor<?xi64>
    %row = arith.index_cast %at : i64 to index
    %ok = arith.cmpi ult, %row, %c1000 : index
    sdx.check %ok, "index {0} is out of range"(%row)
    %s = tensor.extract_slice %tx[%row, 0] [1, 768] [1, 1] : tensor<1000x768xf32> to tensor<768xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %out[%task, 0] [1, 768] [1, 1] : tensor<768xf32> into tensor<?x768xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x768xf32>, !y) -> ()
  return
}

func.func private @computed(%x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1000x768xf32>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x768xf32>
  %r = scf.forall (%task) in (%n) shared_outs(%out = %e) -> (tensor<?x768xf32>) {
    %s = tensor.extract_slice %tx[%task, 0] [1, 768] [1, 1] : tensor<1000x768xf32> to tensor<768xf32>
    %o = tensor.empty() : tensor<768xf32>
    %d = linalg.add ins(%s, %s : tensor<768xf32>, tensor<768xf32>) outs(%o : tensor<768xf32>) -> tensor<768xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %d into %out[%task, 0] [1, 768] [1, 1] : tensor<768xf32> into tensor<?x768xf32>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x768xf32>, !y) -> ()
  return
}
}
