// RUN: onnx-opt %s --onnx-expand-functions | FileCheck %s
// RUN: onnx-opt %s --onnx-expand-functions=ops=onnx.Celu | FileCheck %s --check-prefix=ONLY
// RUN: onnx-opt %s --onnx-expand-functions=except=onnx.Celu | FileCheck %s --check-prefix=EXCEPT
// RUN: onnx-opt %s --onnx-expand-functions=unlowered | FileCheck %s --check-prefix=UNLOWERED

// CHECK-LABEL: @celu
// CHECK: onnx.Div(%arg0,
// CHECK-NOT: onnx.Celu
// CHECK: return %{{.+}} : tensor<?x4xf32>
// ONLY-LABEL: @celu
// ONLY: onnx.Elu
// EXCEPT-LABEL: @celu
// EXCEPT: onnx.Celu
func.func @celu(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = onnx.Celu(%x) {alpha = 2.0 : f32} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// Depends on types and attributes, and on operators with bodies of their own.
// CHECK-LABEL: @softmax
// CHECK: onnx.ReduceMax(%arg0,
// CHECK: onnx.Exp
// CHECK: onnx.ReduceSum
// CHECK: %[[Y:.+]] = onnx.Div
// CHECK: return %[[Y]] : tensor<3x4xf32>
// ONLY-LABEL: @softmax
// ONLY: onnx.Softmax
// UNLOWERED-LABEL: @softmax
// UNLOWERED: onnx.Softmax
// UNLOWERED-LABEL: @sequence_map
// UNLOWERED: onnx.Loop
func.func @softmax(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = onnx.Softmax(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// A graph that the operator brings along uses a value around it, and is in the
// latest form already.
// CHECK-LABEL: @sequence_map
// CHECK-SAME: %[[S:.+]]: !onnx.seq<tensor<?xf32>>, %[[B:.+]]: tensor<1xf32>
// CHECK: onnx.Loop
// CHECK: %[[E:.+]] = onnx.SequenceAt(%[[S]],
// CHECK: onnx.Add(%[[E]], %[[B]])
func.func @sequence_map(%s: !onnx.seq<tensor<?xf32>>, %b: tensor<1xf32>) -> !onnx.seq<tensor<?xf32>> {
  %r = onnx.SequenceMap(%s) : (!onnx.seq<tensor<?xf32>>) -> !onnx.seq<tensor<?xf32>> body {
  ^bb0(%x: tensor<?xf32>):
    %y = onnx.Add(%x, %b) : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
    onnx.Yield %y : tensor<?xf32>
  }
  return %r : !onnx.seq<tensor<?xf32>>
}

// Bodies written for older versions come out in the latest form.
// CHECK-LABEL: @layer_norm
// CHECK: onnx.ReduceMean(%{{.+}}, %{{.+}})
// CHECK-NOT: onnx.LayerNormalization
func.func @layer_norm(%x: tensor<2x8xf32>, %s: tensor<8xf32>) -> tensor<2x8xf32> {
  %y = onnx.LayerNormalization(%x, %s) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// Without types there is no body.
// CHECK-LABEL: @unknown
// CHECK: onnx.Softmax
func.func @unknown(%x: !onnx.unknown) -> !onnx.unknown {
  %y = onnx.Softmax(%x) : (!onnx.unknown) -> !onnx.unknown
  return %y : !onnx.unknown
}
