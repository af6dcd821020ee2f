// RUN: onnx-opt %s -split-input-file -cpu-lower-loops -canonicalize | FileCheck %s

// A gather: scalar loops that write straight to the destination.

// CHECK-LABEL: func.func private @gather
// CHECK-NOT:     memref.alloc
// CHECK:         scf.parallel (%[[I:.*]]) =
// CHECK:           %[[X:.*]] = memref.load %arg1[%[[I]]]
// CHECK:           %[[AT:.*]] = arith.index_cast %[[X]]
// CHECK:           %[[Y:.*]] = memref.load %arg0[%[[AT]]]
// CHECK:           memref.store %[[Y]], %arg2[%[[I]]]
func.func private @gather(%a: memref<?xf32>, %i: memref<8xi64>, %out: memref<8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %a restrict : memref<?xf32> to tensor<?xf32>
  %u = bufferization.to_tensor %i restrict : memref<8xi64> to tensor<8xi64>
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]}
    ins(%u : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: i64, %o: f32):
    %at = arith.index_cast %x : i64 to index
    %y = tensor.extract %t[%at] : tensor<?xf32>
    linalg.yield %y : f32
  } -> tensor<8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// -----

// A strided copy becomes a loop, not a call; a temporary of unknown size is
// freed.

// CHECK-LABEL: func.func private @slices
// CHECK:         %[[TMP:.*]] = memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         memref.dealloc %[[TMP]]
// CHECK:         return
func.func private @slices(%a: memref<?x8xf32>, %out: memref<8x?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %a restrict : memref<?x8xf32> to tensor<?x8xf32>
  %d = tensor.dim %t, %c0 : tensor<?x8xf32>
  %e0 = tensor.empty(%d) : tensor<?x8xf32>
  %s = linalg.map {math.exp} ins(%t : tensor<?x8xf32>) outs(%e0 : tensor<?x8xf32>)
  %e1 = tensor.empty(%d) : tensor<8x?xf32>
  %r = linalg.transpose ins(%s : tensor<?x8xf32>) outs(%e1 : tensor<8x?xf32>) permutation = [1, 0]
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<8x?xf32>, memref<8x?xf32>) -> ()
  return
}

// -----

// A program for each row: in place, and a parallel loop.

// CHECK-LABEL: func.func private @rows
// CHECK-NOT:     memref.alloc
// CHECK:         scf.parallel (%[[ROW:.*]]) =
// CHECK:           %[[PART:.*]] = memref.subview %arg1[%[[ROW]], 0]
// CHECK:           scf.for
// CHECK:             memref.store %{{.*}}, %[[PART]]
// CHECK-NOT:       memref.copy
// CHECK-NOT:       memref.load
// CHECK:         return
func.func private @rows(%a: memref<?x8xf32>, %out: memref<?x8xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %out, %c0 : memref<?x8xf32>
  %t = bufferization.to_tensor %a restrict : memref<?x8xf32> to tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = scf.forall (%row) in (%n) shared_outs(%all = %e) -> (tensor<?x8xf32>) {
    %part = tensor.extract_slice %all[%row, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
    %sorted = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %part) -> tensor<8xf32> {
      %x = tensor.extract %t[%row, %i] : tensor<?x8xf32>
      %next = tensor.insert %x into %s[%i] : tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %sorted into %all[%row, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    }
  }
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<?x8xf32>, memref<?x8xf32>) -> ()
  return
}
