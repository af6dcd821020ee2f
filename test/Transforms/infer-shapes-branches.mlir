// RUN: onnx-opt %s -split-input-file -onnx-infer-shapes | FileCheck %s

// The rank of the input decides: the other branch says nothing about the result, and need not fit.
// CHECK-LABEL: func @rank
// CHECK-NOT: onnx.If
// CHECK: %[[N:.*]] = onnx.Neg(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: onnx.Relu(%[[N]]) : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @rank(%x: tensor<2x3xf32>) -> tensor<*xf32> {
  %shape = onnx.Shape(%x) : (tensor<2x3xf32>) -> tensor<?xi64>
  %rank = onnx.Size(%shape) : (tensor<?xi64>) -> tensor<i64>
  %two = onnx.Constant() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %c = onnx.Equal(%rank, %two) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<*xf32> then_branch {
    %1 = onnx.Neg(%x) : (tensor<2x3xf32>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  } else_branch {
    %1 = onnx.Transpose(%x) {perm = array<i64: 0, 2, 1>} : (tensor<2x3xf32>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  }
  %2 = onnx.Relu(%0) : (tensor<*xf32>) -> tensor<*xf32>
  return %2 : tensor<*xf32>
}

// -----

// CHECK-LABEL: func @unknown
// CHECK: onnx.If
func.func @unknown(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<2xf32> then_branch {
    onnx.Yield %x : tensor<2xf32>
  } else_branch {
    %1 = onnx.Neg(%x) : (tensor<2xf32>) -> tensor<2xf32>
    onnx.Yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// -----

// What reads a result of two ranks stands in both branches, until they agree.
// CHECK-LABEL: func @two_ranks
// CHECK: onnx.If(%{{.*}}) : (tensor<i1>) -> tensor<3xf32>
// CHECK: %[[A:.*]] = onnx.Squeeze({{.*}} -> tensor<3xf32>
// CHECK: %[[B:.*]] = onnx.Abs(%[[A]]) : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: %[[C:.*]] = onnx.Reshape(%[[B]], {{.*}} -> tensor<3xf32>
// CHECK: Yield %[[C]]
// CHECK: %[[D:.*]] = onnx.Abs(%arg0) : (tensor<3x1xf32>) -> tensor<3x1xf32>
// CHECK: onnx.Reshape(%[[D]], {{.*}} -> tensor<3xf32>
// CHECK: onnx.Neg(%{{.*}}) : (tensor<3xf32>)
func.func @two_ranks(%x: tensor<3x1xf32>, %c: tensor<i1>) -> tensor<*xf32> {
  %last = onnx.Constant() {value = dense<-1> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<*xf32> then_branch {
    %1 = onnx.Squeeze(%x, %last) : (tensor<3x1xf32>, tensor<1xi64>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  } else_branch {
    onnx.Yield %x : tensor<3x1xf32>
  }
  %2 = onnx.Abs(%0) : (tensor<*xf32>) -> tensor<*xf32>
  %3 = onnx.Reshape(%2, %last) : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
  %4 = onnx.Neg(%3) : (tensor<*xf32>) -> tensor<*xf32>
  return %4 : tensor<*xf32>
}

// -----

// A branch that is wrong fails when it is taken.
// CHECK-LABEL: func @wrong_branch
// CHECK: else_branch
// CHECK: sdx.check %{{.*}}, "Transpose: breaks a rule{{.*}}" as invalid_argument
// CHECK: %[[ANY:.*]] = onnx.Constant() {value = dense<0.000000e+00> : tensor<2x3xf32>}
// CHECK: Yield %[[ANY]]
func.func @wrong_branch(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<*xf32> {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<*xf32> then_branch {
    %1 = onnx.Neg(%x) : (tensor<2x3xf32>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  } else_branch {
    %1 = onnx.Transpose(%x) {perm = array<i64: 0, 2, 1>} : (tensor<2x3xf32>) -> tensor<*xf32>
    onnx.Yield %1 : tensor<*xf32>
  }
  return %0 : tensor<*xf32>
}
