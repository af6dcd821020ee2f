// RUN: onnx-opt %s -pass-pipeline='builtin.module(func.func(nv-lower-matmul))' | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline='builtin.module(func.func(nv-lower-matmul),nv-outline-kernels)' | FileCheck %s --check-prefix=OUTLINE

// Of a cluster of four blocks two have the sums of 128 columns each, and two
// share their products. When all have written them to shared memory, each block
// computes every fourth row of the tile, a warp one: it reads the sums where
// they are, and adds up both parts. No block ends before all are done.
// CHECK-LABEL: func private @k0
// CHECK: scf.parallel (%{{.*}}) = (%{{.*}}) to (%c8{{.*}})
// CHECK: nvvm.mma.sync
// CHECK: memref.view %{{.*}} to memref<32x132xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.barrier
// CHECK-NEXT: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = nvvm.mapa
// CHECK-NEXT: llvm.load %[[FIRST]] : !llvm.ptr<7> -> f32
// CHECK: %[[SECOND:.*]] = nvvm.mapa
// CHECK-NEXT: llvm.load %[[SECOND]] : !llvm.ptr<7> -> f32
// CHECK: arith.addf
// CHECK: gpu.shuffle
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK: nv.cluster = 4 : i64, nv.step = "matmul", nv.threads = 256 : i64

// OUTLINE: gpu.func @k0({{.*}}) kernel
// OUTLINE-SAME: nvvm.cluster_dim = array<i32: 4, 1, 1>
module attributes {sdx.target = #nv.target<sm = 90>} {
func.func private @k0(%x: memref<40x512xf16, #gpu.address_space<global>>, %w: memref<512x256xf16, #gpu.address_space<global>>, %y: memref<40x256xf32, #gpu.address_space<global>>) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = mma, tile_m = 32, tile_n = 128, tile_k = 64, part_m = 16, part_n = 32, stages = 4, split = 2, cluster_n = 4>} {
  %0 = bufferization.to_tensor %x restrict : memref<40x512xf16, #gpu.address_space<global>> to tensor<40x512xf16>
  %1 = bufferization.to_tensor %w restrict : memref<512x256xf16, #gpu.address_space<global>> to tensor<512x256xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x256xf32>) -> tensor<40x256xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<40x512xf16>, tensor<512x256xf16>) outs(%f : tensor<40x256xf32>) -> tensor<40x256xf32>
  %e1 = tensor.empty() : tensor<40xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<40xf32>) -> tensor<40xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<40x256xf32>) outs(%f1 : tensor<40xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<40xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %s : tensor<40x256xf32>, tensor<40xf32>) outs(%e : tensor<40x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<40x256xf32>
  bufferization.materialize_in_destination %n in restrict writable %y : (tensor<40x256xf32>, memref<40x256xf32, #gpu.address_space<global>>) -> ()
  return
}
}
