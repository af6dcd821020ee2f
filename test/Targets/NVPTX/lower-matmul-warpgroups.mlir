// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-matmul))' | FileCheck %s

!lhs = memref<?x512xf16, #gpu.address_space<global>>
!rhs = memref<512x384xf16, #gpu.address_space<global>>
!out = memref<?x384xf32, #gpu.address_space<global>>

// The host describes the operands. Of three warpgroups the last one has boxes
// copied when a stage is free, and the others multiply what is there; they tell
// that a stage is free when the products of the one before are done.
// CHECK-LABEL: func private @k0
// CHECK: %[[LHS:.*]] = nv.tensor_map %arg0 sizes(%{{.*}}, %{{.*}}) box [64, 128] swizzle 128
// CHECK: %[[RHS:.*]] = nv.tensor_map %arg1 sizes(%{{.*}}, %{{.*}}) box [64, 64] swizzle 128
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<196672xi8, #gpu.address_space<workgroup>>
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// CHECK: gpu.shuffle
// CHECK: nvvm.setmaxregister increase 232
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-COUNT-4: nvvm.wgmma.mma_async {{.*}} <m = 64, n = 256, k = 16>{{.*}}<row>], {{.*}}<row>]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[LHS]], %{{.*}}, box[%{{.*}}, %{{.*}}]
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[RHS]], %{{.*}}, box[%{{.*}}, %{{.*}}]
// CHECK: nv.step = "matmul", nv.threads = 384 : i64
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @k0(%a: !lhs, %b: !rhs, %c: !out) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 256, tile_k = 64, part_m = 64, part_n = 256, stages = 4>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !lhs to tensor<?x512xf16>
  %tb = bufferization.to_tensor %b restrict : !rhs to tensor<512x384xf16>
  %n = memref.dim %c, %c0 : !out
  %e = tensor.empty(%n) : tensor<?x384xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x384xf32>) -> tensor<?x384xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<?x512xf16>, tensor<512x384xf16>) outs(%z : tensor<?x384xf32>) -> tensor<?x384xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<?x384xf32>, !out) -> ()
  return
}
}

// -----

!x = memref<3x64x128xbf16, #gpu.address_space<global>>
!w = memref<3x96x128xbf16, #gpu.address_space<global>>
!y = memref<3x64x96xf32, #gpu.address_space<global>>

// One warpgroup multiplies, by a matrix of each pair that is as it is along K,
// and blocks that share a tile have partial sums.
// CHECK-LABEL: func private @k1
// CHECK: nv.tensor_map %arg0 {{.*}} box [64, 64, 1] swizzle 128
// CHECK: nv.tensor_map %arg1 {{.*}} box [64, 32, 1] swizzle 128
// CHECK-NOT: nvvm.setmaxregister
// CHECK: nvvm.wgmma.mma_async {{.*}}<m = 64, n = 32, k = 16>{{.*}}<bf16>{{.*}}<row>], {{.*}}<bf16>{{.*}}<col>]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}]
// CHECK: nv.step = "matmul", nv.threads = 256 : i64
// CHECK: nv.step = "sums", nv.threads = 256 : i64
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @k1(%a: !x, %b: !w, %c: !y) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 32, tile_k = 64, part_m = 64, part_n = 32, stages = 8, split = 2>} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !x to tensor<3x64x128xbf16>
  %tb = bufferization.to_tensor %b restrict : !w to tensor<3x96x128xbf16>
  %e = tensor.empty() : tensor<3x64x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x64x96xf32>) -> tensor<3x64x96xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<3x64x128xbf16>, tensor<3x96x128xbf16>) outs(%z : tensor<3x64x96xf32>) {transposed} -> tensor<3x64x96xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<3x64x96xf32>, !y) -> ()
  return
}
}
