// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-select-plans))" -remarks-filter=plans 2>&1 | FileCheck %s
// RUN: onnx-opt %s -pass-pipeline="builtin.module(func.func(cpu-select-plans,cpu-decompose-packed-ops,cpu-lower-loops))" | FileCheck %s --check-prefix=LOOPS

// A kernel that no loops of its kind are made for is plain loops, and says why.
// CHECK: remark: {{.*}}plain-loops | Category:plans | Function=open | Reason="filters that are sums of bf16 are for vectors of 16 numbers and for sizes that are known"
// CHECK: module
// CHECK: func.func private @open
// CHECK-SAME: cpu.plan = #cpu.loops
// LOOPS: func.func private @open
// LOOPS-NOT: cpu.conv
// LOOPS: memref.store
func.func private @open(%x: memref<1x64x?x?xf32>, %w: memref<1x2x2x2048xbf16>,
    %out: memref<1x64x?x?xf32>) attributes {sdx.kernel} {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %tx = bufferization.to_tensor %x restrict : memref<1x64x?x?xf32> to tensor<1x64x?x?xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x2x2048xbf16> to tensor<1x2x2x2048xbf16>
  %zero = arith.constant 0.0 : f32
  %h = tensor.dim %tx, %c2 : tensor<1x64x?x?xf32>
  %v = tensor.dim %tx, %c3 : tensor<1x64x?x?xf32>
  %e = tensor.empty(%h, %v) : tensor<1x64x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64x?x?xf32>) -> tensor<1x64x?x?xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x64x?x?xf32>, tensor<1x2x2x2048xbf16>)
      outs(%f : tensor<1x64x?x?xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x64x?x?xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x64x?x?xf32>, memref<1x64x?x?xf32>) -> ()
  return
}
