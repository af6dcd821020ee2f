// RUN: onnx-opt %s --nv-compute-slices --split-input-file | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// The rotation of a vector by halves is one operation.
// CHECK-LABEL: func.func @rotate
// CHECK-SAME: %[[X:.*]]: tensor<4x64xf32>, %[[C:.*]]: tensor<4x64xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4x64xf32>)
// CHECK-DAG: %[[I:.*]] = linalg.index 0
// CHECK-DAG: %[[J:.*]] = linalg.index 1
// CHECK: %[[U:.*]] = tensor.extract %[[X]][%[[I]], %[[J]]]
// CHECK: %[[K:.*]] = arith.subi %[[J]], %{{.*}} : index
// CHECK: %[[SECOND:.*]] = arith.cmpi ult, %[[K]], %{{.*}} : index
// CHECK: %[[H:.*]] = scf.if %[[SECOND]] -> (f32) {
// CHECK: tensor.extract %[[X]][%[[I]], %[[K]]] : tensor<4x64xf32>
// CHECK: } else {
// CHECK: scf.if %{{.*}} -> (f32) {
// CHECK: %[[V:.*]] = tensor.extract %[[X]][%[[I]], %{{.*}}] : tensor<4x64xf32>
// CHECK: arith.negf %[[V]] : f32
// CHECK: %[[W:.*]] = tensor.extract %[[C]][%[[I]], %[[J]]]
// CHECK: %[[P:.*]] = arith.mulf %[[H]], %[[W]]
// CHECK: arith.addf %[[U]], %[[P]]
// CHECK-NOT: tensor.insert_slice
// CHECK: return %[[Y]]
func.func @rotate(%x: tensor<4x64xf32>, %c: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %a = tensor.extract_slice %x[0, 0] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>
  %b = tensor.extract_slice %x[0, 32] [4, 32] [1, 1] : tensor<4x64xf32> to tensor<4x32xf32>
  %half = tensor.empty() : tensor<4x32xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<4x32xf32>) outs(%half : tensor<4x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.negf %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x32xf32>
  %whole = tensor.empty() : tensor<4x64xf32>
  %p = tensor.insert_slice %n into %whole[0, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %q = tensor.insert_slice %a into %p[0, 32] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %q, %c : tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) outs(%whole : tensor<4x64xf32>) {
  ^bb0(%u: f32, %v: f32, %w: f32, %out: f32):
    %0 = arith.mulf %v, %w : f32
    %1 = arith.addf %u, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// -----

// Zeros around a part are where no part is. Large tensors, and parts of what
// was there before, are copied.
// CHECK-LABEL: func.func @others
// CHECK-SAME: %[[X:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<600x600xf32>, %[[D:.*]]: tensor<8xf32>
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: tensor.extract %[[X]]
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : f32
// CHECK: tensor.insert_slice %[[B]] into
// CHECK: tensor.insert_slice %[[X]] into %[[D]]
func.func @others(%x: tensor<3xf32>, %b: tensor<600x600xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<600x601xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<8xf32>) -> tensor<8xf32>
  %p = tensor.insert_slice %x into %z[2] [3] [1] : tensor<3xf32> into tensor<8xf32>
  %large = tensor.empty() : tensor<600x601xf32>
  %q = tensor.insert_slice %b into %large[0, 1] [600, 600] [1, 1] : tensor<600x600xf32> into tensor<600x601xf32>
  %r = tensor.insert_slice %x into %d[2] [3] [1] : tensor<3xf32> into tensor<8xf32>
  return %p, %q, %r : tensor<8xf32>, tensor<600x601xf32>, tensor<8xf32>
}
