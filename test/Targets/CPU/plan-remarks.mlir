// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-select-plans))" -remarks-filter=plans 2>&1 | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-lower-rows))" -remarks-filter=plans 2>&1 | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-select-plans))" 2>&1 | FileCheck %s --check-prefix=QUIET

// A kernel that has no form of its own says why to those who ask for it; one that has a form, or loops by hand, says nothing.
// CHECK-NOT: remark: {{.*}}rows
// CHECK: remark: {{.*}}plain-loops | Category:plans | Function=inserts | Reason="operation 'tensor.insert_slice'"
// CHECK-NOT: remark:
// QUIET-NOT: remark:
func.func private @inserts(%x: memref<4x4xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.insert_slice %t into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

func.func private @rows(%x: memref<4x8xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = linalg.exp ins(%t : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

func.func private @by_hand(%x: memref<4x4xf32>, %out: memref<4x8xf32>) attributes {sdx.kernel, cpu.plan = #cpu.loops} {
  %t = bufferization.to_tensor %x restrict : memref<4x4xf32> to tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.insert_slice %t into %e[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
  bufferization.materialize_in_destination %r in restrict writable %out : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}
