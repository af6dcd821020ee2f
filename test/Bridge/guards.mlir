// RUN: onnx-opt %s --split-input-file --onnx-infer-shapes --verify-diagnostics

// What libonnx's inference would not survive, or not see.

func.func @signs(%x: tensor<4x5xi64>) -> tensor<*xi64> {
  // expected-error @+1 {{the equation '%s%n' has a term that is not made of letters and at most one ellipsis}}
  %0 = onnx.Einsum(%x) {equation = "%s%n"} : (tensor<4x5xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @two_ellipses(%x: tensor<4x5xi64>) -> tensor<*xi64> {
  // expected-error @+1 {{at most one ellipsis}}
  %0 = onnx.Einsum(%x) {equation = "...i...->i"} : (tensor<4x5xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @equation(%x: tensor<4x5xi64>) -> tensor<*xi64> {
  %0 = onnx.Einsum(%x) {equation = " ... j -> j ..."} : (tensor<4x5xi64>) -> tensor<*xi64>
  return %0 : tensor<*xi64>
}

// -----

func.func @outputs(%x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  // expected-error @+1 {{num_outputs is 1099511627776, but there are 2 outputs}}
  %0:2 = onnx.Split(%x) {num_outputs = 1099511627776} : (tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  return %0#0, %0#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

func.func @sizes(%x: tensor<?xf32>, %s: tensor<3xi64>) -> (tensor<*xf32>, tensor<*xf32>) {
  // expected-error @+1 {{3 sizes are given for 2 outputs}}
  %0:2 = onnx.Split(%x, %s) : (tensor<?xf32>, tensor<3xi64>) -> (tensor<*xf32>, tensor<*xf32>)
  return %0#0, %0#1 : tensor<*xf32>, tensor<*xf32>
}

// -----

func.func @channels(%x: tensor<?x4x8x8xf32>, %w: tensor<?x3x3x3xf32>) -> tensor<*xf32> {
  // expected-error @+1 {{the input has 4 channels, and the filters take 3, in 1 group}}
  %0 = onnx.Conv(%x, %w) : (tensor<?x4x8x8xf32>, tensor<?x3x3x3xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @rank(%x: tensor<2x3x4xf32>, %s: tensor<f32>) -> tensor<*xf32> {
  // expected-error @+1 {{input 1 has the rank 0, but must have 1}}
  %0 = onnx.InstanceNormalization(%x, %s, %s) : (tensor<2x3x4xf32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

func.func @rank_at_least(%x: tensor<f32>, %i: tensor<2xi64>) -> tensor<*xf32> {
  // expected-error @+1 {{input 0 has the rank 0, but must have at least 1}}
  %0 = onnx.Gather(%x, %i) : (tensor<f32>, tensor<2xi64>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}
