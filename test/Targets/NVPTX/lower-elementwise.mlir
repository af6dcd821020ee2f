// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-elementwise))' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d1)>
!x = memref<8x64xf32, #gpu.address_space<global>>
!b = memref<64xf32, #gpu.address_space<global>>

// A thread has four neighbours; all is read before anything is written.
// CHECK-LABEL: func private @bias
// CHECK: scf.parallel
// CHECK: scf.if
// CHECK-COUNT-8: memref.load
// CHECK-NOT: memref.load
// CHECK-COUNT-4: memref.store
// CHECK-NOT: memref.store
// CHECK: nv.step = "elementwise", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @bias(%x: !x, %b: !b, %y: !x) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : !x to tensor<8x64xf32>
  %u = bufferization.to_tensor %b restrict : !b to tensor<64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%t, %u : tensor<8x64xf32>, tensor<64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%in: f32, %bias: f32, %out: f32):
    %0 = arith.addf %in, %bias : f32
    linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8x64xf32>, !x) -> ()
  return
}
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
!x = memref<8x64xf32, #gpu.address_space<global>>
!y = memref<8xf32, #gpu.address_space<global>>

// Reductions are others'.
// CHECK-LABEL: func private @sum
// CHECK: linalg.generic
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @sum(%x: !x, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %t = bufferization.to_tensor %x restrict : !x to tensor<8x64xf32>
  %e = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%t : tensor<8x64xf32>) outs(%z : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<8xf32>, !y) -> ()
  return
}
}
