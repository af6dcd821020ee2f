// RUN: onnx-opt %s --sdx-parameterize-kernels | FileCheck %s

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>

// The factors and the limit of the two convolutions differ, their zero does
// not.
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[SIX:.*]] = arith.constant 6.000000e+00 : f32
// CHECK: sdx.call @a(%{{.*}}, %{{.*}}, %[[TWO]], %[[SIX]] : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>, f32, f32) outs(
// CHECK: sdx.call @b(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>, f32, f32) outs(
// Those of elementwise kernels stay.
// CHECK: sdx.call @c(%{{.*}} : tensor<1x3x4x4xf32>) outs(
// CHECK: sdx.call @d(%{{.*}} : tensor<1x3x4x4xf32>) outs(
func.func @main(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x1x1xf32>) -> (tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>) {
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %0 = sdx.call @a(%x, %w : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %1 = sdx.call @b(%x, %w : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %2 = sdx.call @c(%0 : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %3 = sdx.call @d(%1 : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  return %2, %3 : tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>
}

// CHECK-LABEL: func.func private @a(
// CHECK-SAME: %{{.*}}: memref<1x2x4x4xf32>, %{{.*}}: memref<3x2x1x1xf32>, %[[FACTOR:.*]]: f32, %[[LIMIT:.*]]: f32, %{{.*}}: memref<1x3x4x4xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK: arith.maximumf %{{.*}}, %[[ZERO]]
// CHECK: arith.minimumf %{{.*}}, %[[LIMIT]]
func.func private @a(%x: memref<1x2x4x4xf32>, %w: memref<3x2x1x1xf32>, %out: memref<1x3x4x4xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x2x4x4xf32> to tensor<1x2x4x4xf32>
  %tw = bufferization.to_tensor %w restrict : memref<3x2x1x1xf32> to tensor<3x2x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %factor = arith.constant 2.0 : f32
  %limit = arith.constant 6.0 : f32
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %c = sdx.conv ins(%tx, %tw : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%z : tensor<1x3x4x4xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x3x4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %factor : f32
    %p = arith.maximumf %m, %zero : f32
    %l = arith.minimumf %p, %limit : f32
    linalg.yield %l : f32
  } -> tensor<1x3x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x3x4x4xf32>, memref<1x3x4x4xf32>) -> ()
  return
}
func.func private @b(%x: memref<1x2x4x4xf32>, %w: memref<3x2x1x1xf32>, %out: memref<1x3x4x4xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x2x4x4xf32> to tensor<1x2x4x4xf32>
  %tw = bufferization.to_tensor %w restrict : memref<3x2x1x1xf32> to tensor<3x2x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %factor = arith.constant 3.0 : f32
  %limit = arith.constant 5.0 : f32
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %c = sdx.conv ins(%tx, %tw : tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) outs(%z : tensor<1x3x4x4xf32>)
      {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x3x4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %factor : f32
    %p = arith.maximumf %m, %zero : f32
    %l = arith.minimumf %p, %limit : f32
    linalg.yield %l : f32
  } -> tensor<1x3x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x3x4x4xf32>, memref<1x3x4x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func private @c(
// CHECK: arith.constant 2.000000e+00
func.func private @c(%x: memref<1x3x4x4xf32>, %out: memref<1x3x4x4xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x4x4xf32> to tensor<1x3x4x4xf32>
  %factor = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%tx : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %factor : f32
    linalg.yield %m : f32
  } -> tensor<1x3x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x3x4x4xf32>, memref<1x3x4x4xf32>) -> ()
  return
}
func.func private @d(%x: memref<1x3x4x4xf32>, %out: memref<1x3x4x4xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x4x4xf32> to tensor<1x3x4x4xf32>
  %factor = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<1x3x4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%tx : tensor<1x3x4x4xf32>) outs(%e : tensor<1x3x4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %factor : f32
    linalg.yield %m : f32
  } -> tensor<1x3x4x4xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<1x3x4x4xf32>, memref<1x3x4x4xf32>) -> ()
  return
}

#square = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

// The zero points by which sums of columns are multiplied differ.
// CHECK-LABEL: func.func @zero_points
// CHECK: sdx.call @e(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xi8>, tensor<8x4xi8>, tensor<4xi32>, i32) outs(
// CHECK: sdx.call @f(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xi8>, tensor<8x4xi8>, tensor<4xi32>, i32) outs(
func.func @zero_points(%x: tensor<4x8xi8>, %w: tensor<8x4xi8>, %s: tensor<4xi32>) -> (tensor<4x4xi32>, tensor<4x4xi32>) {
  %e = tensor.empty() : tensor<4x4xi32>
  %0 = sdx.call @e(%x, %w, %s : tensor<4x8xi8>, tensor<8x4xi8>, tensor<4xi32>) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  %1 = sdx.call @f(%x, %w, %s : tensor<4x8xi8>, tensor<8x4xi8>, tensor<4xi32>) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0, %1 : tensor<4x4xi32>, tensor<4x4xi32>
}

// CHECK-LABEL: func.func private @e(
// CHECK-SAME: %{{.*}}: memref<4xi32>, %[[ZERO:.*]]: i32, %{{.*}}: memref<4x4xi32>)
// CHECK: arith.muli %{{.*}}, %[[ZERO]]
func.func private @e(%x: memref<4x8xi8>, %w: memref<8x4xi8>, %s: memref<4xi32>, %out: memref<4x4xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<4x8xi8> to tensor<4x8xi8>
  %tw = bufferization.to_tensor %w restrict : memref<8x4xi8> to tensor<8x4xi8>
  %ts = bufferization.to_tensor %s restrict : memref<4xi32> to tensor<4xi32>
  %none = arith.constant 0 : i32
  %zero = arith.constant 120 : i32
  %e = tensor.empty() : tensor<4x4xi32>
  %z = linalg.fill ins(%none : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  %p = sdx.matmul ins(%tx, %tw : tensor<4x8xi8>, tensor<8x4xi8>) outs(%z : tensor<4x4xi32>) {lhs_unsigned} -> tensor<4x4xi32>
  %r = linalg.generic {indexing_maps = [#square, #column, #square], iterator_types = ["parallel", "parallel"]}
      ins(%p, %ts : tensor<4x4xi32>, tensor<4xi32>) outs(%e : tensor<4x4xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %m = arith.muli %b, %zero : i32
    %d = arith.subi %a, %m : i32
    linalg.yield %d : i32
  } -> tensor<4x4xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x4xi32>, memref<4x4xi32>) -> ()
  return
}
func.func private @f(%x: memref<4x8xi8>, %w: memref<8x4xi8>, %s: memref<4xi32>, %out: memref<4x4xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<4x8xi8> to tensor<4x8xi8>
  %tw = bufferization.to_tensor %w restrict : memref<8x4xi8> to tensor<8x4xi8>
  %ts = bufferization.to_tensor %s restrict : memref<4xi32> to tensor<4xi32>
  %none = arith.constant 0 : i32
  %zero = arith.constant 131 : i32
  %e = tensor.empty() : tensor<4x4xi32>
  %z = linalg.fill ins(%none : i32) outs(%e : tensor<4x4xi32>) -> tensor<4x4xi32>
  %p = sdx.matmul ins(%tx, %tw : tensor<4x8xi8>, tensor<8x4xi8>) outs(%z : tensor<4x4xi32>) {lhs_unsigned} -> tensor<4x4xi32>
  %r = linalg.generic {indexing_maps = [#square, #column, #square], iterator_types = ["parallel", "parallel"]}
      ins(%p, %ts : tensor<4x4xi32>, tensor<4xi32>) outs(%e : tensor<4x4xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %m = arith.muli %b, %zero : i32
    %d = arith.subi %a, %m : i32
    linalg.yield %d : i32
  } -> tensor<4x4xi32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x4xi32>, memref<4x4xi32>) -> ()
  return
}
