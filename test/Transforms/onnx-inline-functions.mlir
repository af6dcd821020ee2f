// RUN: onnx-opt --onnx-inline-functions --split-input-file --verify-diagnostics --mlir-print-debuginfo %s | FileCheck %s

// Bodies are named after their calls; what they return is named by them.
// CHECK-LABEL: func.func @main_graph
// CHECK: %[[C:.+]] = onnx.Exp(%arg0) {onnx.names = ["f/0/c"]} : {{.*}} loc(#[[LC:.+]])
// CHECK: %[[T:.+]] = onnx.Tan(%[[C]]) {onnx.names = ["t"]} : {{.*}} loc(#[[LT:.+]])
// CHECK: %[[D:.+]] = onnx.Exp(%[[T]]) {onnx.names = ["F/1/c"]} : {{.*}} loc(#[[LD:.+]])
// CHECK: %[[Y:.+]] = onnx.Tan(%[[D]]) {onnx.names = ["y"]}
// CHECK: return %[[Y]]
// CHECK-NOT: func.func
// CHECK-DAG: #[[LC]] = loc("f/0/e"
// CHECK-DAG: #[[LT]] = loc("t"
// CHECK-DAG: #[[LD]] = loc("F/1/e"
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @local.F(%x) {onnx.names = ["t"]} : (tensor<4xf32>) -> tensor<4xf32> loc("f")
  %1 = onnx.Call @local.F(%0) {onnx.names = ["y"], onnx.unnamed} : (tensor<4xf32>) -> tensor<4xf32> loc("y")
  return %1 : tensor<4xf32>
}
func.func private @local.F(%a: tensor<4xf32>) -> tensor<4xf32> attributes {onnx.domain = "local", onnx.function = "F"} {
  %0 = onnx.Exp(%a) {onnx.names = ["c"]} : (tensor<4xf32>) -> tensor<4xf32> loc("e")
  %1 = onnx.Tan(%0) {onnx.names = ["b"]} : (tensor<4xf32>) -> tensor<4xf32> loc("b")
  return %1 : tensor<4xf32>
}

// -----
// In graphs of operators, and functions that call functions; the types of the
// caller may be more precise. Functions that nobody calls stay.
// CHECK-LABEL: func.func @main_graph
// CHECK: onnx.If
// CHECK: onnx.Neg(%arg0) : (tensor<4xf32>) -> tensor<?xf32>
// CHECK: onnx.Yield
// CHECK-NOT: onnx.Call
// CHECK-NOT: @outer
// CHECK-NOT: @inner
// CHECK: func.func private @nobody
func.func @main_graph(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<?xf32> {
  %0 = onnx.If(%c) : (tensor<i1>) -> tensor<?xf32> then_branch {
    %1 = onnx.Call @outer(%x) : (tensor<4xf32>) -> tensor<?xf32>
    onnx.Yield %1 : tensor<?xf32>
  } else_branch {
    onnx.Yield %x : tensor<4xf32>
  }
  return %0 : tensor<?xf32>
}
func.func private @outer(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = onnx.Call @inner(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @inner(%a: tensor<?xf32>) -> tensor<?xf32> {
  %0 = onnx.Neg(%a) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @nobody(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}

// -----
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @g(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls function 'f', which calls itself, directly or through others}}
  %0 = onnx.Call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @itself(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls function 'itself', which calls itself}}
  %0 = onnx.Call @itself(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls 'f', which is no function with a body}}
  %0 = onnx.Call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has 1 inputs, but 'f' has 2}}
  %0 = onnx.Call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has 'tensor<4xf32>' as input 0, but 'f' has 'tensor<5xf32>'}}
  %0 = onnx.Call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%a: tensor<5xf32>) -> tensor<4xf32> {
  %0 = onnx.Identity(%a) : (tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
