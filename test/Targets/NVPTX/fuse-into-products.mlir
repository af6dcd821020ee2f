// RUN: onnx-opt %s --split-input-file --nv-fuse-into-products | FileCheck %s
// RUN: onnx-opt %s --split-input-file --nv-fuse-into-products --nv-select-plans --nv-lower-matmul | FileCheck %s --check-prefix=LOWER

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

// -----

// Rows behind a product whose sums blocks share add up what they have, and
// leave the sums where something else reads them.
// CHECK-LABEL: func.func private @k0_matmul_k1_rows(
// CHECK-SAME: %{{[^:]+}}: memref<64x2048xf32>, %{{[^:]+}}: memref<2048x96xf32>, %[[Y:[^:]+]]: memref<64xf32>, %[[P:[^:]+]]: memref<64x96xf32>) attributes {sdx.kernel}
// CHECK: %[[SUMS:.*]] = sdx.matmul
// CHECK: %[[ROWS:.*]] = linalg.generic
// CHECK: bufferization.materialize_in_destination %[[ROWS]] in restrict writable %[[Y]]
// CHECK: bufferization.materialize_in_destination %[[SUMS]] in restrict writable %[[P]]
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = sdx.call @k0_matmul_k1_rows(
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1

// LOWER: func.func private @k0_matmul_k1_rows(
// LOWER: %[[PARTS:.*]] = memref.alloc() : memref<[[S:[0-9]+]]x1x64x96xf32>
// LOWER: scf.parallel
// LOWER: memref.store %{{.*}}, %[[PARTS]]
// LOWER: nv.step = "matmul"
// LOWER: scf.parallel
// LOWER: memref.load %[[PARTS]]
// LOWER: gpu.shuffle
// LOWER: nv.step = "rows"
// LOWER: memref.dealloc %[[PARTS]]
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0_matmul(%x: memref<64x2048xf32>, %w: memref<2048x96xf32>, %y: memref<64x96xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64x2048xf32> to tensor<64x2048xf32>
  %1 = bufferization.to_tensor %w restrict : memref<2048x96xf32> to tensor<2048x96xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %p = sdx.matmul ins(%0, %1 : tensor<64x2048xf32>, tensor<2048x96xf32>) outs(%f : tensor<64x96xf32>) -> tensor<64x96xf32>
  bufferization.materialize_in_destination %p in restrict writable %y : (tensor<64x96xf32>, memref<64x96xf32>) -> ()
  return
}
func.func private @k1_rows(%x: memref<64x96xf32>, %y: memref<64xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<64x96xf32> to tensor<64x96xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<64x96xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<64xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}
func.func @main(%x: tensor<64x2048xf32>, %w: tensor<2048x96xf32>) -> (tensor<64xf32>, tensor<64x96xf32>) {
  %e0 = tensor.empty() : tensor<64x96xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %p = sdx.call @k0_matmul(%x, %w : tensor<64x2048xf32>, tensor<2048x96xf32>) outs(%e0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %s = sdx.call @k1_rows(%p : tensor<64x96xf32>) outs(%e1 : tensor<64xf32>) -> tensor<64xf32>
  return %s, %p : tensor<64xf32>, tensor<64x96xf32>
}
}
