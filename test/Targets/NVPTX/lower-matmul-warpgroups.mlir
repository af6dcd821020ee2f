// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-matmul))' | FileCheck %s

!lhs = memref<?x512xf16, #gpu.address_space<global>>
!rhs = memref<512x384xf16, #gpu.address_space<global>>
!out = memref<?x384xf32, #gpu.address_space<global>>

// The host describes the operands and the result. Of three warpgroups the last
// one has boxes copied when a stage is free, and the others multiply what is
// there; they tell that a stage is free when the products of the one before are
// done. Results go to shared memory, 32 columns at a time, when what was there
// before has been read, and from there by the hardware. With more tiles than
// multiprocessors both go from tile to tile.
// CHECK-LABEL: func private @k0
// CHECK: %[[LHS:.*]] = nv.tensor_map %arg0 sizes(%{{.*}}, %{{.*}}) box [64, 128] swizzle 128
// CHECK: %[[RHS:.*]] = nv.tensor_map %arg1 sizes(%{{.*}}, %{{.*}}) box [64, 64] swizzle 128
// CHECK: %[[OUT:.*]] = nv.tensor_map %arg2 sizes(%{{.*}}, %{{.*}}) box [32, 64] swizzle 128
// CHECK: %[[MOST:.*]] = arith.constant 132 : index
// CHECK: %[[BLOCKS:.*]] = arith.minsi %[[TILES:.*]], %[[MOST]]
// CHECK: %[[GRID:.*]] = arith.select %{{.*}}, %[[BLOCKS]]
// CHECK: scf.parallel (%[[ID:.*]]) = (%{{.*}}) to (%[[GRID]])
// CHECK: nv.shared_memory : memref<229440xi8, #gpu.address_space<workgroup>>
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// CHECK: gpu.shuffle
// CHECK: nvvm.setmaxregister increase 232
// CHECK: scf.for %{{.*}} = %[[ID]] to %[[TILES]] step %[[BLOCKS]] iter_args
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{.*}}, p, 1, 1, 0, 1;
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 1
// CHECK: nvvm.mbarrier.arrive
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[OUT]], %{{.*}}, box[%{{.*}}, %{{.*}}]
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK-COUNT-7: nvvm.cp.async.bulk.wait_group 1 {read}
// CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: scf.for %{{.*}} = %[[ID]] to %[[TILES]] step %[[BLOCKS]] iter_args
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
// and blocks that share a tile have partial sums, which are stored alike.
// CHECK-LABEL: func private @k1
// CHECK: nv.tensor_map %arg0 {{.*}} box [64, 64, 1] swizzle 128
// CHECK: nv.tensor_map %arg1 {{.*}} box [64, 32, 1] swizzle 128
// CHECK: nv.tensor_map %{{.*}} box [32, 64, 1, 1] swizzle 128 : memref<2x3x64x96xf32
// CHECK-NOT: nvvm.setmaxregister
// CHECK-NOT: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (index, i32)
// CHECK: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {{.*}}, p, 1, 1, 0, 0;
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}box[%{{.*}}, %{{.*}}, %{{.*}}]
// CHECK: nv.blocks = 2 : i64, nv.step = "matmul", nv.threads = 256 : i64
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

// -----

!x = memref<128x128xf16, #gpu.address_space<global>>
!w = memref<96x128xf16, #gpu.address_space<global>>
!b = memref<96xf32, #gpu.address_space<global>>
!y = memref<128x96xf16, #gpu.address_space<global>>

// Results of 16 bits go to shared memory by stmatrix; what is added is so in
// registers. A block has one tile where there are few.
// CHECK-LABEL: func private @k2
// CHECK: nv.tensor_map %arg3 {{.*}} box [32, 64] swizzle 64 : memref<128x96xf16
// CHECK-NOT: arith.minsi
// CHECK: scf.parallel
// CHECK: memref.load %arg2
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}#nvvm.mma_layout<row>
// CHECK: nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @k2(%a: !x, %w: !w, %b: !b, %c: !y) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 32, tile_k = 64, part_m = 64, part_n = 32, stages = 8>} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !x to tensor<128x128xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<96x128xf16>
  %tb = bufferization.to_tensor %b restrict : !b to tensor<96xf32>
  %e = tensor.empty() : tensor<128x96xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128x96xf32>) -> tensor<128x96xf32>
  %r = sdx.matmul ins(%ta, %tw : tensor<128x128xf16>, tensor<96x128xf16>) outs(%z : tensor<128x96xf32>) {transposed} -> tensor<128x96xf32>
  %f = tensor.empty() : tensor<128x96xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%r, %tb : tensor<128x96xf32>, tensor<96xf32>) outs(%f : tensor<128x96xf16>) {
  ^bb0(%p: f32, %q: f32, %o: f16):
    %sum = arith.addf %p, %q : f32
    %short = arith.truncf %sum : f32 to f16
    linalg.yield %short : f16
  } -> tensor<128x96xf16>
  bufferization.materialize_in_destination %s in restrict writable %c : (tensor<128x96xf16>, !y) -> ()
  return
}
}

// -----

!x = memref<128x256xi8, #gpu.address_space<global>>
!w = memref<128x256xi8, #gpu.address_space<global>>
!y = memref<128x128xi32, #gpu.address_space<global>>

// Bytes are summed up in 32 bits, 32 of them at a time.
// CHECK-LABEL: func private @k3
// CHECK: nv.tensor_map %arg0 {{.*}} box [128, 64] swizzle 128
// CHECK: nv.tensor_map %arg1 {{.*}} box [128, 64] swizzle 128
// CHECK: nv.tensor_map %arg2 {{.*}} box [32, 64] swizzle 128 : memref<128x128xi32
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {{.*}}, p;
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @k3(%a: !x, %w: !w, %c: !y) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 128, part_m = 64, part_n = 64, stages = 4>} {
  %zero = arith.constant 0 : i32
  %ta = bufferization.to_tensor %a restrict : !x to tensor<128x256xi8>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<128x256xi8>
  %e = tensor.empty() : tensor<128x128xi32>
  %z = linalg.fill ins(%zero : i32) outs(%e : tensor<128x128xi32>) -> tensor<128x128xi32>
  %r = sdx.matmul ins(%ta, %tw : tensor<128x256xi8>, tensor<128x256xi8>) outs(%z : tensor<128x128xi32>) {transposed} -> tensor<128x128xi32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<128x128xi32>, !y) -> ()
  return
}
}

// -----

!u = memref<256x128xf16, #gpu.address_space<global>>
!v = memref<128x128xf16, #gpu.address_space<global>>
!p = memref<256x128xf32, #gpu.address_space<global>>

// Two blocks below each other are a cluster. Each copies the box of its own rows
// of the left-hand side, and half of the right-hand side's boxes for both, when
// the warpgroups of both have told that a stage is free. All threads of both meet
// when the barriers are made, and at the end.
// CHECK-LABEL: func private @pair
// CHECK: %[[LHS:.*]] = nv.tensor_map %arg0 {{.*}} box [64, 128] swizzle 128
// CHECK: %[[RHS:.*]] = nv.tensor_map %arg1 {{.*}} box [64, 64] swizzle 128
// CHECK: scf.parallel (%{{.*}}) = (%{{.*}}) to (%c2{{.*}})
// CHECK: arith.constant 1 : i32
// CHECK: nvvm.mbarrier.init
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[FOUR]]
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK: wgmma.wait_group.sync.aligned 1
// CHECK-COUNT-2: nvvm.mapa %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[LHS]],
// CHECK-NOT: multicast
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[RHS]], {{.*}} multicast_mask = %{{.*}}
// CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.cluster.arrive{{$}}
// CHECK-NEXT: nvvm.cluster.wait{{$}}
// CHECK: nv.cluster = 2 : i64
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @pair(%a: !u, %b: !v, %c: !p) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 128, tile_n = 128, tile_k = 64, part_m = 64, part_n = 128, stages = 2, cluster_m = 2>} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !u to tensor<256x128xf16>
  %tb = bufferization.to_tensor %b restrict : !v to tensor<128x128xf16>
  %e = tensor.empty() : tensor<256x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<256x128xf16>, tensor<128x128xf16>) outs(%z : tensor<256x128xf32>) -> tensor<256x128xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<256x128xf32>, !p) -> ()
  return
}
}
