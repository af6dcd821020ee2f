// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-rows))' | FileCheck %s

#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
!x = memref<?x128xf32, #gpu.address_space<global>>

// A warp has a row, and a thread four elements of it, which are read once.
// CHECK-LABEL: func private @softmax
// CHECK: scf.parallel
// CHECK-COUNT-4: memref.load %arg0
// CHECK-NOT: memref.load
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-4: math.exp
// CHECK-NOT: math.exp
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-4: memref.store %{{.*}}, %arg1
// CHECK: nv.step = "rows", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @softmax(%x: !x, %y: !x) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %t = bufferization.to_tensor %x restrict : !x to tensor<?x128xf32>
  %n = memref.dim %y, %c0 : !x
  %e = tensor.empty(%n) : tensor<?xf32>
  %l = linalg.fill ins(%low : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<?x128xf32>) outs(%l : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maxnumf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %f = tensor.empty(%n) : tensor<?x128xf32>
  %p = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%t, %m : tensor<?x128xf32>, tensor<?xf32>) outs(%f : tensor<?x128xf32>) {
  ^bb0(%in: f32, %most: f32, %out: f32):
    %0 = arith.subf %in, %most : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<?x128xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  %q = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel"]}
      ins(%p, %s : tensor<?x128xf32>, tensor<?xf32>) outs(%f : tensor<?x128xf32>) {
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %0 = arith.divf %in, %sum : f32
    linalg.yield %0 : f32
  } -> tensor<?x128xf32>
  bufferization.materialize_in_destination %q in restrict writable %y : (tensor<?x128xf32>, !x) -> ()
  return
}
}

// -----

#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
!x = memref<4x?xf32, #gpu.address_space<global>>
!y = memref<4xf32, #gpu.address_space<global>>

// A block has a row of open length, which a loop goes through; warps combine
// their sums through shared memory, and one thread writes.
// CHECK-LABEL: func private @sum
// CHECK: scf.for
// CHECK: memref.load %arg0
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK: nv.shared_memory : memref<32xi8, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %arg1
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @sum(%x: !x, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %t = bufferization.to_tensor %x restrict : !x to tensor<4x?xf32>
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<4x?xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<4xf32>, !y) -> ()
  return
}
}

// -----

#full = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
!x = memref<?x8xf32, #gpu.address_space<global>>
!y = memref<?xf32, #gpu.address_space<global>>

// Two threads have a row of 8 elements, so that a block has 128 rows. Threads
// that have none compute what nobody writes, since their warp exchanges sums.
// CHECK-LABEL: func private @short
// CHECK: scf.parallel
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK: arith.select %[[EXISTS]], %{{.*}}, %c0
// CHECK-COUNT-4: memref.load %arg0
// CHECK-COUNT-1: gpu.shuffle xor
// CHECK-NOT: gpu.shuffle
// CHECK: scf.if %[[EXISTS]]
// CHECK: memref.store %{{.*}}, %arg1
// CHECK: nv.step = "rows", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @short(%x: !x, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = bufferization.to_tensor %x restrict : !x to tensor<?x8xf32>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#full, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<?x8xf32>) outs(%z : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<?xf32>, !y) -> ()
  return
}
}
