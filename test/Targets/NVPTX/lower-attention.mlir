// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-attention))' | FileCheck %s
// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-loops))' | FileCheck %s --check-prefix=LOOPS

!half = memref<12x128x64xf16, #gpu.address_space<global>>
#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// Tensor cores: scores and probabilities stay in registers, and copies of the
// next keys and values are on their way meanwhile. 64 queries a block, the
// factor is part of the exponent.
// CHECK-LABEL: func private @scaled
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<46080xi8, #gpu.address_space<workgroup>>
// CHECK-COUNT-12: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: gpu.barrier
// CHECK-COUNT-4: nvvm.ldmatrix
// CHECK: scf.for
// CHECK: scf.if
// CHECK-COUNT-8: nvvm.cp.async.shared.global
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK-NOT: arith.divf
// CHECK: gpu.shuffle  xor
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %arg3
// CHECK: nv.step = "attention", nv.threads = 128 : i64
// CHECK-NOT: scf.parallel

// What no kernel of its own takes is loops.
// LOOPS-LABEL: func private @scaled
// LOOPS-COUNT-6: nv.step
module attributes {sdx.target = #nv.target<sm = 80, multiprocessors = 24>} {
func.func private @scaled(%q: !half, %k: !half, %v: !half, %r: !half) attributes {sdx.kernel} {
  %c8 = arith.constant 8.0 : f32
  %tq = bufferization.to_tensor %q restrict : !half to tensor<12x128x64xf16>
  %tk = bufferization.to_tensor %k restrict : !half to tensor<12x128x64xf16>
  %tv = bufferization.to_tensor %v restrict : !half to tensor<12x128x64xf16>
  %e = tensor.empty() : tensor<12x128x64xf16>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<12x128x64xf16>, tensor<12x128x64xf16>, tensor<12x128x64xf16>)
      outs(%e : tensor<12x128x64xf16>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    %0 = arith.divf %score, %c8 : f32
    sdx.yield %0 : f32
  } -> tensor<12x128x64xf16>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<12x128x64xf16>, !half) -> ()
  return
}
}

// -----

!query = memref<2x4x?x32xf32, #gpu.address_space<global>>
!keys = memref<2x?x32xf32, #gpu.address_space<global>>
#q = affine_map<(k, g, m, n, d, e) -> (k, g, m, d)>
#k = affine_map<(k, g, m, n, d, e) -> (k, n, d)>
#v = affine_map<(k, g, m, n, d, e) -> (k, n, e)>
#r = affine_map<(k, g, m, n, d, e) -> (k, g, m, e)>

// Multiply-adds. Keys that the body excludes are not visited: the last one of a
// tile of queries follows from its last query. Where the number of queries is
// open the host counts how many blocks share the keys; the second loop adds up.
// CHECK-LABEL: func private @bounded
// CHECK: arith.divui %c108
// CHECK: memref.alloc(%{{.*}}, %{{.*}}) : memref<?x2x?x34xf32, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: arith.addi %{{.*}}, %arg3 : index
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.for
// CHECK: math.fma
// CHECK: arith.cmpi slt
// CHECK: arith.select
// CHECK: memref.store %{{.*}}, %{{.*}} : memref<?x2x?x34xf32
// CHECK: nv.step = "attention"
// CHECK: scf.parallel
// CHECK: arith.divf
// CHECK: nv.step = "sums", nv.threads = 256 : i64
// CHECK: memref.dealloc

// LOOPS-LABEL: func private @bounded
// LOOPS: nv.step
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @bounded(%q: !query, %k: !keys, %v: !keys, %past: index, %r: !query) attributes {sdx.kernel} {
  %c2 = arith.constant 2 : index
  %low = arith.constant 0xFF800000 : f32
  %tq = bufferization.to_tensor %q restrict : !query to tensor<2x4x?x32xf32>
  %tk = bufferization.to_tensor %k restrict : !keys to tensor<2x?x32xf32>
  %tv = bufferization.to_tensor %v restrict : !keys to tensor<2x?x32xf32>
  %size = memref.dim %r, %c2 : !query
  %e = tensor.empty(%size) : tensor<2x4x?x32xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<2x4x?x32xf32>, tensor<2x?x32xf32>, tensor<2x?x32xf32>)
      outs(%e : tensor<2x4x?x32xf32>) {
  ^bb0(%score: f32, %h: index, %g: index, %m: index, %n: index):
    %last = arith.addi %m, %past : index
    %0 = arith.cmpi slt, %last, %n : index
    %1 = arith.select %0, %low, %score : f32
    sdx.yield %1 : f32
  } -> tensor<2x4x?x32xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<2x4x?x32xf32>, !query) -> ()
  return
}
}

// -----

!long = memref<2x1024x8x128xbf16, #gpu.address_space<global>>
#q = affine_map<(b, h, m, n, d, e) -> (b, m, h, d)>
#k = affine_map<(b, h, m, n, d, e) -> (b, n, h, d)>
#v = affine_map<(b, h, m, n, d, e) -> (b, n, h, e)>
#r = affine_map<(b, h, m, n, d, e) -> (b, m, h, e)>

// Warpgroups: one has boxes copied, of 128 queries and keys of a head and of 64
// columns, the others multiply what is there. While factors of the scores of a
// tile are made, the values of the one before are added up: their left-hand
// side is in registers.
// CHECK-LABEL: func private @long
// CHECK: nv.tensor_map %arg0 sizes(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) box [64, 1, 128, 1] swizzle 128
// CHECK: nv.tensor_map %arg1 sizes({{.*}}) box [64, 1, 128, 1] swizzle 128
// CHECK: nv.tensor_map %arg2
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<163912xi8, #gpu.address_space<workgroup>>
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.setmaxregister increase 232
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: scf.for
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: wgmma.fence.sync.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 1
// CHECK: nvvm.mbarrier.arrive
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.yield
// CHECK-COUNT-8: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: memref.store %{{.*}}, %arg3
// CHECK: nvvm.setmaxregister decrease 40
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: scf.for
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nv.step = "attention", nv.threads = 384 : i64
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @long(%q: !long, %k: !long, %v: !long, %r: !long) attributes {sdx.kernel,
    nv.plan = #nv.attention_plan<form = wgmma, queries = 128, keys = 128>} {
  %c0_1 = arith.constant 0.1 : f32
  %tq = bufferization.to_tensor %q restrict : !long to tensor<2x1024x8x128xbf16>
  %tk = bufferization.to_tensor %k restrict : !long to tensor<2x1024x8x128xbf16>
  %tv = bufferization.to_tensor %v restrict : !long to tensor<2x1024x8x128xbf16>
  %e = tensor.empty() : tensor<2x1024x8x128xbf16>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<2x1024x8x128xbf16>, tensor<2x1024x8x128xbf16>, tensor<2x1024x8x128xbf16>)
      outs(%e : tensor<2x1024x8x128xbf16>) {
  ^bb0(%score: f32, %b: index, %h: index, %m: index, %n: index):
    %0 = arith.mulf %score, %c0_1 : f32
    sdx.yield %0 : f32
  } -> tensor<2x1024x8x128xbf16>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<2x1024x8x128xbf16>, !long) -> ()
  return
}
}

// -----

!far = memref<2x8192x8x128xbf16, #gpu.address_space<global>>
#q = affine_map<(b, h, m, n, d, e) -> (b, m, h, d)>
#k = affine_map<(b, h, m, n, d, e) -> (b, n, h, d)>
#v = affine_map<(b, h, m, n, d, e) -> (b, n, h, e)>
#r = affine_map<(b, h, m, n, d, e) -> (b, m, h, e)>

// Where a bound leaves out keys the last tiles of queries begin first, those of
// as many heads beside each other as half of the L2 cache holds keys and values
// of: 25 MiB of 4 MiB are 6, of 64 tiles each.
// CHECK-LABEL: func private @far
// CHECK: scf.parallel (%[[BLOCK:[a-z0-9]+]]) =
// CHECK: %[[GROUP:.*]] = arith.divui %[[BLOCK]], %c384
// CHECK: arith.muli %[[GROUP]], %c6
// CHECK: arith.remui %[[BLOCK]], %c384
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @far(%q: !far, %k: !far, %v: !far, %r: !far) attributes {sdx.kernel,
    nv.plan = #nv.attention_plan<form = wgmma, queries = 128, keys = 128>} {
  %low = arith.constant 0xFF800000 : f32
  %tq = bufferization.to_tensor %q restrict : !far to tensor<2x8192x8x128xbf16>
  %tk = bufferization.to_tensor %k restrict : !far to tensor<2x8192x8x128xbf16>
  %tv = bufferization.to_tensor %v restrict : !far to tensor<2x8192x8x128xbf16>
  %e = tensor.empty() : tensor<2x8192x8x128xbf16>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<2x8192x8x128xbf16>, tensor<2x8192x8x128xbf16>, tensor<2x8192x8x128xbf16>)
      outs(%e : tensor<2x8192x8x128xbf16>) {
  ^bb0(%score: f32, %b: index, %h: index, %m: index, %n: index):
    %0 = arith.cmpi slt, %m, %n : index
    %1 = arith.select %0, %low, %score : f32
    sdx.yield %1 : f32
  } -> tensor<2x8192x8x128xbf16>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<2x8192x8x128xbf16>, !far) -> ()
  return
}
}
