// RUN: onnx-opt %s --sdx-instrument-host | FileCheck %s

// CHECK: module attributes {sdx.profile = [
// CHECK-SAME: {form = "product", kernel = "k0_matmul", nodes = ["'fc' (Gemm)", "act"]}
// CHECK-SAME: {form = "conv 3x3, winograd 4x4", kernel = "k1_conv", nodes = ["c"]}
// CHECK-SAME: {form = "generic", kernel = "k2_generic", nodes = []}
// CHECK-SAME: {form = "copy", kernel = "copy", nodes = []}

// CHECK-LABEL: func.func @main
func.func @main(%a: memref<?x8xf32> {sdx.input = 0 : i64}, %w: memref<2x8x32xf32> {sdx.input = 1 : i64},
                %x: memref<1x4x6x6xf32> {sdx.input = 2 : i64}, %f: memref<1x2x144x8xf32> {sdx.input = 3 : i64},
                %t: memref<1000x16xf32> {sdx.input = 4 : i64}, %i: memref<5xi64> {sdx.input = 5 : i64}) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %a, %c0 : memref<?x8xf32>
  %c = memref.alloc(%m) : memref<?x64xf32>
  %d = memref.alloc(%m) : memref<?x64xf32>
  %y = memref.alloc() : memref<1x16x4x4xf32>
  %r = memref.alloc() : memref<5x16xf32>

  // A product of M x 8 and 8 x 64 with a maximum after it: 2 * 8 * 64 * M + 64 * M operations on
  // 32 M + 2048 + 256 M bytes.
  // CHECK: %[[BEGIN:.*]] = sdx.clock : i64
  // CHECK-NEXT: sdx.call @k0_matmul
  // CHECK-NEXT: %[[C1024:.*]] = arith.constant 1024 : index
  // CHECK: %[[PRODUCT:.*]] = arith.muli %[[C1024]], %{{.*}} : index
  // CHECK: %[[C64:.*]] = arith.constant 64 : index
  // CHECK: %[[MAXIMUM:.*]] = arith.muli %[[C64]], %{{.*}} : index
  // CHECK: arith.addi %[[PRODUCT]], %[[MAXIMUM]] : index
  // CHECK: %[[C32:.*]] = arith.constant 32 : index
  // CHECK: arith.muli %[[C32]]
  // CHECK: %[[C256:.*]] = arith.constant 256 : index
  // CHECK: arith.muli %[[C256]]
  // CHECK: arith.constant 2048 : i64
  // CHECK: sdx.record 0 from %[[BEGIN]] flops %{{.*}} bytes %{{.*}}
  sdx.call @k0_matmul(%a, %w : memref<?x8xf32>, memref<2x8x32xf32>) outs(%c : memref<?x64xf32>) loc(#fused)

  // A convolution counts as the direct sum: 2 * 16 * 4 * 4 * 4 * 9.
  // CHECK: sdx.call @k1_conv
  // CHECK-NEXT: %[[FLOPS:.*]] = arith.constant 18432 : i64
  // CHECK-NEXT: %[[BYTES:.*]] = arith.constant 10816 : i64
  // CHECK-NEXT: sdx.record 1 from %{{.*}} flops %[[FLOPS]] bytes %[[BYTES]]
  sdx.call @k1_conv(%x, %f : memref<1x4x6x6xf32>, memref<1x2x144x8xf32>) outs(%y : memref<1x16x4x4xf32>) loc(#conv)

  // Of a table only the rows that are read count: 5 x 16 f32, as many again written, and an index for
  // each.
  // CHECK: sdx.call @k2_generic
  // CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : i64
  // CHECK-NEXT: %[[BYTES:.*]] = arith.constant 680 : i64
  // CHECK-NEXT: sdx.record 2 from %{{.*}} flops %[[NONE]] bytes %[[BYTES]]
  sdx.call @k2_generic(%t, %i : memref<1000x16xf32>, memref<5xi64>) outs(%r : memref<5x16xf32>)

  // CHECK: memref.copy
  // CHECK: sdx.record 3 from
  memref.copy %c, %d : memref<?x64xf32> to memref<?x64xf32>
  return
}

func.func private @k0_matmul(%a: memref<?x8xf32>, %w: memref<2x8x32xf32>, %c: memref<?x64xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %a restrict : memref<?x8xf32> to tensor<?x8xf32>
  %1 = bufferization.to_tensor %w restrict : memref<2x8x32xf32> to tensor<2x8x32xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %c, %c0 : memref<?x64xf32>
  %2 = tensor.empty(%m) : tensor<?x64xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %4 = cpu.packed_matmul ins(%0, %1 : tensor<?x8xf32>, tensor<2x8x32xf32>) outs(%3 : tensor<?x64xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x64xf32>
  %5 = tensor.empty(%m) : tensor<?x64xf32>
  %6 = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%4 : tensor<?x64xf32>) outs(%5 : tensor<?x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %7 = arith.maximumf %in, %zero : f32
    linalg.yield %7 : f32
  } -> tensor<?x64xf32>
  bufferization.materialize_in_destination %6 in restrict writable %c : (tensor<?x64xf32>, memref<?x64xf32>) -> ()
  return
}

func.func private @k1_conv(%x: memref<1x4x6x6xf32>, %f: memref<1x2x144x8xf32>, %y: memref<1x16x4x4xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<1x4x6x6xf32> to tensor<1x4x6x6xf32>
  %1 = bufferization.to_tensor %f restrict : memref<1x2x144x8xf32> to tensor<1x2x144x8xf32>
  %zero = arith.constant 0.0 : f32
  %2 = tensor.empty() : tensor<1x16x4x4xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %4 = cpu.conv ins(%0, %1 : tensor<1x4x6x6xf32>, tensor<1x2x144x8xf32>) outs(%3 : tensor<1x16x4x4xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>}
      -> tensor<1x16x4x4xf32>
  bufferization.materialize_in_destination %4 in restrict writable %y : (tensor<1x16x4x4xf32>, memref<1x16x4x4xf32>) -> ()
  return
}

func.func private @k2_generic(%t: memref<1000x16xf32>, %i: memref<5xi64>, %r: memref<5x16xf32>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %t restrict : memref<1000x16xf32> to tensor<1000x16xf32>
  %1 = bufferization.to_tensor %i restrict : memref<5xi64> to tensor<5xi64>
  %2 = tensor.empty() : tensor<5x16xf32>
  %3 = linalg.generic {
      indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<5xi64>) outs(%2 : tensor<5x16xf32>) {
  ^bb0(%in: i64, %out: f32):
    %row = arith.index_cast %in : i64 to index
    %column = linalg.index 1 : index
    %4 = tensor.extract %0[%row, %column] : tensor<1000x16xf32>
    linalg.yield %4 : f32
  } -> tensor<5x16xf32>
  bufferization.materialize_in_destination %3 in restrict writable %r : (tensor<5x16xf32>, memref<5x16xf32>) -> ()
  return
}

#gemm = loc("fc"("m.onnx":1:1))
#fc = loc(fused<"node 'fc' (Gemm)">[#gemm])
#act = loc("act"("m.onnx":2:1))
#fused = loc(fused[#fc, #act])
#conv = loc("c"("m.onnx":3:1))
