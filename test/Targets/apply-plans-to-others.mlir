// RUN: onnx-opt %s --sdx-apply-plans | FileCheck %s

// What is said of * is for kernels without a line, and never stale. What is no kernel gets nothing.
// CHECK: module {
// CHECK: func.func private @kernel
// CHECK-SAME: cpu.plan = #cpu.loops
// CHECK: func.func @host
// CHECK-NOT: cpu.plan
module attributes {sdx.plans = {"*" = #cpu.loops}} {
  func.func private @kernel(%x: memref<4xf32>, %out: memref<4xf32>) attributes {sdx.kernel} {
    %t = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
    bufferization.materialize_in_destination %t in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
    return
  }
  func.func @host() {
    return
  }
}
