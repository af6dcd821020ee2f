// RUN: onnx-opt %s --target=znver4 -onnx-split-channels | FileCheck %s
// RUN: echo "module attributes {sdx.target = #cpu.target<l2_kib = 16384>} {" > %t
// RUN: cat %s >> %t
// RUN: echo "}" >> %t
// RUN: onnx-opt %t -onnx-split-channels | FileCheck %s --check-prefix=LARGE

// LARGE-NOT: onnx.Split

// 4.6 MiB between the two and 1.1 MiB behind them: six parts of 16 channels.
// CHECK-LABEL: func.func @depthwise
// CHECK-DAG: %[[W:.*]]:6 = onnx.Split(%arg1) {{.*}} -> (tensor<16x16x1x1xf32>,
// CHECK-DAG: %[[B:.*]]:6 = onnx.Split(%arg2) {{.*}} -> (tensor<16xf32>,
// CHECK-DAG: %[[V:.*]]:6 = onnx.Split(%arg3) {{.*}} -> (tensor<16x1x3x3xf32>,
// CHECK: %[[C:.*]] = onnx.Conv(%arg0, %[[W]]#0, %[[B]]#0) {{.*}} -> tensor<1x16x112x112xf32>
// CHECK-NEXT: %[[R:.*]] = onnx.Relu(%[[C]])
// CHECK-NEXT: %[[D:.*]] = onnx.Conv(%[[R]], %[[V]]#0
// CHECK-SAME: group = 16
// CHECK-NEXT: %[[S0:.*]] = onnx.Sigmoid(%[[D]])
// CHECK: onnx.Conv(%arg0, %[[W]]#5, %[[B]]#5)
// CHECK: %[[S5:.*]] = onnx.Sigmoid
// CHECK: onnx.Concat(%[[S0]], {{.*}}, %[[S5]]) {axis = 1
// CHECK-SAME: -> tensor<1x96x56x56xf32>
func.func @depthwise(%x: tensor<1x16x112x112xf32>, %w: tensor<96x16x1x1xf32>, %b: tensor<96xf32>, %v: tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32> {
  %0 = onnx.Conv(%x, %w, %b) : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>, tensor<96xf32>) -> tensor<1x96x112x112xf32>
  %1 = onnx.Relu(%0) : (tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32>
  %2 = onnx.Conv(%1, %v) {group = 96 : si64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  %3 = onnx.Sigmoid(%2) : (tensor<1x96x56x56xf32>) -> tensor<1x96x56x56xf32>
  return %3 : tensor<1x96x56x56xf32>
}

// CHECK-LABEL: func.func @pool
// CHECK-COUNT-4: onnx.MaxPool({{.*}} -> tensor<1x16x55x55xf32>
// CHECK: onnx.Concat
func.func @pool(%x: tensor<1x3x224x224xf32>, %w: tensor<64x3x3x3xf32>) -> tensor<1x64x55x55xf32> {
  %0 = onnx.Conv(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x3x224x224xf32>, tensor<64x3x3x3xf32>) -> tensor<1x64x111x111xf32>
  %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>} : (tensor<1x64x111x111xf32>) -> tensor<1x64x55x55xf32>
  return %1 : tensor<1x64x55x55xf32>
}

// Packing the inputs of a larger kernel once for each part is too much.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: onnx.Split
func.func @wide(%x: tensor<1x3x224x224xf32>, %w: tensor<64x3x7x7xf32>) -> tensor<1x64x54x54xf32> {
  %0 = onnx.Conv(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x3x224x224xf32>, tensor<64x3x7x7xf32>) -> tensor<1x64x109x109xf32>
  %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>} : (tensor<1x64x109x109xf32>) -> tensor<1x64x54x54xf32>
  return %1 : tensor<1x64x54x54xf32>
}

// What is between them is used once more.
// CHECK-LABEL: func.func @used
// CHECK-NOT: onnx.Split
func.func @used(%x: tensor<1x3x224x224xf32>, %w: tensor<64x3x3x3xf32>) -> (tensor<1x64x111x111xf32>, tensor<1x64x55x55xf32>) {
  %0 = onnx.Conv(%x, %w) {strides = array<i64: 2, 2>} : (tensor<1x3x224x224xf32>, tensor<64x3x3x3xf32>) -> tensor<1x64x111x111xf32>
  %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>} : (tensor<1x64x111x111xf32>) -> tensor<1x64x55x55xf32>
  return %0, %1 : tensor<1x64x111x111xf32>, tensor<1x64x55x55xf32>
}

// A depthwise convolution of two results a channel mixes no channels, but is left as it is, and so is one of a large batch.
// CHECK-LABEL: func.func @others
// CHECK-NOT: onnx.Split
func.func @others(%x: tensor<1x16x112x112xf32>, %w: tensor<96x16x1x1xf32>, %v: tensor<192x1x3x3xf32>, %y: tensor<64x16x112x112xf32>, %u: tensor<96x1x3x3xf32>) -> (tensor<1x192x110x110xf32>, tensor<64x96x110x110xf32>) {
  %0 = onnx.Conv(%x, %w) : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %1 = onnx.Conv(%0, %v) {group = 96 : si64} : (tensor<1x96x112x112xf32>, tensor<192x1x3x3xf32>) -> tensor<1x192x110x110xf32>
  %2 = onnx.Conv(%y, %w) : (tensor<64x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<64x96x112x112xf32>
  %3 = onnx.Conv(%2, %u) {group = 96 : si64} : (tensor<64x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<64x96x110x110xf32>
  return %1, %3 : tensor<1x192x110x110xf32>, tensor<64x96x110x110xf32>
}

// Without filters, and with a bias of open or of another size.
// CHECK-LABEL: func.func @odd
// CHECK-NOT: onnx.Split
func.func @odd(%x: tensor<1x3x114x114xf32>, %none: tensor<0x3x3x3xf32>, %w: tensor<64x3x3x3xf32>, %b: tensor<?xf32>, %c: tensor<12xf32>) -> (tensor<1x0x110x110xf32>, tensor<1x64x110x110xf32>, tensor<1x64x110x110xf32>) {
  %0 = onnx.Conv(%x, %none) : (tensor<1x3x114x114xf32>, tensor<0x3x3x3xf32>) -> tensor<1x0x112x112xf32>
  %1 = onnx.MaxPool(%0) {kernel_shape = array<i64: 3, 3>} : (tensor<1x0x112x112xf32>) -> tensor<1x0x110x110xf32>
  %2 = onnx.Conv(%x, %w, %b) : (tensor<1x3x114x114xf32>, tensor<64x3x3x3xf32>, tensor<?xf32>) -> tensor<1x64x112x112xf32>
  %3 = onnx.MaxPool(%2) {kernel_shape = array<i64: 3, 3>} : (tensor<1x64x112x112xf32>) -> tensor<1x64x110x110xf32>
  %4 = onnx.Conv(%x, %w, %c) : (tensor<1x3x114x114xf32>, tensor<64x3x3x3xf32>, tensor<12xf32>) -> tensor<1x64x112x112xf32>
  %5 = onnx.MaxPool(%4) {kernel_shape = array<i64: 3, 3>} : (tensor<1x64x112x112xf32>) -> tensor<1x64x110x110xf32>
  return %1, %3, %5 : tensor<1x0x110x110xf32>, tensor<1x64x110x110xf32>, tensor<1x64x110x110xf32>
}
