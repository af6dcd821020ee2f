// RUN: onnx-opt %s -split-input-file -cpu-lower-pool | FileCheck %s
// RUN: onnx-opt %s --target=haswell -split-input-file -cpu-lower-pool | FileCheck %s --check-prefix=AVX2

// Three rows become a line, padded with the lowest number; a load of every
// second of it serves two columns, and the third is the first of them moved by
// one. Lines of eight rows are made before they are read. Rows outside are those at the edge. No border is made.
// CHECK-LABEL: func.func private @padded
// CHECK:       scf.parallel
// CHECK:         %[[LINE:.*]] = memref.alloc() {{.*}} : memref<8x{{.*}}xf32>
// CHECK:         %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK:         vector.store %[[LOWEST]], %[[LINE]]
// CHECK:         scf.for
// CHECK:           arith.maxsi
// CHECK:           arith.minsi
// CHECK:           scf.for
// CHECK-COUNT-3:     vector.load %arg0{{.*}} vector<32xf32>
// CHECK:             vector.store {{.*}}, %[[LINE]]
// The last columns, once more in part.
// CHECK-COUNT-3:   vector.load %arg0{{.*}} vector<32xf32>
// CHECK:           vector.store {{.*}}, %[[LINE]]
// CHECK:           scf.for
// CHECK:             %[[BOTH:.*]] = vector.load %[[LINE]]{{.*}} vector<32xf32>
// CHECK:             vector.shuffle %[[BOTH]], %[[BOTH]] [0, 2, 4
// CHECK:             vector.shuffle %[[BOTH]], %[[BOTH]] [1, 3, 5
// CHECK:             memref.load %[[LINE]]
// CHECK:             vector.shuffle {{.*}} [1, 2, 3
// CHECK-NOT:         vector.load
// Two maxima of both orders each, and what follows in the kernel.
// CHECK-COUNT-2:     arith.ori
// CHECK:             arith.addf
// CHECK:             vector.maskedstore
// CHECK:         memref.dealloc %[[LINE]]

// AVX2-LABEL: func.func private @padded
// AVX2:         vector.load %arg0{{.*}} vector<16xf32>
func.func private @padded(%x: memref<2x24x75x75xf32>, %out: memref<2x24x38x38xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<2x24x75x75xf32> to tensor<2x24x75x75xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<2x24x38x38xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<2x24x38x38xf32>) -> tensor<2x24x38x38xf32>
  %m = sdx.max_pool ins(%t : tensor<2x24x75x75xf32>) outs(%f : tensor<2x24x38x38xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<2x24x38x38xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%m : tensor<2x24x38x38xf32>) outs(%e : tensor<2x24x38x38xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %one : f32
    linalg.yield %s : f32
  } -> tensor<2x24x38x38xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<2x24x38x38xf32>, memref<2x24x38x38xf32>) -> ()
  return
}

// -----

// Without padding no row is outside; columns of stride 3 are gathered.
// CHECK-LABEL: func.func private @inside
// CHECK-NOT:     arith.maxsi
// CHECK:         vector.gather
// CHECK-NOT:     arith.maxsi
// CHECK:         return
func.func private @inside(%x: memref<1x3x30x30xf32>, %out: memref<1x3x10x10xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<1x3x30x30xf32> to tensor<1x3x30x30xf32>
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x3x10x10xf32>
  %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<1x3x10x10xf32>) -> tensor<1x3x10x10xf32>
  %m = sdx.max_pool ins(%t : tensor<1x3x30x30xf32>) outs(%f : tensor<1x3x10x10xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 3, 3>, pads_begin = array<i64: 0, 0>} -> tensor<1x3x10x10xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x3x10x10xf32>, memref<1x3x10x10xf32>) -> ()
  return
}

// -----

// Rows outside are left out of a sum, and counted out of the mean; so are
// columns, whose counts are the same in all rows. Of a size that is not known
// the last columns are masked.
// CHECK-LABEL: func.func private @mean
// CHECK:       scf.parallel
// CHECK:         %[[LINES:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<8x?xf32>
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:         vector.store %[[ZERO]], %[[LINES]]
// CHECK:         %[[COUNTS:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<1x?xf32>
// CHECK:         arith.sitofp
// CHECK:         vector.store {{.*}}, %[[COUNTS]]
// CHECK:         %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c3
// CHECK:         scf.if %[[WHOLE]]
// CHECK-COUNT-3:   vector.load %arg0
// CHECK-COUNT-3:   vector.maskedload %arg0
// CHECK:         } else {
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<16xf32>)
// CHECK:             vector.load %arg0
// CHECK-COUNT-3: vector.load %[[LINES]]
// CHECK:         %[[COLUMNS:.*]] = vector.load %[[COUNTS]]
// CHECK:         %[[COUNT:.*]] = arith.mulf %{{.*}}, %[[COLUMNS]]
// CHECK:         arith.divf %{{.*}}, %[[COUNT]]
// CHECK:         vector.maskedstore
func.func private @mean(%x: memref<1x3x?x?xf32>, %out: memref<1x3x?x?xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<1x3x?x?xf32> to tensor<1x3x?x?xf32>
  %two = arith.constant 2 : index
  %three = arith.constant 3 : index
  %h = memref.dim %out, %two : memref<1x3x?x?xf32>
  %w = memref.dim %out, %three : memref<1x3x?x?xf32>
  %e = tensor.empty(%h, %w) : tensor<1x3x?x?xf32>
  %m = sdx.average_pool ins(%t : tensor<1x3x?x?xf32>) outs(%e : tensor<1x3x?x?xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x?x?xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x3x?x?xf32>, memref<1x3x?x?xf32>) -> ()
  return
}

// -----

// What divides the sum is a constant where pads count, or no window sees any.
// CHECK-LABEL: func.func private @mean_with_pads
// CHECK-NOT:     arith.sitofp
// CHECK:         %[[NINE:.*]] = arith.constant dense<9.000000e+00> : vector<16xf32>
// CHECK:         arith.divf %{{.*}}, %[[NINE]]
func.func private @mean_with_pads(%x: memref<1x3x30x30xf32>, %out: memref<1x3x30x30xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<1x3x30x30xf32> to tensor<1x3x30x30xf32>
  %e = tensor.empty() : tensor<1x3x30x30xf32>
  %m = sdx.average_pool ins(%t : tensor<1x3x30x30xf32>) outs(%e : tensor<1x3x30x30xf32>)
      {count_include_pad, kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>} -> tensor<1x3x30x30xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x3x30x30xf32>, memref<1x3x30x30xf32>) -> ()
  return
}
