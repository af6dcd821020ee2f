// RUN: onnx-opt %s -onnx-prune="kind=magnitude amount=0.75" | FileCheck %s --check-prefixes=CHECK,MAGNITUDE
// RUN: onnx-opt %s -onnx-prune="kind=2:4 exclude=left" -verify-diagnostics | FileCheck %s --check-prefixes=CHECK,FOURS
// RUN: onnx-opt %s -onnx-prune="kind=block block=4,8" | FileCheck %s --check-prefixes=CHECK,BLOCK
// RUN: not onnx-opt %s -onnx-prune="kind=structured" 2>&1 | FileCheck %s --check-prefix=STRUCTURED
// RUN: not onnx-opt %s -onnx-prune="kind=random" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not onnx-opt %s -onnx-prune="amount=1.5" 2>&1 | FileCheck %s --check-prefix=AMOUNT
// RUN: not onnx-opt %s -onnx-prune="exclude=lft" 2>&1 | FileCheck %s --check-prefix=NAME

// STRUCTURED: kind=structured needs data, which a pass has none of: use sardonyx.quantization.prune
// KIND: kind=random: must be magnitude, 2:4 or block
// AMOUNT: amount=1.500000e+00: must be 0 to 1
// NAME: exclude: the model has no node 'lft'; it has {{.*}}(did you mean left?)

// CHECK-LABEL: func.func @main_graph
// CHECK-SAME:  (%[[X:.*]]: tensor<2x16xf32>)
// CHECK-DAG:   %[[W:.*]] = onnx.Constant() {value = dense<{{.*}}> : tensor<16x8xf32>}

// A quarter of 128 weights stays.
// MAGNITUDE:   onnx.Reshape(%[[W]], {{.*}} -> tensor<128xf32>
// MAGNITUDE:   onnx.Abs
// MAGNITUDE:   %{{.*}}, %[[PLACES:.*]] = onnx.TopK({{.*}} -> (tensor<32xf32>, tensor<32xi64>)
// MAGNITUDE:   %[[MARKS:.*]] = onnx.ScatterElements(%{{.*}}, %[[PLACES]], %{{.*}})
// MAGNITUDE:   %[[BACK:.*]] = onnx.Reshape(%[[MARKS]], {{.*}} -> tensor<16x8xf32>
// MAGNITUDE:   %[[NEW:.*]] = onnx.Mul(%[[W]], %[[BACK]])
// MAGNITUDE:   onnx.MatMul(%[[X]], %[[NEW]])

// Fours lie along the rows of the matrix, whose products are summed up.
// FOURS:       onnx.Reshape(%[[W]], {{.*}} -> tensor<4x4x8xf32>
// FOURS:       onnx.TopK({{.*}} {axis = 1} : {{.*}} -> (tensor<4x2x8xf32>, tensor<4x2x8xi64>)
// FOURS:       onnx.MatMul(%[[X]],

// Blocks of 4 outputs by 8 inputs: two by two.
// BLOCK:       onnx.Reshape(%[[W]], {{.*}} -> tensor<2x8x2x4xf32>
// BLOCK:       onnx.ReduceSum({{.*}} -> tensor<2x1x2x1xf32>
// BLOCK:       onnx.TopK({{.*}} -> (tensor<2xf32>, tensor<2xi64>)
// BLOCK:       onnx.Mul({{.*}} : (tensor<2x8x2x4xf32>, tensor<2x1x2x1xf32>) -> tensor<2x8x2x4xf32>
// BLOCK:       onnx.MatMul(%[[X]],
func.func @main_graph(%x: tensor<2x16xf32>) -> tensor<2x6xf32> {
  %w = onnx.Constant() {value = dense<0.5> : tensor<16x8xf32>} : () -> tensor<16x8xf32>
  %0 = onnx.MatMul(%x, %w) : (tensor<2x16xf32>, tensor<16x8xf32>) -> tensor<2x8xf32>
  %v = onnx.Constant() {value = dense<0.5> : tensor<8x6xf32>} : () -> tensor<8x6xf32>
  %1 = onnx.MatMul(%0, %v) {onnx.names = ["left"]} : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  return %1 : tensor<2x6xf32>
}
