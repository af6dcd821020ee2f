// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(nv-lower-matmul))' | FileCheck %s

!half = memref<?x64xf16, #gpu.address_space<global>>
!weights = memref<64x72xf16, #gpu.address_space<global>>
!result = memref<?x72xf16, #gpu.address_space<global>>
#id = affine_map<(d0, d1) -> (d0, d1)>

// Tensor cores: copies run ahead, and what follows the product is applied to
// four neighbours at a time.
// CHECK-LABEL: func private @k0
// CHECK: %[[ROWS:.*]] = memref.dim %arg0, %c0
// CHECK: arith.cmpi slt, %[[ROWS]], %c2
// CHECK-COUNT-2: nv.step = "matmul", nv.threads = 256 : i64
// CHECK: scf.parallel
// CHECK: nv.shared_memory : memref<{{[0-9]+}}xi8, #gpu.address_space<workgroup>>
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: gpu.barrier
// CHECK: nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<row>
// CHECK: nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<col>
// CHECK: nvvm.mma.sync
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-COUNT-4: arith.truncf
// CHECK-COUNT-4: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "matmul", nv.threads = 128 : i64
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0(%a: !half, %b: !weights, %c: !result) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !half to tensor<?x64xf16>
  %tb = bufferization.to_tensor %b restrict : !weights to tensor<64x72xf16>
  %n = memref.dim %c, %c0 : !result
  %e = tensor.empty(%n) : tensor<?x72xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x72xf32>) -> tensor<?x72xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<?x64xf16>, tensor<64x72xf16>) outs(%z : tensor<?x72xf32>) -> tensor<?x72xf32>
  %f = tensor.empty(%n) : tensor<?x72xf16>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<?x72xf32>) outs(%f : tensor<?x72xf16>) {
  ^bb0(%in: f32, %out: f16):
    %0 = arith.truncf %in : f32 to f16
    linalg.yield %0 : f16
  } -> tensor<?x72xf16>
  bufferization.materialize_in_destination %s in restrict writable %c : (tensor<?x72xf16>, !result) -> ()
  return
}
}

// -----

!lhs = memref<33x70xf32, #gpu.address_space<global>>
!rhs = memref<50x70xf32, #gpu.address_space<global>>
!out = memref<33x50xf32, #gpu.address_space<global>>

// Multiply-adds; in tiles of few rows what follows itself along K is copied as
// it lies. The sums that the product is added to come last.
// CHECK-LABEL: func private @k1
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca
// CHECK: math.fma
// CHECK: %[[INIT:.*]] = memref.load %arg2
// CHECK: arith.addf %{{.*}}, %[[INIT]]
// CHECK: memref.store %{{.*}}, %arg3
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k1(%a: !lhs, %b: !rhs, %i: !out, %c: !out) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : !lhs to tensor<33x70xf32>
  %tb = bufferization.to_tensor %b restrict : !rhs to tensor<50x70xf32>
  %ti = bufferization.to_tensor %i restrict : !out to tensor<33x50xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<33x70xf32>, tensor<50x70xf32>) outs(%ti : tensor<33x50xf32>) {transposed} -> tensor<33x50xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<33x50xf32>, !out) -> ()
  return
}
}

// -----

!lhs = memref<4x1024xf32, #gpu.address_space<global>>
!rhs = memref<1024x64xf32, #gpu.address_space<global>>
!out = memref<4x64xf32, #gpu.address_space<global>>

// Few rows: blocks share the products of a tile, and a kernel adds up what they
// have, with what follows.
// CHECK-LABEL: func private @split
// CHECK: %[[PARTS:.*]] = memref.alloc() : memref<16x1x4x64xf32, #gpu.address_space<global>>
// CHECK: scf.parallel
// CHECK: math.fma
// CHECK: memref.store %{{.*}}, %[[PARTS]]
// CHECK: nv.step = "matmul"
// CHECK: scf.parallel
// CHECK-COUNT-16: memref.load %[[PARTS]]
// CHECK: memref.store %{{.*}}, %arg2
// CHECK: nv.step = "sums"
// CHECK: memref.dealloc %[[PARTS]]
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @split(%a: !lhs, %b: !rhs, %c: !out) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  %ta = bufferization.to_tensor %a restrict : !lhs to tensor<4x1024xf32>
  %tb = bufferization.to_tensor %b restrict : !rhs to tensor<1024x64xf32>
  %e = tensor.empty() : tensor<4x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %r = sdx.matmul ins(%ta, %tb : tensor<4x1024xf32>, tensor<1024x64xf32>) outs(%z : tensor<4x64xf32>) -> tensor<4x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %c : (tensor<4x64xf32>, !out) -> ()
  return
}
}
