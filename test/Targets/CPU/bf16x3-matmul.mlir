// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -verify-diagnostics \
// RUN:   -cpu-lower-contractions -canonicalize -cse | FileCheck %s

// Rows are split into their parts once, each panel for all rows, all but the
// first of a group while the one before it is multiplied; 24 products of parts
// make 32 values of k of a block of 32 rows and columns, and what is not allowed
// to be split is multiplied and added in f32.
// CHECK-LABEL: func.func private @parts
// CHECK-DAG: %[[ROWS:.*]] = memref.alloc() {{.*}} : memref<4x8x3x32x32xbf16>
// CHECK-DAG: %[[FLAGS:.*]] = memref.alloc() {{.*}} : memref<4xi1>
// CHECK: scf.parallel (%[[BLOCK:.*]]) = (%c0) to (%c4)
// CHECK: arith.maxui
// CHECK-COUNT-3: vector.store %{{.*}}, %[[ROWS]][%[[BLOCK]], {{.*}} : memref<4x8x3x32x32xbf16>, vector<32xbf16>
// CHECK: memref.store %{{.*}}, %[[FLAGS]][%[[BLOCK]]]
// CHECK: scf.parallel
// CHECK: %[[COLUMNS:.*]] = memref.alloc() {{.*}} : memref<2x8x3x2x16x32xbf16>
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c1
// CHECK-COUNT-6: vector.store %{{.*}}, %[[COLUMNS]]
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK: scf.for
// CHECK-COUNT-6: vector.store %{{.*}}, %[[COLUMNS]]
// CHECK-COUNT-20: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-NOT: tdpbf16ps
// CHECK: scf.if
// CHECK-COUNT-8: vector.fma
// CHECK: else
// CHECK-COUNT-8: arith.addf
func.func private @parts(%a: memref<128x256xf32>, %b: memref<16x256x32xf32>,
    %out: memref<128x512xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<128x256xf32> to tensor<128x256xf32>
  %tb = bufferization.to_tensor %b restrict : memref<16x256x32xf32> to tensor<16x256x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<128x256xf32>, tensor<16x256x32xf32>)
      outs(%f : tensor<128x512xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<128x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<128x512xf32>, memref<128x512xf32>) -> ()
  return
}

// -----

// Few rows are not worth it.
// CHECK-LABEL: func.func private @few_rows
// CHECK-NOT: tdpbf16ps
func.func private @few_rows(%a: memref<16x256xf32>, %b: memref<16x256x32xf32>,
    %out: memref<16x512xf32>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<16x256xf32> to tensor<16x256xf32>
  %tb = bufferization.to_tensor %b restrict : memref<16x256x32xf32> to tensor<16x256x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x512xf32>) -> tensor<16x512xf32>
  %m = cpu.packed_matmul ins(%ta, %tb : tensor<16x256xf32>, tensor<16x256x32xf32>)
      outs(%f : tensor<16x512xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<16x512xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<16x512xf32>, memref<16x512xf32>) -> ()
  return
}
