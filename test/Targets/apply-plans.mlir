// RUN: onnx-opt %s --sdx-apply-plans | FileCheck %s

// A kernel that has no line keeps what it has; a line without a kernel is told.
// CHECK: module attributes {sdx.stale_plans = ["the plan of 0123456789abcdef is of no kernel of this model on this processor"]}
// CHECK-NOT: sdx.plans
// CHECK: func.func private @kernel
// CHECK-NOT: cpu.plan
module attributes {sdx.plans = {"0123456789abcdef" = #cpu.conv_plan<im2col>}} {
  func.func private @kernel(%x: memref<4xf32>, %out: memref<4xf32>) attributes {sdx.kernel} {
    %t = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
    bufferization.materialize_in_destination %t in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
    return
  }
}
