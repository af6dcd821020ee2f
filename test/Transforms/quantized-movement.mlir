// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization -cse | FileCheck %s

// CHECK-LABEL: func @transpose
// CHECK: %[[Y:.*]] = onnx.Transpose(%arg0) {{.*}} : (tensor<2x3x4xui8>) -> tensor<2x4x3xui8>
// CHECK: return %[[Y]]
func.func @transpose(%q: tensor<2x3x4xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> tensor<2x4x3xui8> {
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<2x3x4xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3x4xf32>
  %1 = onnx.Transpose(%0) {perm = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %2 = onnx.QuantizeLinear(%1, %s, %z) : (tensor<2x4x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x4x3xui8>
  return %2 : tensor<2x4x3xui8>
}

// -----

// A scale for each index of a dimension follows it.
// CHECK-LABEL: func @transpose_per_axis
// CHECK: %[[T:.*]] = onnx.Transpose(%arg0) {{.*}} : (tensor<2x3x4xi8>) -> tensor<4x2x3xi8>
// CHECK: onnx.DequantizeLinear(%[[T]], %arg1) {axis = 2} : (tensor<4x2x3xi8>, tensor<3xf32>) -> tensor<4x2x3xf32>
func.func @transpose_per_axis(%q: tensor<2x3x4xi8>, %s: tensor<3xf32>) -> tensor<4x2x3xf32> {
  %0 = onnx.DequantizeLinear(%q, %s) {axis = -2} : (tensor<2x3x4xi8>, tensor<3xf32>) -> tensor<2x3x4xf32>
  %1 = onnx.Transpose(%0) {perm = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %1 : tensor<4x2x3xf32>
}

// -----

// CHECK-LABEL: func @quantize_before_transpose
// CHECK: %[[X:.*]] = onnx.MatMul
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[X]], %arg2) {output_dtype = 3}
// CHECK: onnx.Transpose(%[[Q]]) : (tensor<3x4xi8>) -> tensor<4x3xi8>
func.func @quantize_before_transpose(%a: tensor<3x8xf32>, %b: tensor<8x4xf32>, %s: tensor<4xf32>) -> tensor<4x3xi8> {
  %0 = onnx.MatMul(%a, %b) : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %1 = onnx.Transpose(%0) : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %2 = onnx.QuantizeLinear(%1, %s) {axis = 0, output_dtype = 3} : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xi8>
  return %2 : tensor<4x3xi8>
}

// -----

// Scales along a dimension that a Reshape changes stop there; one for all passes.
// CHECK-LABEL: func @reshape_per_axis
// CHECK: %[[F:.*]] = onnx.DequantizeLinear(%arg0, %arg1)
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[F]], %arg2)
// CHECK: onnx.Reshape(%[[Q]], %arg3)
func.func @reshape_per_axis(%q: tensor<4x4xi8>, %s: tensor<4xf32>, %t: tensor<f32>, %n: tensor<1xi64>) -> tensor<16xi8> {
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4x4xi8>, tensor<4xf32>) -> tensor<4x4xf32>
  %1 = onnx.Reshape(%0, %n) : (tensor<4x4xf32>, tensor<1xi64>) -> tensor<16xf32>
  %2 = onnx.QuantizeLinear(%1, %t) {output_dtype = 3} : (tensor<16xf32>, tensor<f32>) -> tensor<16xi8>
  return %2 : tensor<16xi8>
}

// -----

// All parts alike: the integers are put together.
// CHECK-LABEL: func @concat
// CHECK-NOT: onnx.DequantizeLinear
// CHECK: onnx.Concat(%arg0, %arg1) {axis = 1} : (tensor<2x3xi8>, tensor<2x5xi8>) -> tensor<2x8xi8>
func.func @concat(%a: tensor<2x3xi8>, %b: tensor<2x5xi8>, %s: tensor<f32>) -> tensor<2x8xi8> {
  %0 = onnx.DequantizeLinear(%a, %s) : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %1 = onnx.DequantizeLinear(%b, %s) : (tensor<2x5xi8>, tensor<f32>) -> tensor<2x5xf32>
  %2 = onnx.Concat(%0, %1) {axis = 1} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %3 = onnx.QuantizeLinear(%2, %s) {output_dtype = 3} : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xi8>
  return %3 : tensor<2x8xi8>
}

// -----

// A part with other parameters is quantised once more, the one without change
// is taken as it is.
// CHECK-LABEL: func @concat_of_others
// CHECK: %[[B:.*]] = onnx.DequantizeLinear(%arg1, %arg3)
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[B]], %arg2)
// CHECK: onnx.Concat(%arg0, %[[Q]])
func.func @concat_of_others(%a: tensor<2x3xi8>, %b: tensor<2x5xi8>, %s: tensor<f32>, %t: tensor<f32>) -> tensor<2x8xi8> {
  %0 = onnx.DequantizeLinear(%a, %s) : (tensor<2x3xi8>, tensor<f32>) -> tensor<2x3xf32>
  %1 = onnx.DequantizeLinear(%b, %t) : (tensor<2x5xi8>, tensor<f32>) -> tensor<2x5xf32>
  %2 = onnx.Concat(%0, %1) {axis = 1} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %3 = onnx.QuantizeLinear(%2, %s) {output_dtype = 3} : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xi8>
  return %3 : tensor<2x8xi8>
}

// -----

// CHECK-LABEL: func @split
// CHECK-NOT: onnx.QuantizeLinear
// CHECK: %[[P:.*]]:2 = onnx.Split(%arg0) {{.*}} -> (tensor<2x2xui8>, tensor<2x2xui8>)
// CHECK: %[[F:.*]] = onnx.DequantizeLinear(%[[P]]#1, %arg1, %arg2)
// CHECK: return %[[P]]#0, %[[F]]
func.func @split(%q: tensor<4x2xui8>, %s: tensor<f32>, %z: tensor<ui8>) -> (tensor<2x2xui8>, tensor<2x2xf32>) {
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<4x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<4x2xf32>
  %1:2 = onnx.Split(%0) {num_outputs = 2} : (tensor<4x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  %2 = onnx.QuantizeLinear(%1#0, %s, %z) : (tensor<2x2xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x2xui8>
  return %2, %1#1 : tensor<2x2xui8>, tensor<2x2xf32>
}

// -----

// The zeros of a Pad are the zero point.
// CHECK-LABEL: func @pad
// CHECK: %[[Z:.*]] = onnx.Constant() {value = dense<7> : tensor<ui8>}
// CHECK: %[[P:.*]] = onnx.Pad(%arg0, %arg1, %[[Z]]) : (tensor<4xui8>, tensor<2xi64>, tensor<ui8>) -> tensor<6xui8>
// CHECK: onnx.DequantizeLinear(%[[P]]
func.func @pad(%q: tensor<4xui8>, %n: tensor<2xi64>) -> tensor<6xf32> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %z = onnx.Constant() {value = dense<7> : tensor<ui8>} : () -> tensor<ui8>
  %0 = onnx.DequantizeLinear(%q, %s, %z) : (tensor<4xui8>, tensor<f32>, tensor<ui8>) -> tensor<4xf32>
  %1 = onnx.Pad(%0, %n) : (tensor<4xf32>, tensor<2xi64>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

// No integer stands for 0.3; what is quantised afterwards takes the nearest one.
// CHECK-LABEL: func @pad_between
// CHECK-DAG: onnx.Pad(%{{.*}}, %arg1, %{{.*}}) : (tensor<4xf32>
// CHECK-DAG: %[[ONE:.*]] = onnx.Constant() {value = dense<1> : tensor<i8>}
// CHECK-DAG: onnx.Pad(%{{.*}}, %arg1, %[[ONE]]) : (tensor<4xi8>
func.func @pad_between(%q: tensor<4xi8>, %n: tensor<2xi64>, %x: tensor<4xf32>) -> (tensor<6xf32>, tensor<6xi8>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %c = onnx.Constant() {value = dense<0.3> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
  %1 = onnx.Pad(%0, %n, %c) : (tensor<4xf32>, tensor<2xi64>, tensor<f32>) -> tensor<6xf32>
  %2 = onnx.Softmax(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = onnx.Pad(%2, %n, %c) : (tensor<4xf32>, tensor<2xi64>, tensor<f32>) -> tensor<6xf32>
  %4 = onnx.QuantizeLinear(%3, %s) {output_dtype = 3} : (tensor<6xf32>, tensor<f32>) -> tensor<6xi8>
  return %1, %4 : tensor<6xf32>, tensor<6xi8>
}

// -----

// CHECK-LABEL: func @max_pool
// CHECK: onnx.MaxPool(%arg0) {{.*}} : (tensor<1x2x4x4xi8>) -> tensor<1x2x3x3xi8>
// CHECK: onnx.MaxPool(%{{.*}}) {dilations = {{.*}} : (tensor<1x2x4x4xf32>)
func.func @max_pool(%q: tensor<1x2x4x4xi8>) -> (tensor<1x2x3x3xi8>, tensor<1x2x6x6xf32>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<1x2x4x4xi8>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 2, 2>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32>
  %2 = onnx.QuantizeLinear(%1, %s) {output_dtype = 3} : (tensor<1x2x3x3xf32>, tensor<f32>) -> tensor<1x2x3x3xi8>
  // A window that sees nothing but pads has no integer.
  %3 = onnx.MaxPool(%0) {dilations = array<i64: 6, 6>, kernel_shape = array<i64: 2, 2>, pads = array<i64: 4, 4, 4, 4>} : (tensor<1x2x4x4xf32>) -> tensor<1x2x6x6xf32>
  return %2, %3 : tensor<1x2x3x3xi8>, tensor<1x2x6x6xf32>
}

// -----

// Where scales are not known to be positive the largest float may be of the
// least integer; ReduceMax knows no integers of 16 bits; the largest of no
// floats is infinite.
// CHECK-LABEL: func @not_compared
// CHECK-COUNT-2: onnx.ReduceMax(%{{.*}}, %arg3) : (tensor<4x4xf32>
// CHECK: onnx.ReduceMax(%{{.*}}, %arg3) : (tensor<?x4xf32>
func.func @not_compared(%q: tensor<4x4xi8>, %w: tensor<4x4xi16>, %s: tensor<f32>, %axes: tensor<1xi64>, %o: tensor<?x4xi8>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<?x4xf32>) {
  %t = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4x4xi8>, tensor<f32>) -> tensor<4x4xf32>
  %1 = onnx.ReduceMax(%0, %axes) : (tensor<4x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  %2 = onnx.DequantizeLinear(%w, %t) : (tensor<4x4xi16>, tensor<f32>) -> tensor<4x4xf32>
  %3 = onnx.ReduceMax(%2, %axes) : (tensor<4x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  %4 = onnx.DequantizeLinear(%o, %t) : (tensor<?x4xi8>, tensor<f32>) -> tensor<?x4xf32>
  %5 = onnx.ReduceMax(%4, %axes) : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<?x4xf32>
  return %1, %3, %5 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<?x4xf32>
}

// -----

// What tells positions is asked of the integers; what is quantised after a
// choice of positions stays there.
// CHECK-LABEL: func @positions
// CHECK: onnx.ArgMax(%arg0) {{.*}} : (tensor<4x8xi8>) -> tensor<4x1xi64>
// CHECK: %[[V:.*]], %{{.*}} = onnx.TopK(%arg0, %arg1) : (tensor<4x8xi8>, tensor<1xi64>) -> (tensor<4x2xi8>, tensor<4x2xi64>)
// CHECK: onnx.DequantizeLinear(%[[V]]
func.func @positions(%q: tensor<4x8xi8>, %k: tensor<1xi64>) -> (tensor<4x1xi64>, tensor<4x2xf32>, tensor<4x2xi64>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<4x8xi8>, tensor<f32>) -> tensor<4x8xf32>
  %1 = onnx.ArgMax(%0) {axis = 1} : (tensor<4x8xf32>) -> tensor<4x1xi64>
  %2:2 = onnx.TopK(%0, %k) : (tensor<4x8xf32>, tensor<1xi64>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
  return %1, %2#0, %2#1 : tensor<4x1xi64>, tensor<4x2xf32>, tensor<4x2xi64>
}
