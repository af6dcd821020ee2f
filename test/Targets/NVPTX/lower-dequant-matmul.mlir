// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-dequant-matmul))' | FileCheck %s

!x = memref<1x4096xf16, #gpu.address_space<global>>
!w = memref<4096x128x16xi8, #gpu.address_space<global>>
!s = memref<4096x128xf16, #gpu.address_space<global>>
!y = memref<1x4096xf32, #gpu.address_space<global>>

// One row lies in shared memory as it is. Of four columns the next 16 bytes are
// read before the last ones are unpacked, two numbers at a time: 4 x 16 times a
// number is made of bits, and multiplied. Sums of a block's products are f16,
// the others f32.
// CHECK-LABEL: func private @one_row
// CHECK-SAME: %[[X:.*]]: memref<1x4096xf16
// CHECK: scf.parallel {{.*}} to (%c128)
// CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: scf.for
// CHECK: memref.load %[[X]]
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-COUNT-4: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-128: math.fma {{.*}} : vector<2xf16>
// CHECK-COUNT-4: math.fma {{.*}} : f32
// CHECK-NOT: math.fma
// CHECK-COUNT-20: gpu.shuffle xor
// CHECK: memref.store %{{.*}}, %arg3
// CHECK: nv.blocks = 2 : i64, nv.step = "rows", nv.threads = 256 : i64
// CHECK-NOT: scf.parallel
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @one_row(%x: !x, %w: !w, %s: !s, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x4096xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<4096x128x16xi8>
  %ts = bufferization.to_tensor %s restrict : !s to tensor<4096x128xf16>
  %e = tensor.empty() : tensor<1x4096xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %r = sdx.dequant_matmul ins(%tx, %tw, %ts : tensor<1x4096xf16>, tensor<4096x128x16xi8>, tensor<4096x128xf16>)
      outs(%z : tensor<1x4096xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<1x4096xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x4096xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x256xf16, #gpu.address_space<global>>
!w = memref<64x8x8xi8, #gpu.address_space<global>>
!s = memref<64x8xf32, #gpu.address_space<global>>
!z = memref<64x2xi8, #gpu.address_space<global>>
!y = memref<?x64xf32, #gpu.address_space<global>>

// The host chooses among a row, four rows and tiles, whose weights are read
// before others are multiplied, and written to shared memory as f16 afterwards.
// CHECK-LABEL: func private @open_rows
// CHECK-SAME: %[[X:.*]]: memref<?x256xf16
// CHECK: %[[M:.*]] = memref.dim %[[X]]
// CHECK: %[[ONE:.*]] = arith.cmpi slt, %[[M]], %c2
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[M]], %c9
// CHECK: %[[SOME:.*]] = arith.cmpi ugt, %[[FEW]], %[[ONE]]
// CHECK: arith.select %[[ONE]], %{{.*}}, %c0
// CHECK: scf.parallel
// CHECK: nv.step = "rows"
// CHECK: arith.select %[[SOME]], %{{.*}}, %c0
// CHECK: scf.parallel
// CHECK: nv.step = "rows"
// CHECK: arith.select %{{.*}}, %{{.*}}, %c0
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: nvvm.mma.sync
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK: nv.step = "matmul"
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @open_rows(%x: !x, %w: !w, %s: !s, %p: !z, %y: !y) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x256xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<64x8x8xi8>
  %ts = bufferization.to_tensor %s restrict : !s to tensor<64x8xf32>
  %tp = bufferization.to_tensor %p restrict : !z to tensor<64x2xi8>
  %n = memref.dim %y, %c0 : !y
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
  %r = sdx.dequant_matmul ins(%tx, %tw, %ts, %tp : tensor<?x256xf16>, tensor<64x8x8xi8>, tensor<64x8xf32>, tensor<64x2xi8>)
      outs(%z : tensor<?x64xf32>) {bits = 2 : i64, block = 32 : i64} -> tensor<?x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x64xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<?x512xi8, #gpu.address_space<global>>
!w = memref<256x1x512xi8, #gpu.address_space<global>>
!s = memref<256x1xf32, #gpu.address_space<global>>
!y = memref<?x256xf32, #gpu.address_space<global>>

// Floats of eight bits on both sides are multiplied by warpgroups, and each sum
// is scaled before it is stored.
// CHECK-LABEL: func private @byte_floats
// CHECK: nv.tensor_map %arg0 {{.*}} box [128, 64] swizzle 128
// CHECK: nv.tensor_map %arg1 {{.*}} box [128, 64] swizzle 128 : memref<256x1x512xi8
// CHECK: nv.tensor_map %arg3 {{.*}} box [32, 64] swizzle 128
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {{.*}}, p, 1, 1;
// CHECK: %[[SCALE:.*]] = memref.load %arg2
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
// CHECK: nv.threads = 256 : i64
// CHECK-NOT: scf.parallel
module attributes {sdx.target = #nv.target<sm = 90, feature = "a">} {
func.func private @byte_floats(%x: !x, %w: !w, %s: !s, %y: !y) attributes {sdx.kernel,
    nv.plan = #nv.matmul_plan<form = wgmma, tile_m = 64, tile_n = 64, tile_k = 128, part_m = 64, part_n = 64, stages = 4>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %tx = bufferization.to_tensor %x restrict : !x to tensor<?x512xi8>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<256x1x512xi8>
  %ts = bufferization.to_tensor %s restrict : !s to tensor<256x1xf32>
  %m = memref.dim %y, %c0 : !y
  %e = tensor.empty(%m) : tensor<?x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x256xf32>) -> tensor<?x256xf32>
  %r = sdx.dequant_matmul ins(%tx, %tw, %ts : tensor<?x512xi8>, tensor<256x1x512xi8>, tensor<256x1xf32>)
      outs(%z : tensor<?x256xf32>) {bits = 8 : i64, block = 512 : i64, element = f8E4M3FN} -> tensor<?x256xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?x256xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<1x4096xbf16, #gpu.address_space<global>>
!w = memref<4096x128x16xi8, #gpu.address_space<global>>
!s = memref<4096x128xbf16, #gpu.address_space<global>>
!y = memref<1x4096xf32, #gpu.address_space<global>>

// Of bf16, which has too few bits for sums, all of them are f32.
// CHECK-LABEL: func private @brain
// CHECK: arith.mulf
// CHECK: gpu.barrier
// CHECK-COUNT-132: math.fma {{.*}} : f32
// CHECK-NOT: math.fma
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @brain(%x: !x, %w: !w, %s: !s, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x4096xbf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<4096x128x16xi8>
  %ts = bufferization.to_tensor %s restrict : !s to tensor<4096x128xbf16>
  %e = tensor.empty() : tensor<1x4096xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %r = sdx.dequant_matmul ins(%tx, %tw, %ts : tensor<1x4096xbf16>, tensor<4096x128x16xi8>, tensor<4096x128xbf16>)
      outs(%z : tensor<1x4096xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<1x4096xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x4096xf32>, !y) -> ()
  return
}
}

// -----

!x = memref<1x4096xf16, #gpu.address_space<global>>
!w = memref<4096x128x16xi8, #gpu.address_space<global>>
!s = memref<4096x128xf16, #gpu.address_space<global>>
!y = memref<1x4096xf32, #gpu.address_space<global>>

// From capability 9.0 on, lanes that begin a line of the cache ask for the
// weights of four columns, of both steps, before the row is read.
// CHECK-LABEL: func private @ahead
// CHECK: scf.parallel
// CHECK: scf.if
// CHECK-COUNT-8: nvvm.prefetch level = L2
// CHECK-NOT: nvvm.prefetch
// CHECK: gpu.barrier
module attributes {sdx.target = #nv.target<sm = 90, ptx = 80>} {
func.func private @ahead(%x: !x, %w: !w, %s: !s, %y: !y) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %tx = bufferization.to_tensor %x restrict : !x to tensor<1x4096xf16>
  %tw = bufferization.to_tensor %w restrict : !w to tensor<4096x128x16xi8>
  %ts = bufferization.to_tensor %s restrict : !s to tensor<4096x128xf16>
  %e = tensor.empty() : tensor<1x4096xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %r = sdx.dequant_matmul ins(%tx, %tw, %ts : tensor<1x4096xf16>, tensor<4096x128x16xi8>, tensor<4096x128xf16>)
      outs(%z : tensor<1x4096xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<1x4096xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x4096xf32>, !y) -> ()
  return
}
}
