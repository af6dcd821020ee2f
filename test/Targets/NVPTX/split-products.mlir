// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-matmul))' | FileCheck %s

!lhs = memref<64x64xf32, #gpu.address_space<global>>
!rhs = memref<64x64xf32, #gpu.address_space<global>>

// A warp splits what it has loaded: the high part is a number rounded to bf16,
// with an infinity's exponent changed to that of 1, the low part what is left
// of it. Three instructions multiply them, those of small parts first.
// CHECK-LABEL: func private @warps
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.ldmatrix
// CHECK: %[[ROUNDED:.*]] = nvvm.convert.f32x2.to.bf16x2 %{{.*}}, %{{.*}} {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xbf16>
// CHECK: %[[SPECIAL:.*]] = llvm.intr.fma(%[[ROUNDED]], %{{.*}}, %{{.*}})
// CHECK: arith.xori
// CHECK: arith.subf
// CHECK: arith.subf
// CHECK: nvvm.convert.f32x2.to.bf16x2
// CHECK-COUNT-3: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-NOT: tf32
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @warps(%a: !lhs, %b: !rhs, %c: !lhs) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = mma, tile_m = 16, tile_n = 64, tile_k = 32, part_m = 16, part_n = 16, stages = 2>} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !lhs to tensor<64x64xf32>
  %tb = bufferization.to_tensor %b restrict : !rhs to tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) {nv.bf16x3} -> tensor<64x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<64x64xf32>, !lhs) -> ()
  return
}
}

// -----

!x = memref<64x64xf32, #gpu.address_space<global>>

// Warpgroups split tiles in shared memory, which are copied as f32: a warp reads
// before it writes, and all have written before the first product. Of the two
// steps of high and of low parts a row has, products are of low by high, high by
// low, and high by high ones.
// CHECK-LABEL: func private @warpgroups
// CHECK: nv.tensor_map %arg0 sizes(%{{.*}}, %{{.*}}) box [32, 64] swizzle 128 :
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : {{.*}} -> vector<4xf32>
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-6: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 0, 0;
// CHECK: nvvm.wgmma.commit.group.sync.aligned
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @warpgroups(%a: !x, %b: !x, %c: !x) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 32, part_m = 64, part_n = 64, stages = 2>} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !x to tensor<64x64xf32>
  %tb = bufferization.to_tensor %b restrict : !x to tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) {nv.bf16x3, transposed} -> tensor<64x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<64x64xf32>, !x) -> ()
  return
}
}
