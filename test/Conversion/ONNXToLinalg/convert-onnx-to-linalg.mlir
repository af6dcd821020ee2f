// RUN: onnx-opt %s -convert-onnx-to-linalg -canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// Booleans are bytes; what the model's border was is kept.
// CHECK-LABEL: func.func @main_graph(
// CHECK-SAME:    %[[X:.*]]: tensor<4xi8> {onnx.name = "x", onnx.type = tensor<4xi1>}
// CHECK-SAME:    -> (tensor<4xi8> {onnx.name = "y", onnx.type = tensor<4xi1>})
func.func @main_graph(%x: tensor<4xi1> {onnx.name = "x"})
    -> (tensor<4xi1> {onnx.name = "y"}) {
  // CHECK: linalg.generic
  // CHECK:   arith.cmpi eq
  // CHECK:   arith.extui {{.*}} : i1 to i8
  %y = onnx.Not(%x) : (tensor<4xi1>) -> tensor<4xi1>
  return %y : tensor<4xi1>
}

// -----

// Unsigned integers are signless ones, divided as what they were.
// CHECK-LABEL: func.func @main_graph(
// CHECK-SAME:    tensor<4xi8> {onnx.type = tensor<4xui8>}
func.func @main_graph(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  // CHECK: arith.divui
  %z = onnx.Div(%x, %y) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %z : tensor<4xui8>
}

// -----

// Constants keep the place of their bytes.
// CHECK-LABEL: func.func @main_graph
func.func @main_graph() -> tensor<2xi1> {
  // CHECK: arith.constant {sdx.source = {{.*}}} dense<[1, 0]> : tensor<2xi8>
  %c = onnx.Constant() {value = dense<[true, false]> : tensor<2xi1>, sdx.source = {path = "w", offset = 0 : i64, length = 2 : i64}} : () -> tensor<2xi1>
  return %c : tensor<2xi1>
}

// -----

// Everything that is missing is named at once.
func.func @main_graph(%x: tensor<?xcomplex<f32>>) -> tensor<4xf32> {
  // expected-error @unknown {{no lowering for: onnx.NonZero (node 'waves') and 1 more: it computes on complex numbers; Foo of domain 'com.example': no such operator is registered}}
  %a = onnx.NonZero(%x) : (tensor<?xcomplex<f32>>) -> tensor<1x?xi64> loc("waves")
  %b = onnx.NonZero(%x) : (tensor<?xcomplex<f32>>) -> tensor<1x?xi64>
  %c = "onnx.Custom"(%a, %b) {domain = "com.example", op_type = "Foo", version = 1 : si64} : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// expected-error @+1 {{input 0 ('waves'): there is no lowering for type 'tensor<4xf80>'}}
func.func @main_graph(%x: tensor<4xf80> {onnx.name = "waves"}) {
  return
}

// -----

// A lowering that refuses a form of its op says why.
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @unknown {{no lowering for: onnx.Trilu (node 'corner'): needs a matrix}}
  %a = onnx.Trilu(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("corner")
  return %a : tensor<4xf32>
}

// -----

// What a special case refuses the op's lowering is asked for. Its reason counts.
func.func @main_graph(%x: tensor<4xi64>) -> tensor<1xi64> {
  %first = onnx.Constant() {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  // expected-error @unknown {{no lowering for: onnx.Gather (node 'pick'): axis out of range}}
  %a = onnx.Gather(%x, %first) {axis = 1} : (tensor<4xi64>, tensor<1xi64>) -> tensor<1xi64> loc("pick")
  return %a : tensor<1xi64>
}
