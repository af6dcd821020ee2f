// The phases above kernels are pipelines that can be written as text.
//
// RUN: onnx-opt %s --dump-pass-pipeline --sardonyx-phase-onnx -o /dev/null 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: builtin.module(
// TEXT: onnx-infer-shapes,
// TEXT: onnx-expand-functions{{.*}}unlowered=true
// TEXT: cse

// RUN: onnx-opt %s --pass-pipeline='builtin.module(onnx-infer-shapes,onnx-expand-functions{unlowered=true},onnx-infer-shapes,convert-onnx-to-linalg)' | FileCheck %s
// CHECK-LABEL: @celu
// CHECK-NOT: onnx.Celu
// CHECK: linalg.generic
func.func @celu(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %y = onnx.Celu(%x) {alpha = 2.0 : f32} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
