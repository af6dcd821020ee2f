// RUN: not onnx-opt --onnx-inline-functions %s 2>&1 | FileCheck %s
// Each calls the next one twice: 2^40 operations.
// CHECK: the functions of the model make more than 1000000 operations
func.func @main_graph(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f0(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f0(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f1(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f1(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f1(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f2(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f2(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f2(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f3(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f3(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f3(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f4(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f4(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f4(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f5(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f5(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f5(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f6(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f6(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f6(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f7(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f7(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f7(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f8(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f8(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f8(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f9(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f9(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f9(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f10(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f10(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f10(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f11(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f11(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f11(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f12(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f12(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f12(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f13(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f13(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f13(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f14(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f14(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f14(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f15(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f15(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f15(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f16(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f16(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f16(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f17(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f17(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f17(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f18(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f18(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f18(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f19(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f19(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f19(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f20(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f20(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f20(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f21(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f21(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f21(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f22(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f22(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f22(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f23(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f23(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f23(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f24(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f24(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f24(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f25(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f25(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f25(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f26(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f26(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f26(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f27(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f27(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f27(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f28(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f28(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f28(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f29(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f29(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f29(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f30(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f30(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f30(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f31(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f31(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f31(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f32(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f32(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f32(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f33(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f33(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f33(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f34(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f34(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f34(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f35(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f35(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f35(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f36(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f36(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f36(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f37(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f37(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f37(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f38(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f38(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f38(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f39(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f39(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f39(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Call @f40(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = onnx.Call @f40(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @f40(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = onnx.Neg(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
