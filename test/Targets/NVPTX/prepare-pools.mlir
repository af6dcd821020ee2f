// RUN: onnx-opt %s -nv-prepare-pools | FileCheck %s

#window = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5 * 3)>
#kernel = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
#out = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// What has been padded with zeros is what the convolution takes for zeros.
// CHECK-LABEL: func @padded
// CHECK-SAME: %[[X:.*]]: tensor<?x16x30x30xf16>, %[[ZERO:.*]]: tensor<?x16x15x14xf32>
// CHECK: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<16x1x3x2xf16>
// CHECK: sdx.conv ins(%[[X]], %[[ONES]] : tensor<?x16x30x30xf16>, tensor<16x1x3x2xf16>) outs(%[[ZERO]] : tensor<?x16x15x14xf32>)
// CHECK-SAME: {dilations = array<i64: 1, 3>, group = 16 : i64, pads_begin = array<i64: 1, 0>, pads_end = array<i64: 0, 1>, strides = array<i64: 2, 2>}
// CHECK-NOT: linalg.generic
func.func @padded(%x: tensor<?x16x30x30xf16>, %zero: tensor<?x16x15x14xf32>, %n: index) -> tensor<?x16x15x14xf32> {
  %c = arith.constant 0.0 : f16
  %e = tensor.empty(%n) : tensor<?x16x31x31xf16>
  %f = linalg.fill ins(%c : f16) outs(%e : tensor<?x16x31x31xf16>) -> tensor<?x16x31x31xf16>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 0] [%n, 16, 30, 30] [1, 1, 1, 1] : tensor<?x16x30x30xf16> into tensor<?x16x31x31xf16>
  %k = tensor.empty() : tensor<3x2xf16>
  %s = linalg.generic {indexing_maps = [#window, #kernel, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %k : tensor<?x16x31x31xf16>, tensor<3x2xf16>) outs(%zero : tensor<?x16x15x14xf32>) {
  ^bb0(%in: f16, %size: f16, %out: f32):
    %0 = arith.extf %in : f16 to f32
    %1 = arith.addf %0, %out : f32
    linalg.yield %1 : f32
  } -> tensor<?x16x15x14xf32>
  return %s : tensor<?x16x15x14xf32>
}

// Where it is padded by open sizes it is padded before.
// CHECK-LABEL: func @open
// CHECK: %[[P:.*]] = tensor.insert_slice
// CHECK: sdx.conv ins(%[[P]], %{{.*}} : tensor<1x16x?x31xf32>, tensor<16x1x3x2xf32>)
// CHECK-SAME: pads_begin = array<i64: 0, 0>
func.func @open(%x: tensor<1x16x?x30xf32>, %zero: tensor<1x16x?x14xf32>, %h: index, %p: index) -> tensor<1x16x?x14xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty(%p) : tensor<1x16x?x31xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<1x16x?x31xf32>) -> tensor<1x16x?x31xf32>
  %i = tensor.insert_slice %x into %f[0, 0, 1, 0] [1, 16, %h, 30] [1, 1, 1, 1] : tensor<1x16x?x30xf32> into tensor<1x16x?x31xf32>
  %k = tensor.empty() : tensor<3x2xf32>
  %s = linalg.generic {indexing_maps = [#window, #kernel, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%i, %k : tensor<1x16x?x31xf32>, tensor<3x2xf32>) outs(%zero : tensor<1x16x?x14xf32>) {
  ^bb0(%in: f32, %size: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<1x16x?x14xf32>
  return %s : tensor<1x16x?x14xf32>
}

// The sum of what is computed of elements stays.
// CHECK-LABEL: func @squares
// CHECK-NOT: sdx.conv
// CHECK: linalg.generic
func.func @squares(%x: tensor<1x16x31x31xf32>, %zero: tensor<1x16x15x14xf32>) -> tensor<1x16x15x14xf32> {
  %k = tensor.empty() : tensor<3x2xf32>
  %s = linalg.generic {indexing_maps = [#window, #kernel, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %k : tensor<1x16x31x31xf32>, tensor<3x2xf32>) outs(%zero : tensor<1x16x15x14xf32>) {
  ^bb0(%in: f32, %size: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    %1 = arith.addf %out, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<1x16x15x14xf32>
  return %s : tensor<1x16x15x14xf32>
}
