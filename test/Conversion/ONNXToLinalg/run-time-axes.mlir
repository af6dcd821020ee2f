// RUN: onnx-opt %s -split-input-file -convert-onnx-to-linalg -canonicalize -cse | FileCheck %s

// Each dimension asks whether it is the axis that is meant.
// CHECK-LABEL: func @pad
// CHECK: sdx.check {{.*}}an axis is out of range: {0}
// CHECK: arith.select
// CHECK: sdx.check {{.*}}an element of input 'pads' is impossible: {0}
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<?x?xf32>)
func.func @pad(%x: tensor<3x4xf32>, %p: tensor<2xi64>, %c: tensor<f32>, %a: tensor<1xi64>) -> tensor<?x?xf32> {
  %0 = onnx.Pad(%x, %p, %c, %a) : (tensor<3x4xf32>, tensor<2xi64>, tensor<f32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Wherever the axis is, the elements stay as they are.
// CHECK-LABEL: func @unsqueeze
// CHECK-NOT: linalg
// CHECK: sdx.check {{.*}}an axis is out of range: {0}
// CHECK-NOT: linalg
// CHECK: tensor.expand_shape
// CHECK-NOT: linalg
func.func @unsqueeze(%x: tensor<?xf32>, %a: tensor<1xi64>) -> tensor<?x?xf32> {
  %0 = onnx.Unsqueeze(%x, %a) : (tensor<?xf32>, tensor<1xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func @mel
// CHECK: math.log1p
// CHECK: linalg.generic
// CHECK: math.expm1
func.func @mel(%b: tensor<i64>, %n: tensor<i64>, %r: tensor<i64>, %l: tensor<f32>, %h: tensor<f32>) -> tensor<?x?xf32> {
  %0 = onnx.MelWeightMatrix(%b, %n, %r, %l, %h) : (tensor<i64>, tensor<i64>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
