// RUN: onnx-opt %s --compile-to=dispatch | FileCheck %s

// Where tile registers multiply f32 as sums of bf16, attention still goes by
// its own kernel, of open sizes and of known ones: scores never reach memory.
// CHECK-COUNT-2: sdx.attention
// CHECK-NOT: cpu.packed_matmul
module attributes {onnx.ir_version = 10 : i64, onnx.opset = {ai.onnx = 23 : i64}, sdx.target = #cpu.target<f32 = amx_bf16x6, bf16 = amx>} {
  func.func @main_graph(%q: tensor<1x4x?x64xf32>, %k: tensor<1x4x?x64xf32>, %v: tensor<1x4x?x64xf32>,
                        %p: tensor<1x4x256x64xf32>) -> (tensor<1x4x?x64xf32>, tensor<1x4x256x64xf32>) {
    %0 = onnx.Attention(%q, %k, %v) {is_causal = 1 : si64} : (tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>, tensor<1x4x?x64xf32>) -> tensor<1x4x?x64xf32>
    %1 = onnx.Attention(%p, %p, %p) : (tensor<1x4x256x64xf32>, tensor<1x4x256x64xf32>, tensor<1x4x256x64xf32>) -> tensor<1x4x256x64xf32>
    return %0, %1 : tensor<1x4x?x64xf32>, tensor<1x4x256x64xf32>
  }
}
