// RUN: onnx-translate --mlir-to-onnx %s -o %t.onnx
// RUN: %python %S/Inputs/show.py %t.onnx | FileCheck %s
// RUN: onnx-translate --onnx-to-mlir %t.onnx | FileCheck %s --check-prefix=BACK

// The oldest version in which everything has its latest form.
// CHECK: ir_version 10
// CHECK: opset ai.onnx 21
// CHECK: producer test 1.0
// CHECK: initializer i4 INT4 [3]
// CHECK: initializer w FLOAT [3]
// CHECK: input x [batch, 3]
// CHECK: output y [batch, 3]
// CHECK: output again [batch, 3]
// CHECK: output x_out [batch, 3]
// Attributes at their defaults are left out.
// CHECK: Add(x, w) -> (sum) {}
// CHECK: Clip(sum, , w0) -> (v{{[0-9]+}}) {}
// CHECK: Gelu({{v[0-9]+}}) -> (y) {approximate}
// CHECK: If({{v[0-9]+}}) -> (chosen)
// CHECK-DAG:   Identity(y) -> (v{{[0-9]+}})
// CHECK-DAG:   Identity(x) -> (v{{[0-9]+}})
// CHECK: Identity(y) -> (again)
// CHECK: Identity(x) -> (x_out)
module attributes {onnx.producer_name = "test", onnx.producer_version = "1.0"} {
  func.func @main_graph(%x: tensor<?x3xf32> {onnx.name = "x", onnx.dim_params = ["batch", ""]})
      -> (tensor<?x3xf32> {onnx.name = "y", onnx.dim_params = ["batch", ""]},
          tensor<?x3xf32> {onnx.name = "again", onnx.dim_params = ["batch", ""]},
          tensor<?x3xf32> {onnx.name = "x_out", onnx.dim_params = ["batch", ""]},
          tensor<3xi4> {onnx.name = "small"}) {
    %i4 = onnx.Constant() {onnx.names = ["i4"], value = dense<[1, -2, 7]> : tensor<3xi4>} : () -> tensor<3xi4>
    %w = onnx.Constant() {onnx.names = ["w"], value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : () -> tensor<3xf32>
    %high = onnx.Constant() {onnx.names = ["w0"], value = dense<6.0> : tensor<f32>} : () -> tensor<f32>
    %0 = onnx.Add(%x, %w) {onnx.names = ["sum"]} : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
    // The name is taken.
    %1 = onnx.Clip(%0, none, %high) {onnx.names = ["sum"]} : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
    %2 = onnx.Gelu(%1) {approximate = "tanh"} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    // An output of a graph must be made there.
    %c = onnx.Constant() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %3 = onnx.If(%c) {onnx.names = ["chosen"]} : (tensor<i1>) -> tensor<?x3xf32> then_branch {
      onnx.Yield %2 : tensor<?x3xf32>
    } else_branch {
      onnx.Yield %x : tensor<?x3xf32>
    }
    return %2, %2, %x, %i4 : tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<3xi4>
  }
}

// Two elements a byte in the file, one in the attribute.
// BACK: func.func @main_graph(%arg0: tensor<?x3xf32> {onnx.dim_params = ["batch", ""], onnx.name = "x"})
// BACK: dense<[1, -2, 7]> : tensor<3xi4>
// BACK: onnx.Clip(%{{.+}}, none, %{{.+}})
// BACK: onnx.Gelu(%{{.+}}) {approximate = "tanh", onnx.names = ["y"]
