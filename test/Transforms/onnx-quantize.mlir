// RUN: split-file %s %t
// RUN: onnx-opt %t/model.mlir -onnx-quantize="type=int8-dynamic" | FileCheck %t/model.mlir --check-prefix=DYNAMIC
// RUN: onnx-opt %t/model.mlir -onnx-quantize="type=int4 block=8" | FileCheck %t/model.mlir --check-prefix=INT4
// RUN: onnx-opt %t/model.mlir -onnx-quantize="plan=%t/plan.json" | FileCheck %t/model.mlir --check-prefix=PLAN
// RUN: not onnx-opt %t/model.mlir -onnx-quantize 2>&1 | FileCheck %t/model.mlir --check-prefix=NONE
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="plan=%t/none.json" 2>&1 | FileCheck %t/model.mlir --check-prefix=FILE
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="plan=%t/name.json" 2>&1 | FileCheck %t/model.mlir --check-prefix=NAME
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="plan=%t/shape.json" 2>&1 | FileCheck %t/model.mlir --check-prefix=SHAPE
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="plan=%t/zero.json" 2>&1 | FileCheck %t/model.mlir --check-prefix=ZERO
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="plan=%t/scale.json" 2>&1 | FileCheck %t/model.mlir --check-prefix=SCALE
// RUN: not onnx-opt %t/model.mlir -onnx-quantize="type=int3" 2>&1 | FileCheck %t/model.mlir --check-prefix=TYPE

//--- model.mlir
// NONE: onnx-quantize: needs a plan or a type, and not both
// FILE: onnx-quantize: cannot read '{{.*}}none.json': No such file or directory
// NAME: onnx-quantize: the model has no tensor 'xx'; it has
// SHAPE: onnx-quantize: the plan's scale for tensor 'w' does not fit its shape
// ZERO: onnx-quantize: a zero point of tensor 'x' is beyond its type
// SCALE: tensor 'x' of the plan has a scale that is no positive number
// TYPE: onnx-quantize: type=int3: must be int8-dynamic, int8, int4 or int2

// DYNAMIC-LABEL: func.func @main_graph
// DYNAMIC-SAME: (%[[X:.*]]: tensor<2x16xf32> {{.*}})
// DYNAMIC:      %[[B:.*]] = onnx.QuantizeLinear({{.*}} -> tensor<16x4xi8>
// DYNAMIC:      %[[Q:.*]], %[[S:.*]], %[[Z:.*]] = onnx.DynamicQuantizeLinear(%[[X]])
// DYNAMIC:      %[[P:.*]] = onnx.MatMulInteger(%[[Q]], %[[B]], %[[Z]])
// DYNAMIC:      %[[F:.*]] = onnx.Mul(%[[S]], %{{.*}}) : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
// DYNAMIC:      %[[C:.*]] = onnx.Cast(%[[P]]) {to = 1}
// DYNAMIC:      %[[Y:.*]] = onnx.Mul(%[[C]], %[[F]])
// DYNAMIC:      onnx.Add(%[[Y]],

// INT4-LABEL:   func.func @main_graph
// INT4:         onnx.ReduceMax({{.*}} -> tensor<4x2x1xf32>
// INT4:         %[[Q:.*]] = onnx.QuantizeLinear({{.*}} {block_size = 8} : {{.*}} -> tensor<4x16xi4>
// INT4:         %[[D:.*]] = onnx.DequantizeLinear(%[[Q]], {{.*}} -> tensor<4x16xf32>
// INT4:         onnx.Gemm(%{{.*}}, %[[D]], %{{.*}}) {{.*}}transB = 1}

// The input, the weights and the bias; `y` takes what `x` has.
// PLAN-LABEL:   func.func @main_graph
// PLAN-SAME:    (%[[X:.*]]: tensor<2x16xf32> {{.*}})
// PLAN:         %[[XQ:.*]] = onnx.QuantizeLinear(%[[X]], %[[S:.*]], %[[Z:.*]]) {{.*}} -> tensor<2x16xui8>
// PLAN:         %[[XD:.*]] = onnx.DequantizeLinear(%[[XQ]], %[[S]], %[[Z]])
// PLAN:         onnx.QuantizeLinear({{.*}} {axis = 0, {{.*}} -> tensor<4x16xi8>
// PLAN:         %[[WD:.*]] = onnx.DequantizeLinear({{.*}} -> tensor<4x16xf32>
// PLAN:         onnx.Div({{.*}} -> tensor<4xf64>
// PLAN:         onnx.Round
// PLAN:         onnx.Cast({{.*}} -> tensor<4xi32>
// PLAN:         %[[BD:.*]] = onnx.DequantizeLinear({{.*}} -> tensor<4xf32>
// PLAN:         %[[Y:.*]] = onnx.Gemm(%[[XD]], %[[WD]], %[[BD]])
// PLAN:         onnx.QuantizeLinear(%[[Y]], {{.*}} -> tensor<2x4xui8>
// PLAN:         %[[YD:.*]] = onnx.DequantizeLinear
// PLAN:         return %[[YD]]
func.func @main_graph(%x: tensor<2x16xf32> {onnx.name = "x"}) -> (tensor<2x4xf32> {onnx.name = "y"}) {
  %w = onnx.Constant() {onnx.names = ["w"], value = dense<0.5> : tensor<4x16xf32>} : () -> tensor<4x16xf32>
  %b = onnx.Constant() {onnx.names = ["b"], value = dense<0.25> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = onnx.Gemm(%x, %w, %b) {onnx.names = ["y"], transB = 1} : (tensor<2x16xf32>, tensor<4x16xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

//--- plan.json
{"version": 1, "format": "QDQ", "tensors": {
  "x": {"role": "activation", "type": "UINT8", "scale": 0.1, "zero_point": 128},
  "w": {"role": "weight", "type": "INT8", "scale": [0.1, 0.2, 0.3, 0.4], "zero_point": [0, 0, 0, 0], "axis": 0},
  "b": {"role": "bias", "type": "INT32", "scale": [0.01, 0.02, 0.03, 0.04], "axis": 0, "node": "y", "input": "x", "weight": "w"},
  "y": {"role": "activation", "type": "UINT8", "shares": ["x", "y"]}}, "nodes": {}}
//--- name.json
{"version": 1, "format": "QDQ", "tensors": {"xx": {"role": "activation", "type": "UINT8", "scale": 0.1, "zero_point": 128}}}
//--- shape.json
{"version": 1, "format": "QDQ", "tensors": {"w": {"role": "weight", "type": "INT8", "scale": [0.1, 0.2], "zero_point": [0, 0], "axis": 0}}}
//--- zero.json
{"version": 1, "format": "QDQ", "tensors": {"x": {"role": "activation", "type": "UINT8", "scale": 0.1, "zero_point": 256}}}
//--- scale.json
{"version": 1, "format": "QDQ", "tensors": {"x": {"role": "activation", "type": "UINT8", "scale": 0, "zero_point": 0}}}
