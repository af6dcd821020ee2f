// RUN: onnx-opt %s -split-input-file -verify-diagnostics

func.func @element_type(%x: tensor<4xi1>) {
  // expected-error @+1 {{input 0 'X' must be a tensor of }}
  %0 = onnx.Sigmoid(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @kind(%x: !onnx.seq<tensor<4xf32>>) {
  // expected-error @+1 {{input 0 'input' must be a tensor of f32, f16, f64, bf16, but is '!onnx.seq<tensor<4xf32>>'.}}
  %0 = onnx.Erf(%x) : (!onnx.seq<tensor<4xf32>>) -> tensor<4xf32>
  return
}

// -----

func.func @one_element_type(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{'onnx.Add' op input 'B' of type 'tensor<4xf64>' and input 'A' must have one element type ('T' in the schema), but that one has 'f32'.}}
  %0 = onnx.Add(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @result_element_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{output 'Y' of type 'tensor<4xf64>' and input 'X' must have one element type}}
  %0 = onnx.Relu(%x) : (tensor<4xf32>) -> tensor<4xf64>
  return
}

// -----

func.func @unknown_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Relu' op has an attribute 'alpha', which ONNX's Relu does not know.}}
  %0 = onnx.Relu(%x) {alpha = 1.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @attribute_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Softmax' op attribute 'axis' failed to satisfy constraint: 64-bit signed integer attribute}}
  %0 = onnx.Softmax(%x) {axis = "last"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @required_attribute(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Concat' op requires attribute 'axis'}}
  %0 = onnx.Concat(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @missing_input(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Add' op: the input 'B' is missing.}}
  %0 = onnx.Add(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @extra_input(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Relu' op: there are more inputs than the 1 that the operator has.}}
  %0 = onnx.Relu(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @hole_in_variadic(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Concat' op: the variadic input 'inputs' may not have an entry left out.}}
  %0 = onnx.Concat(%x, none, %x) {axis = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @too_few() {
  // expected-error @+1 {{'onnx.Concat' op needs at least 1 of the input 'inputs', but has 0.}}
  %0 = onnx.Concat() {axis = 0} : () -> tensor<8xf32>
  return
}

// -----

func.func @two_values() {
  // expected-error @+1 {{'onnx.Constant' op must have exactly one of its value attributes, but has 2.}}
  %0 = onnx.Constant() {value_int = 1, value_float = 1.0} : () -> tensor<i64>
  return
}

// -----

func.func @no_value() {
  // expected-error @+1 {{'onnx.Constant' op must have exactly one of its value attributes, but has 0.}}
  %0 = onnx.Constant() : () -> tensor<i64>
  return
}

// -----

func.func @value_type() {
  // expected-error @+1 {{'onnx.Constant' op has a value of type 'tensor<2xi64>', which does not fit its result type 'tensor<3xi64>'.}}
  %0 = onnx.Constant() {value = dense<1> : tensor<2xi64>} : () -> tensor<3xi64>
  return
}

// -----

func.func @branches(%c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.If' op graph 'else_branch' must yield 1 values, but yields 2.}}
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<4xf32> then_branch {
    onnx.Yield %x : tensor<4xf32>
  } else_branch {
    onnx.Yield %x, %x : tensor<4xf32>, tensor<4xf32>
  }
  return
}

// -----

func.func @loop_arguments(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Loop' op graph 'body' must have 3 inputs, but has 2.}}
  %0 = onnx.Loop(%n, %c, %x) : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>):
    onnx.Yield %go, %x : tensor<i1>, tensor<4xf32>
  }
  return
}

// -----

func.func @loop_results(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Loop' op must have a result for each of its 2 loop-carried values, but has 1 results.}}
  %0 = onnx.Loop(%n, %c, %x, %x) : (tensor<i64>, tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>, %t: tensor<4xf32>):
    onnx.Yield %go, %s : tensor<i1>, tensor<4xf32>
  }
  return
}

// -----

func.func @no_graph(%c: tensor<i1>) {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<4xf32>
  // expected-error @+1 {{'onnx.If' op needs the graph 'then_branch'.}}
  return
}

// -----

func.func @scan(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Scan' op has num_scan_inputs = 2, which must be between 1 and its 1 inputs.}}
  %0 = onnx.Scan(%x) {num_scan_inputs = 2} : (tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%s: tensor<f32>):
    onnx.Yield %s : tensor<f32>
  }
  return
}

// -----

func.func @custom(%x: tensor<4xf32>) {
  // expected-error @+1 {{'onnx.Custom' op stands for 'Relu', which is an operator of ONNX and has its own op.}}
  %0 = onnx.Custom "ai.onnx" "Relu" (%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{the keys of a map must be integers or strings, not 'f32'.}}
func.func private @map_key(!onnx.map<f32, tensor<f32>>)

// -----

func.func @no_such_element_type(%x: tensor<4xf32>) -> tensor<4x!onnx.unknown> {
  // expected-error @+1 {{'onnx.Cast' op attribute 'to' is 4294967297, which is the number of no element type.}}
  %0 = onnx.Cast(%x) {to = 4294967297} : (tensor<4xf32>) -> tensor<4x!onnx.unknown>
  return %0 : tensor<4x!onnx.unknown>
}

// -----

func.func @undefined_element_type(%x: tensor<4x4xf32>) -> tensor<4x4x!onnx.unknown> {
  // expected-error @+1 {{'onnx.EyeLike' op attribute 'dtype' is 0, which is the number of no element type.}}
  %0 = onnx.EyeLike(%x) {dtype = 0} : (tensor<4x4xf32>) -> tensor<4x4x!onnx.unknown>
  return %0 : tensor<4x4x!onnx.unknown>
}

// -----

func.func @word(%x: tensor<1x4x4x4xf32>) {
  // expected-error @+1 {{attribute 'mode' is 'bogus', and ONNX's DepthToSpace knows 'DCR', 'CRD'.}}
  %0 = onnx.DepthToSpace(%x) {blocksize = 2, mode = "bogus"} : (tensor<1x4x4x4xf32>) -> tensor<1x1x8x8xf32>
  return
}

// -----

func.func @empty_word(%x: tensor<1x4x4x4xf32>) {
  %0 = onnx.MaxPool(%x) {auto_pad = "", kernel_shape = array<i64: 2, 2>} : (tensor<1x4x4x4xf32>) -> tensor<1x4x3x3xf32>
  // expected-error @+1 {{attribute 'auto_pad' is 'SAME', and ONNX's MaxPool knows 'NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID'.}}
  %1 = onnx.MaxPool(%x) {auto_pad = "SAME", kernel_shape = array<i64: 2, 2>} : (tensor<1x4x4x4xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

func.func @words(%x: tensor<1x1xf32>) {
  // expected-error @+1 {{attribute 'nodes_modes' is 'bogus', and ONNX's TreeEnsembleRegressor knows 'BRANCH_LEQ'}}
  %0 = onnx.ml.TreeEnsembleRegressor(%x) {nodes_modes = ["LEAF", "bogus"]} : (tensor<1x1xf32>) -> tensor<1x1xf32>
  return
}
