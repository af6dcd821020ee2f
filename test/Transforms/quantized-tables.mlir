// RUN: onnx-opt %s -split-input-file -onnx-propagate-quantization | FileCheck %s

// The chain is computed for all bytes; Gather counts those of i8 from the end
// where they are negative.
// CHECK-LABEL: func @sigmoid
// CHECK: %[[ALL:.*]] = onnx.Constant() {value = dense<{{.*}}> : tensor<1x256xi8>}
// CHECK: %[[X:.*]] = onnx.DequantizeLinear(%[[ALL]], %{{.*}}) : (tensor<1x256xi8>, tensor<f32>) -> tensor<1x256xf32>
// CHECK: %[[Y:.*]] = onnx.Sigmoid(%[[X]])
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%[[Y]]
// CHECK: %[[T:.*]] = onnx.Reshape(%[[Q]], %{{.*}}) : (tensor<1x256xi8>, tensor<1xi64>) -> tensor<256xi8>
// CHECK: %[[P:.*]] = onnx.Cast(%arg0) {{.*}} : (tensor<?x64xi8>) -> tensor<?x64xi32>
// CHECK: %[[R:.*]] = onnx.Gather(%[[T]], %[[P]]) : (tensor<256xi8>, tensor<?x64xi32>) -> tensor<?x64xi8>
// CHECK: return %[[R]]
func.func @sigmoid(%q: tensor<?x64xi8>) -> tensor<?x64xi8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<?x64xi8>, tensor<f32>) -> tensor<?x64xf32>
  %1 = onnx.Sigmoid(%0) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = onnx.QuantizeLinear(%1, %s) {output_dtype = 3} : (tensor<?x64xf32>, tensor<f32>) -> tensor<?x64xi8>
  return %2 : tensor<?x64xi8>
}

// -----

// A gate, quantised in between, is one function of the byte: one table.
// CHECK-LABEL: func @gated
// CHECK-COUNT-2: onnx.QuantizeLinear(%{{.*}}, %{{.*}}) {{.*}} : (tensor<256xf32>
// CHECK-NOT: onnx.QuantizeLinear
// CHECK: onnx.Gather
// CHECK-NOT: onnx.Gather
func.func @gated(%q: tensor<1024xi8>) -> tensor<1024xi8> {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.0625> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%q, %s) : (tensor<1024xi8>, tensor<f32>) -> tensor<1024xf32>
  %1 = onnx.Sigmoid(%0) : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = onnx.QuantizeLinear(%1, %t) {output_dtype = 3} : (tensor<1024xf32>, tensor<f32>) -> tensor<1024xi8>
  %3 = onnx.DequantizeLinear(%2, %t) : (tensor<1024xi8>, tensor<f32>) -> tensor<1024xf32>
  %4 = onnx.Mul(%0, %3) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %5 = onnx.QuantizeLinear(%4, %s) {output_dtype = 3} : (tensor<1024xf32>, tensor<f32>) -> tensor<1024xi8>
  return %5 : tensor<1024xi8>
}

// -----

// Two tensors of bytes have 65,536 pairs; what is not larger than a table gains
// nothing; a vector of factors is no function of the byte alone.
// CHECK-LABEL: func @no_table
// CHECK-NOT: onnx.Gather
func.func @no_table(%a: tensor<8x128xi8>, %b: tensor<8x128xi8>, %c: tensor<256xi8>, %v: tensor<128xf32>) -> (tensor<8x128xi8>, tensor<256xi8>, tensor<8x128xi8>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %t = onnx.Constant() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.DequantizeLinear(%a, %s) : (tensor<8x128xi8>, tensor<f32>) -> tensor<8x128xf32>
  %1 = onnx.DequantizeLinear(%b, %s) : (tensor<8x128xi8>, tensor<f32>) -> tensor<8x128xf32>
  %2 = onnx.Add(%0, %1) : (tensor<8x128xf32>, tensor<8x128xf32>) -> tensor<8x128xf32>
  %3 = onnx.QuantizeLinear(%2, %s) {output_dtype = 3} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xi8>
  %4 = onnx.DequantizeLinear(%c, %s) : (tensor<256xi8>, tensor<f32>) -> tensor<256xf32>
  %5 = onnx.QuantizeLinear(%4, %t) {output_dtype = 3} : (tensor<256xf32>, tensor<f32>) -> tensor<256xi8>
  %6 = onnx.Mul(%0, %v) : (tensor<8x128xf32>, tensor<128xf32>) -> tensor<8x128xf32>
  %7 = onnx.QuantizeLinear(%6, %s) {output_dtype = 3} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xi8>
  return %3, %5, %7 : tensor<8x128xi8>, tensor<256xi8>, tensor<8x128xi8>
}

// -----

// Next to what quantises floats a few instructions more are less than a table; a
// Sigmoid is not.
// CHECK-LABEL: func @after_floats
// CHECK: %[[Q:.*]] = onnx.QuantizeLinear(%arg0
// CHECK: onnx.LeakyRelu
// CHECK: onnx.Gather({{.*}}) : (tensor<256xi8>, tensor<8x128xi32>) -> tensor<8x128xi8>
// CHECK-NOT: onnx.Gather
func.func @after_floats(%x: tensor<8x128xf32>) -> (tensor<8x128xi8>, tensor<8x128xi8>) {
  %s = onnx.Constant() {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = onnx.QuantizeLinear(%x, %s) {output_dtype = 3} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xi8>
  %1 = onnx.DequantizeLinear(%0, %s) : (tensor<8x128xi8>, tensor<f32>) -> tensor<8x128xf32>
  %2 = onnx.LeakyRelu(%1) : (tensor<8x128xf32>) -> tensor<8x128xf32>
  %3 = onnx.QuantizeLinear(%2, %s) {output_dtype = 3} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xi8>
  %4 = onnx.Sigmoid(%1) : (tensor<8x128xf32>) -> tensor<8x128xf32>
  %5 = onnx.QuantizeLinear(%4, %s) {output_dtype = 3} : (tensor<8x128xf32>, tensor<f32>) -> tensor<8x128xi8>
  return %3, %5 : tensor<8x128xi8>, tensor<8x128xi8>
}
