// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -cse -split-input-file | FileCheck %s

// A failed check names the node: by its name, or by what it makes.
// CHECK-LABEL: func.func @names
func.func @names(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: sdx.check %{{.*}}, "node 'sum_0_' (Add): sizes {0} and {1} of the operands cannot be broadcast"
  %0 = onnx.Add(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("sum{0}")
  // CHECK: sdx.check %{{.*}}, "Mul (output 'product'): sizes
  %1 = onnx.Mul(%0, %y) {onnx.names = ["product"]} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  // CHECK: sdx.check %{{.*}}, "Sub: sizes
  %2 = onnx.Sub(%1, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %2 : tensor<?xf32>
}

// -----

// A list is as long as its readers assume before they read it, and what it
// holds is a shape before a tensor is made of it.
// CHECK-LABEL: func.func @shape_operand
// CHECK-SAME:    %[[S:.*]]: tensor<?xi64>
func.func @shape_operand(%s: tensor<?xi64>) -> tensor<?x?xf32> {
  // CHECK: %[[N:.*]] = tensor.dim %[[S]]
  // CHECK: %[[OK:.*]] = arith.cmpi eq, %[[N]], %c2
  // CHECK: sdx.check %[[OK]], "ConstantOfShape: input 'input' has another length than it must have: {0} and {1}"(%[[N]], %c2)
  // CHECK: tensor.extract %[[S]]
  // CHECK: tensor.extract %[[S]]
  // CHECK: arith.mulf
  // CHECK: arith.cmpf olt
  // CHECK: sdx.check %{{.*}}, "ConstantOfShape: a tensor of shape [{0}, {1}] is impossible"
  // CHECK: tensor.empty
  %0 = onnx.ConstantOfShape(%s) : (tensor<?xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Sizes of tensors are sizes: nothing to check.
// CHECK-LABEL: func.func @traced
// CHECK-NOT: sdx.check
func.func @traced(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %s = onnx.Shape(%x) : (tensor<?x8xf32>) -> tensor<2xi64>
  %0 = onnx.ConstantOfShape(%s) : (tensor<2xi64>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// The product of sizes that somebody computed may wrap around.
// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<?x?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
  // CHECK: sdx.check %{{.*}}, "Reshape: element 0 of input 'shape' is no size: {0}"
  // CHECK: sdx.check %{{.*}}, "Reshape: element 1 of input 'shape' is no size: {0}"
  // CHECK: sdx.check %{{.*}}, "Reshape: input 'shape' has {0} elements that are -1"
  // CHECK: sdx.check %{{.*}}, "Reshape: a tensor of shape [{0}, {1}] is impossible"
  // CHECK: sdx.check %{{.*}}, "Reshape: the new shape does not hold as many elements: {0} and {1}"
  %0 = onnx.Reshape(%x, %s) : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// CHECK-LABEL: func.func @channels
func.func @channels(%x: tensor<?x?x?xf32>, %s: tensor<?xf32>) -> tensor<?x?x?xf32> {
  // CHECK: sdx.check %{{.*}}, "InstanceNormalization: the length of input 'scale' is not the number of channels: {0} and {1}"
  %0 = onnx.InstanceNormalization(%x, %s, %s) : (tensor<?x?x?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}

// -----

// CHECK-LABEL: func.func @training
func.func @training(%x: tensor<4xf32>, %r: tensor<f32>, %t: tensor<i1>) -> tensor<4xf32> {
  // CHECK: sdx.check %{{.*}}, "Dropout: the ratio lies outside of [0, 1)"
  %0 = onnx.Dropout(%x, %r, %t) : (tensor<4xf32>, tensor<f32>, tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Pads belong to the axes in the order in which these are given.
// CHECK-LABEL: func.func @pad_axes
// CHECK-SAME:    %[[X:.*]]: tensor<2x3xf32>
func.func @pad_axes(%x: tensor<2x3xf32>) -> tensor<4x6xf32> {
  // CHECK: arith.subi %{{.*}}, %c1
  // CHECK: arith.subi %{{.*}}, %c3
  // CHECK: tensor.extract %[[X]]
  %p = onnx.Constant() {value = dense<[3, 1, 0, 1]> : tensor<4xi64>} : () -> tensor<4xi64>
  %a = onnx.Constant() {value = dense<[1, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = onnx.Pad(%x, %p, none, %a) : (tensor<2x3xf32>, tensor<4xi64>, tensor<2xi64>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
