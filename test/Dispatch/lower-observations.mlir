// RUN: onnx-opt %s --sdx-lower-observations | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[SITE:.*]] = arith.constant 3 : i64
// CHECK-DAG: %[[WHAT:.*]] = arith.constant 5 : i64
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i64
// CHECK: sdx.runtime_call stateful "sdx_rt_observe_tensor"(%[[SITE]], %[[WHAT]], %[[NONE]], %arg0 : i64, i64, i64, tensor<?x8xf32>)
// bf16 is number 2, channels bit 8.
// CHECK: %[[BYTES:.*]] = arith.constant 520 : i64
// CHECK: %[[AXIS:.*]] = arith.constant 1 : i64
// CHECK: sdx.runtime_call stateful "sdx_rt_observe_tensor"(%{{.*}}, %[[BYTES]], %[[AXIS]], %arg1
// CHECK-NOT: sdx.observe
func.func @main(%x: tensor<?x8xf32> {sdx.input = 0 : i64}, %h: tensor<4x8xbf16> {sdx.input = 1 : i64}) {
  sdx.observe %x site 3 <range|bits> : tensor<?x8xf32>
  sdx.observe %h site 4 <channels> axis 1 : tensor<4x8xbf16>
  return
}
// A kernel's are the kernel's.
// CHECK-LABEL: func.func private @kernel
// CHECK: sdx.observe
func.func private @kernel(%x: memref<4x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %x restrict : memref<4x8xf32> to tensor<4x8xf32>
  sdx.observe %t site 3 <range> : tensor<4x8xf32>
  return
}
