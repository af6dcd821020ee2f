// RUN: onnx-opt %s --onnx-observe="tensors=c,x kinds=range|bits" | FileCheck %s
// RUN: onnx-opt %s --onnx-observe="all-floats" | FileCheck %s --check-prefix=ALL
// RUN: onnx-opt %s --onnx-observe="tensors=c kinds=channels|moments axis=-3" | FileCheck %s --check-prefix=CHANNELS
// RUN: onnx-opt %s --onnx-observe="tensors=c kinds=gram" | FileCheck %s --check-prefix=GRAM
// RUN: onnx-opt %s --onnx-observe="tensors=c kinds=range|bits" --onnx-fold-batch-norm | FileCheck %s --check-prefix=FOLDED
// RUN: not onnx-opt %s --onnx-observe="tensors=d" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not onnx-opt %s --onnx-observe="tensors=s" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not onnx-opt %s --onnx-observe="tensors=t" 2>&1 | FileCheck %s --check-prefix=BODY
// RUN: not onnx-opt %s --onnx-observe="tensors=c kinds=channels axis=4" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not onnx-opt %s --onnx-observe="tensors=c kinds=means" 2>&1 | FileCheck %s --check-prefix=KIND

// Sites count in the order of the names; inputs are observed at the beginning.
// CHECK: module attributes {sdx.observations = [{kinds = #sdx.kinds<range|bits>, name = "c"}, {kinds = #sdx.kinds<range|bits>, name = "x"}]}
// CHECK: func.func @main_graph(%[[X:.*]]: tensor<1x2x8x8xf32>
// CHECK-NEXT: sdx.observe %[[X]] site 1 <range|bits> : tensor<1x2x8x8xf32>
// CHECK: %[[C:.*]] = onnx.Conv
// CHECK-NEXT: sdx.observe %[[C]] site 0 <range|bits> : tensor<1x4x3x3xf32>
// CHECK-NOT: sdx.observe

// ALL: module attributes {sdx.observations = [{{.*}}name = "x"}, {{.*}}name = "c"}, {{.*}}name = "n"}, {{.*}}name = "y"}]}
// ALL-NOT: onnx.Shape{{.*}}sdx.observe

// CHANNELS: sdx.observe %[[C:.*]] site 0 <moments> : tensor<1x4x3x3xf32>
// CHANNELS-NEXT: sdx.observe %[[C]] site 0 <channels> axis 1 : tensor<1x4x3x3xf32>

// GRAM: %[[C:.*]] = onnx.Conv
// GRAM-NEXT: %[[X:.*]] = onnx.Flatten(%[[C]]) {axis = 3} : (tensor<1x4x3x3xf32>) -> tensor<12x3xf32>
// GRAM-NEXT: %[[XT:.*]] = onnx.Transpose(%[[X]])
// GRAM-NEXT: %[[G:.*]] = onnx.MatMul(%[[XT]], %[[X]]) : (tensor<3x12xf32>, tensor<12x3xf32>) -> tensor<3x3xf32>
// GRAM-NEXT: sdx.observe %[[G]] site 0 <gram> : tensor<3x3xf32>

// The normalisation goes into the weights as ever, and the convolution before it is there for those who look.
// FOLDED: sdx.observe %{{.*}} site 0
// FOLDED: %[[N:.*]] = onnx.Conv
// FOLDED-NOT: onnx.BatchNormalization
// FOLDED: onnx.Relu(%[[N]])

// UNKNOWN: the model has no tensor 'd'; it has {{.*}}
// TYPE: tensor 's' cannot be observed: floats of 16, 32 and 64 bits can be, and it is tensor<4xi64>
// BODY: tensor 't' cannot be observed: it is made in a body of If, and only those of the main graph can be
// AXIS: tensor 'c' cannot be observed: it has no axis 4, tensor<1x4x3x3xf32>
// KIND: 'means' are no kinds of observations; there are range, moments, bits, channels and gram
func.func @main_graph(%x: tensor<1x2x8x8xf32> {onnx.name = "x"}, %p: tensor<i1> {onnx.name = "p"}) -> (tensor<1x4x3x3xf32>, tensor<4xi64>) {
  %w = onnx.Constant() {value = dense<0.5> : tensor<4x2x3x3xf32>} : () -> tensor<4x2x3x3xf32>
  %v = onnx.Constant() {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %c = onnx.Conv(%x, %w) {onnx.names = ["c"], strides = array<i64: 2, 2>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  %n = onnx.BatchNormalization(%c, %v, %v, %v, %v) {onnx.names = ["n"]} : (tensor<1x4x3x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<1x4x3x3xf32>
  %r = onnx.Relu(%n) : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %s = onnx.Shape(%r) {onnx.names = ["s"]} : (tensor<1x4x3x3xf32>) -> tensor<4xi64>
  %y = onnx.If(%p) {onnx.names = ["y"]} : (tensor<i1>) -> tensor<1x4x3x3xf32> then_branch {
    %t = onnx.Neg(%r) {onnx.names = ["t"]} : (tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
    onnx.Yield %t : tensor<1x4x3x3xf32>
  } else_branch {
    onnx.Yield %r : tensor<1x4x3x3xf32>
  }
  return %y, %s : tensor<1x4x3x3xf32>, tensor<4xi64>
}
