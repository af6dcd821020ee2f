// RUN: onnx-opt %s --nv-fuse-into-products | FileCheck %s
// RUN: onnx-opt %s --nv-fuse-into-products --nv-select-plans --nv-lower-matmul | FileCheck %s --check-prefix=LOWER

// The two products of a gated unit are one kernel, which also computes the rows
// that they have in common.
// CHECK-NOT: @k0_rows(
// CHECK-NOT: @k1_matmul(
// CHECK: func.func private @k0_rows_k1_matmul_k2_matmul(%[[X:[^:]+]]: memref<1x64xf32>, %[[S:[^:]+]]: memref<64xf32>, %[[V:[^:]+]]: memref<64x96xf16>, %[[W:[^:]+]]: memref<64x96xf16>, %[[Y:[^:]+]]: memref<1x96xf32>) attributes {sdx.kernel}
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x64xf16>)
// CHECK: %[[G:.*]] = sdx.matmul ins(%[[ROWS]], %{{.*}} : tensor<1x64xf16>, tensor<64x96xf16>)
// CHECK: %[[U:.*]] = sdx.matmul ins(%[[ROWS]], %{{.*}} : tensor<1x64xf16>, tensor<64x96xf16>)
// CHECK: linalg.generic {{.*}} ins(%[[U]], %[[G]] :
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]+]]: tensor<1x64xf32>, %[[S:[^:]+]]: tensor<64xf32>, %[[V:[^:]+]]: tensor<64x96xf16>, %[[W:[^:]+]]: tensor<64x96xf16>)
// CHECK: %[[R:.*]] = sdx.call @k0_rows_k1_matmul_k2_matmul(%[[X]], %[[S]], %[[V]], %[[W]] :
// CHECK-NEXT: return %[[R]]

// The rows go to shared memory, and each of the sums of both products.
// LOWER: scf.parallel
// LOWER: %[[SUMS:.*]] = memref.view %{{.*}} to memref<8x2x{{[0-9]+}}xf32, #gpu.address_space<workgroup>>
// LOWER: memref.view %{{.*}} to memref<1x64xf16, #gpu.address_space<workgroup>>
// LOWER: gpu.shuffle
// LOWER: gpu.barrier
// LOWER: %[[LHS:.*]] = memref.view %{{.*}} to memref<1x64xf16, #gpu.address_space<workgroup>>
// LOWER: memref.load %[[LHS]]
// LOWER-NOT: scf.parallel
// LOWER: func.func @main

module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0_rows(%x: memref<1x64xf32>, %w: memref<64xf32>, %y: memref<1x64xf16>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x64xf32> to tensor<1x64xf32>
  %1 = bufferization.to_tensor %w restrict : memref<64xf32> to tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<1x64xf32>) outs(%f : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %a : f32
    %q = arith.addf %b, %p : f32
    linalg.yield %q : f32
  } -> tensor<1xf32>
  %g = tensor.empty() : tensor<1x64xf16>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%0, %s, %1 : tensor<1x64xf32>, tensor<1xf32>, tensor<64xf32>) outs(%g : tensor<1x64xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f16):
    %r = math.rsqrt %b : f32
    %p = arith.mulf %a, %r : f32
    %q = arith.mulf %p, %c : f32
    %t = arith.truncf %q : f32 to f16
    linalg.yield %t : f16
  } -> tensor<1x64xf16>
  bufferization.materialize_in_destination %n in restrict writable %y : (tensor<1x64xf16>, memref<1x64xf16>) -> ()
  return
}
func.func private @k1_matmul(%x: memref<1x64xf16>, %w: memref<64x96xf16>, %y: memref<1x96xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x64xf16> to tensor<1x64xf16>
  %1 = bufferization.to_tensor %w restrict : memref<64x96xf16> to tensor<64x96xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x96xf32>) -> tensor<1x96xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<1x64xf16>, tensor<64x96xf16>) outs(%f : tensor<1x96xf32>) -> tensor<1x96xf32>
  bufferization.materialize_in_destination %p in restrict writable %y : (tensor<1x96xf32>, memref<1x96xf32>) -> ()
  return
}
func.func private @k2_matmul(%x: memref<1x64xf16>, %w: memref<64x96xf16>, %u: memref<1x96xf32>, %y: memref<1x96xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x64xf16> to tensor<1x64xf16>
  %1 = bufferization.to_tensor %w restrict : memref<64x96xf16> to tensor<64x96xf16>
  %2 = bufferization.to_tensor %u restrict : memref<1x96xf32> to tensor<1x96xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x96xf32>) -> tensor<1x96xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<1x64xf16>, tensor<64x96xf16>) outs(%f : tensor<1x96xf32>) -> tensor<1x96xf32>
  %g = tensor.empty() : tensor<1x96xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%p, %2 : tensor<1x96xf32>, tensor<1x96xf32>) outs(%g : tensor<1x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<1x96xf32>
  bufferization.materialize_in_destination %n in restrict writable %y : (tensor<1x96xf32>, memref<1x96xf32>) -> ()
  return
}
func.func @main(%x: tensor<1x64xf32>, %s: tensor<64xf32>, %v: tensor<64x96xf16>, %w: tensor<64x96xf16>) -> (tensor<1x96xf32>) {
  %e0 = tensor.empty() : tensor<1x64xf16>
  %e1 = tensor.empty() : tensor<1x96xf32>
  %n = sdx.call @k0_rows(%x, %s : tensor<1x64xf32>, tensor<64xf32>) outs(%e0 : tensor<1x64xf16>) -> tensor<1x64xf16>
  %g = sdx.call @k1_matmul(%n, %v : tensor<1x64xf16>, tensor<64x96xf16>) outs(%e1 : tensor<1x96xf32>) -> tensor<1x96xf32>
  %u = sdx.call @k2_matmul(%n, %w, %g : tensor<1x64xf16>, tensor<64x96xf16>, tensor<1x96xf32>) outs(%e1 : tensor<1x96xf32>) -> tensor<1x96xf32>
  return %u : tensor<1x96xf32>
}
}
