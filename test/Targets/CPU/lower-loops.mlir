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

// -----

// A product that no packed kernel computes: its right-hand side is copied to
// panels, and tiles of sums stay in registers.

// CHECK-LABEL: func.func private @product
// CHECK:         scf.parallel
// CHECK:           %[[PANEL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<30x[[WIDTH:[0-9]+]]xf64>
// CHECK:           scf.for
// CHECK:             vector.store {{.*}}, %[[PANEL]]
// CHECK:           scf.for
// CHECK-COUNT-24:    vector.load %arg2
// CHECK:             scf.for {{.*}} iter_args
// CHECK-COUNT-24:      vector.fma
// CHECK:             scf.yield
// CHECK-COUNT-24:    vector.store {{.*}}, %arg2
// CHECK:           memref.dealloc %[[PANEL]]
func.func private @product(%a: memref<24x30xf64>, %b: memref<30x96xf64>, %out: memref<24x96xf64>) attributes {sdx.kernel} {
  %x = bufferization.to_tensor %a restrict : memref<24x30xf64> to tensor<24x30xf64>
  %y = bufferization.to_tensor %b restrict : memref<30x96xf64> to tensor<30x96xf64>
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<24x96xf64>
  %f = linalg.fill ins(%zero : f64) outs(%e : tensor<24x96xf64>) -> tensor<24x96xf64>
  %r = linalg.matmul ins(%x, %y : tensor<24x30xf64>, tensor<30x96xf64>) outs(%f : tensor<24x96xf64>) -> tensor<24x96xf64>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<24x96xf64>, memref<24x96xf64>) -> ()
  return
}

// -----

// A search tests a vector of indices at a time.

// CHECK-LABEL: func.func private @search
// CHECK:         scf.while
// CHECK:         %[[MASK:.*]] = vector.create_mask
// CHECK:         %[[X:.*]] = vector.maskedload %arg0{{.*}}, %[[MASK]]
// CHECK:         %[[IS:.*]] = arith.cmpf ogt, %[[X]]
// CHECK:         %[[IN:.*]] = arith.andi %[[IS]], %[[MASK]]
// CHECK:         %[[ANY:.*]] = vector.reduction <or>, %[[IN]]
// CHECK:         scf.yield %{{.*}}, %[[ANY]]
func.func private @search(%a: memref<?xf32>, %limit: f32, %n: index, %out: memref<3xi1>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %no = arith.constant false
  %yes = arith.constant true
  %t = bufferization.to_tensor %a restrict : memref<?xf32> to tensor<?xf32>
  %e = tensor.empty() : tensor<3xi1>
  %r = scf.forall (%task) in (3) shared_outs(%o = %e) -> (tensor<3xi1>) {
    %slice = tensor.extract_slice %o[%task] [1] [1] : tensor<3xi1> to tensor<1xi1>
    %found:2 = scf.while (%i = %c0, %f = %no) : (index, i1) -> (index, i1) {
      %more = arith.cmpi slt, %i, %n : index
      %open = arith.xori %f, %yes : i1
      %on = arith.andi %more, %open : i1
      scf.condition(%on) %i, %f : index, i1
    } do {
    ^bb0(%i: index, %f: i1):
      %x = tensor.extract %t[%i] : tensor<?xf32>
      %is = arith.cmpf ogt, %x, %limit : f32
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %is : index, i1
    } attributes {sdx.any}
    %put = tensor.insert %found#1 into %slice[%c0] : tensor<1xi1>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %put into %o[%task] [1] [1] : tensor<1xi1> into tensor<3xi1>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3xi1>, memref<3xi1>) -> ()
  return
}

// -----

// Which index it is, the lanes tell; behind whole vectors it is asked one by one.

// CHECK-LABEL: func.func private @place
// CHECK:         %[[FOUND:.*]]:2 = scf.while
// CHECK:           arith.cmpi sle
// CHECK:           scf.if
// CHECK:             %[[X:.*]] = vector.load %arg0
// CHECK:             %[[IS:.*]] = arith.cmpf ogt, %[[X]]
// CHECK:             vector.bitcast %[[IS]]
// CHECK:         scf.if
// CHECK:           math.cttz %[[FOUND]]#1
// CHECK:         else
// CHECK:           scf.while (%{{.*}} = %[[FOUND]]#0
// CHECK:             memref.load %arg0
func.func private @place(%a: memref<?xf32>, %limit: f32, %n: index, %out: memref<3xindex>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %no = arith.constant false
  %yes = arith.constant true
  %t = bufferization.to_tensor %a restrict : memref<?xf32> to tensor<?xf32>
  %e = tensor.empty() : tensor<3xindex>
  %r = scf.forall (%task) in (3) shared_outs(%o = %e) -> (tensor<3xindex>) {
    %slice = tensor.extract_slice %o[%task] [1] [1] : tensor<3xindex> to tensor<1xindex>
    %found:2 = scf.while (%i = %c0, %f = %no) : (index, i1) -> (index, i1) {
      %more = arith.cmpi slt, %i, %n : index
      %open = arith.xori %f, %yes : i1
      %on = arith.andi %more, %open : i1
      scf.condition(%on) %i, %f : index, i1
    } do {
    ^bb0(%i: index, %f: i1):
      %x = tensor.extract %t[%i] : tensor<?xf32>
      %is = arith.cmpf ogt, %x, %limit : f32
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %is : index, i1
    } attributes {sdx.any}
    %place = arith.select %found#1, %found#0, %c0 : index
    %put = tensor.insert %place into %slice[%c0] : tensor<1xindex>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %put into %o[%task] [1] [1] : tensor<1xindex> into tensor<3xindex>
    }
  } {mapping = [#sdx.task]}
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<3xindex>, memref<3xindex>) -> ()
  return
}
