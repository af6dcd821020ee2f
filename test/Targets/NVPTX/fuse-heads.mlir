// RUN: onnx-opt %s --split-input-file --nv-fuse-into-products | FileCheck %s
// RUN: onnx-opt %s --split-input-file --nv-fuse-into-products --nv-select-plans --nv-lower-matmul --canonicalize | FileCheck %s --check-prefix=LOWER

// The product that makes a token's keys rotates them, and puts them behind those
// of before, which blocks of their own copy.
// CHECK-NOT: @k0_matmul(
// CHECK-NOT: @k1_elementwise(
// CHECK: func.func private @k0_matmul_k1_elementwise(
// CHECK: %[[P:.*]] = sdx.matmul {{.*}} -> tensor<1x128xf32>
// CHECK: %[[H:.*]] = tensor.expand_shape %[[P]] {{.*}} : tensor<1x128xf32> into tensor<1x2x1x64xf32>
// CHECK: tensor.extract %[[H]]
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = sdx.call @k0_matmul_k1_elementwise(
// CHECK-NEXT: return %[[R]]

// Four blocks of 32 columns, 16 and the 16 that lie half a head behind them; three
// for the 18 x 64 x 2 elements of before, four a thread.
// LOWER-LABEL: func.func private @k0_matmul_k1_elementwise
// LOWER-DAG: %[[BLOCKS:.*]] = arith.constant 4 : index
// LOWER-DAG: %[[ALL:.*]] = arith.constant 7 : index
// LOWER: scf.parallel (%[[B:.*]]) = (%{{.*}}) to (%[[ALL]])
// LOWER: %[[MULTIPLIES:.*]] = arith.cmpi slt, %[[B]], %[[BLOCKS]]
// LOWER: scf.if %[[MULTIPLIES]] {
// LOWER: %[[SUMS:.*]] = memref.view %{{.*}} to memref<8x1x32xf32, #gpu.address_space<workgroup>>
// LOWER: gpu.barrier
// LOWER: memref.store %{{.*}}, %[[SUMS]][%{{.*}}] : memref<8x1x32xf32, #gpu.address_space<workgroup>>
// LOWER: gpu.barrier
// LOWER: memref.load %[[SUMS]]
// LOWER: memref.load %[[SUMS]]
// LOWER: memref.store %{{.*}} : memref<1x2x19x64xf32>
// LOWER: } else {
// LOWER-NOT: #gpu.address_space<workgroup>
// LOWER-COUNT-4: memref.load %{{.*}} : memref<1x2x18x64xf32>
// LOWER-COUNT-4: memref.store %{{.*}} : memref<1x2x19x64xf32>
// LOWER: return

module attributes {sdx.target = #nv.target<sm = 90, multiprocessors = 132>} {
func.func private @k0_matmul(%x: memref<1x32xf16>, %w: memref<32x128xf16>, %y: memref<1x128xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x32xf16> to tensor<1x32xf16>
  %1 = bufferization.to_tensor %w restrict : memref<32x128xf16> to tensor<32x128xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x128xf32>) -> tensor<1x128xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<1x32xf16>, tensor<32x128xf16>) outs(%f : tensor<1x128xf32>) -> tensor<1x128xf32>
  bufferization.materialize_in_destination %p in restrict writable %y : (tensor<1x128xf32>, memref<1x128xf32>) -> ()
  return
}
func.func private @k1_elementwise(%k: memref<1x2x1x64xf32>, %s: memref<64xf32>, %past: memref<1x2x18x64xf32>, %y: memref<1x2x19x64xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %k restrict : memref<1x2x1x64xf32> to tensor<1x2x1x64xf32>
  %1 = bufferization.to_tensor %s restrict : memref<64xf32> to tensor<64xf32>
  %2 = bufferization.to_tensor %past restrict : memref<1x2x18x64xf32> to tensor<1x2x18x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c18 = arith.constant 18 : index
  %c32 = arith.constant 32 : index
  %e = tensor.empty() : tensor<1x2x19x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, h, s, d) -> (a, h, s, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<1x2x19x64xf32>) {
  ^bb0(%o: f32):
    %h = linalg.index 1 : index
    %t = linalg.index 2 : index
    %d = linalg.index 3 : index
    %n = arith.subi %t, %c18 : index
    %isNew = arith.cmpi ult, %n, %c1 : index
    %v = scf.if %isNew -> (f32) {
      %isFirst = arith.cmpi ult, %d, %c32 : index
      %next = arith.addi %d, %c32 : index
      %before = arith.subi %d, %c32 : index
      %other = arith.select %isFirst, %next, %before : index
      %a = tensor.extract %0[%c0, %h, %n, %d] : tensor<1x2x1x64xf32>
      %b = tensor.extract %0[%c0, %h, %n, %other] : tensor<1x2x1x64xf32>
      %sine = tensor.extract %1[%d] : tensor<64xf32>
      %m = arith.mulf %b, %sine : f32
      %z = arith.addf %a, %m : f32
      scf.yield %z : f32
    } else {
      %old = tensor.extract %2[%c0, %h, %t, %d] : tensor<1x2x18x64xf32>
      scf.yield %old : f32
    }
    linalg.yield %v : f32
  } -> tensor<1x2x19x64xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<1x2x19x64xf32>, memref<1x2x19x64xf32>) -> ()
  return
}
func.func @main(%x: tensor<1x32xf16>, %w: tensor<32x128xf16>, %s: tensor<64xf32>, %past: tensor<1x2x18x64xf32>) -> tensor<1x2x19x64xf32> {
  %e0 = tensor.empty() : tensor<1x128xf32>
  %p = sdx.call @k0_matmul(%x, %w : tensor<1x32xf16>, tensor<32x128xf16>) outs(%e0 : tensor<1x128xf32>) -> tensor<1x128xf32>
  %k = tensor.expand_shape %p [[0], [1, 2, 3]] output_shape [1, 2, 1, 64] : tensor<1x128xf32> into tensor<1x2x1x64xf32>
  %e1 = tensor.empty() : tensor<1x2x19x64xf32>
  %r = sdx.call @k1_elementwise(%k, %s, %past : tensor<1x2x1x64xf32>, tensor<64xf32>, tensor<1x2x18x64xf32>) outs(%e1 : tensor<1x2x19x64xf32>) -> tensor<1x2x19x64xf32>
  return %r : tensor<1x2x19x64xf32>
}
}

// -----

// Not where an element hangs on one that other blocks have: the same column of
// the next head, or one that lies a third of a head behind.
// CHECK-LABEL: func.func private @k0_matmul(
// CHECK-LABEL: func.func private @k1_heads(
// CHECK-LABEL: func.func private @k2_thirds(
// CHECK: sdx.call @k0_matmul(
// CHECK: sdx.call @k1_heads(
// CHECK: sdx.call @k0_matmul(
// CHECK: sdx.call @k2_thirds(
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0_matmul(%x: memref<1x32xf16>, %w: memref<32x192xf16>, %y: memref<1x192xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x32xf16> to tensor<1x32xf16>
  %1 = bufferization.to_tensor %w restrict : memref<32x192xf16> to tensor<32x192xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x192xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x192xf32>) -> tensor<1x192xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<1x32xf16>, tensor<32x192xf16>) outs(%f : tensor<1x192xf32>) -> tensor<1x192xf32>
  bufferization.materialize_in_destination %p in restrict writable %y : (tensor<1x192xf32>, memref<1x192xf32>) -> ()
  return
}
func.func private @k1_heads(%k: memref<2x96xf32>, %y: memref<2x96xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %k restrict : memref<2x96xf32> to tensor<2x96xf32>
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<2x96xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, d) -> (h, d)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<2x96xf32>) {
  ^bb0(%o: f32):
    %h = linalg.index 0 : index
    %d = linalg.index 1 : index
    %other = arith.xori %h, %c1 : index
    %b = tensor.extract %0[%other, %d] : tensor<2x96xf32>
    linalg.yield %b : f32
  } -> tensor<2x96xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<2x96xf32>, memref<2x96xf32>) -> ()
  return
}
func.func private @k2_thirds(%k: memref<2x96xf32>, %y: memref<2x96xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %k restrict : memref<2x96xf32> to tensor<2x96xf32>
  %c32 = arith.constant 32 : index
  %c96 = arith.constant 96 : index
  %e = tensor.empty() : tensor<2x96xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(h, d) -> (h, d)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<2x96xf32>) {
  ^bb0(%o: f32):
    %h = linalg.index 0 : index
    %d = linalg.index 1 : index
    %next = arith.addi %d, %c32 : index
    %other = arith.remui %next, %c96 : index
    %b = tensor.extract %0[%h, %other] : tensor<2x96xf32>
    linalg.yield %b : f32
  } -> tensor<2x96xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<2x96xf32>, memref<2x96xf32>) -> ()
  return
}
func.func @main(%x: tensor<1x32xf16>, %w: tensor<32x192xf16>) -> (tensor<2x96xf32>, tensor<2x96xf32>) {
  %e0 = tensor.empty() : tensor<1x192xf32>
  %e1 = tensor.empty() : tensor<2x96xf32>
  %p = sdx.call @k0_matmul(%x, %w : tensor<1x32xf16>, tensor<32x192xf16>) outs(%e0 : tensor<1x192xf32>) -> tensor<1x192xf32>
  %hc = tensor.collapse_shape %p [[0, 1]] : tensor<1x192xf32> into tensor<192xf32>
  %h = tensor.expand_shape %hc [[0, 1]] output_shape [2, 96] : tensor<192xf32> into tensor<2x96xf32>
  %r = sdx.call @k1_heads(%h : tensor<2x96xf32>) outs(%e1 : tensor<2x96xf32>) -> tensor<2x96xf32>
  %q = sdx.call @k0_matmul(%x, %w : tensor<1x32xf16>, tensor<32x192xf16>) outs(%e0 : tensor<1x192xf32>) -> tensor<1x192xf32>
  %gc = tensor.collapse_shape %q [[0, 1]] : tensor<1x192xf32> into tensor<192xf32>
  %g = tensor.expand_shape %gc [[0, 1]] output_shape [2, 96] : tensor<192xf32> into tensor<2x96xf32>
  %s = sdx.call @k2_thirds(%g : tensor<2x96xf32>) outs(%e1 : tensor<2x96xf32>) -> tensor<2x96xf32>
  return %r, %s : tensor<2x96xf32>, tensor<2x96xf32>
}
}
