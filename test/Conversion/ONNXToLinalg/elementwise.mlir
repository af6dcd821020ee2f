// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// Sizes of 1 are dropped, equal names are equal sizes: one plain loop nest.
// CHECK: #[[$ALL:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK: #[[$ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func @broadcast(
func.func @broadcast(%x: tensor<?x3x4xf32> {onnx.dim_params = ["n", "", ""]},
                     %y: tensor<?x3x1xf32> {onnx.dim_params = ["n", "", ""]})
    -> tensor<?x3x4xf32> {
  // CHECK-NOT: sdx.check
  // CHECK: %[[Y:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0], [1, 2]]
  // CHECK: linalg.generic {indexing_maps = [#[[$ALL]], #[[$ROWS]], #[[$ALL]]]
  // CHECK-SAME: ins(%{{.*}}, %[[Y]] :
  // CHECK: arith.addf
  %z = onnx.Add(%x, %y) : (tensor<?x3x4xf32>, tensor<?x3x1xf32>) -> tensor<?x3x4xf32>
  return %z : tensor<?x3x4xf32>
}

// -----

// Sizes that nothing relates are compared at run time, and expanded then.
// CHECK-LABEL: func.func @unrelated
func.func @unrelated(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK-COUNT-2: sdx.check
  // CHECK-COUNT-2: scf.if
  // CHECK: arith.mulf
  %z = onnx.Mul(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// -----

// A splat constant is a scalar of the body, a constant exponent a product.
// CHECK-LABEL: func.func @square
// CHECK-SAME:    %[[X:.*]]: tensor<8xf32>
func.func @square(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>)
  // CHECK: arith.mulf %[[IN:.*]], %[[IN]] : f32
  %two = onnx.Constant() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Pow(%x, %two) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// Small floats are computed in f32.
// CHECK-LABEL: func.func @half
func.func @half(%x: tensor<8xf16>) -> tensor<8xf16> {
  // CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
  // CHECK: %[[TANH:.*]] = math.tanh %[[WIDE]] : f32
  // CHECK: arith.truncf %[[TANH]] : f32 to f16
  %z = onnx.Tanh(%x) : (tensor<8xf16>) -> tensor<8xf16>
  return %z : tensor<8xf16>
}

// -----

// Neither a zero divisor nor the lowest value by -1 may reach the division.
// CHECK-LABEL: func.func @divide
func.func @divide(%x: tensor<8xi32>, %y: tensor<8xi32>) -> tensor<8xi32> {
  // CHECK: %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK: %[[BAD:.*]] = arith.ori %[[ZERO]]
  // CHECK: %[[SAFE:.*]] = arith.select %[[BAD]], %c1_i32
  // CHECK: %[[Q:.*]] = arith.divsi %{{.*}}, %[[SAFE]]
  // CHECK: arith.select %[[ZERO]], %c0_i32, %[[Q]]
  %z = onnx.Div(%x, %y) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
  return %z : tensor<8xi32>
}

// -----

// Casts to integers saturate instead of being undefined.
// CHECK-LABEL: func.func @cast
func.func @cast(%x: tensor<8xf32>) -> tensor<8xi64> {
  // CHECK: arith.fptosi
  // CHECK: arith.select
  %z = onnx.Cast(%x) {to = 7} : (tensor<8xf32>) -> tensor<8xi64>
  return %z : tensor<8xi64>
}
