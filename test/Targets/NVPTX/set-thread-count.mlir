// RUN: onnx-opt %s -nv-set-thread-count | FileCheck %s

// Loops are cut for the device's threads, not for the processor's.
// CHECK-LABEL: func @ranges
// CHECK-NOT: sdx.thread_count
// CHECK: %[[COUNT:.*]] = arith.constant 1024 : index
// CHECK: arith.ceildivsi %arg0, %[[COUNT]]
func.func @ranges(%n: index) -> index {
  %threads = sdx.thread_count : index
  %width = arith.ceildivsi %n, %threads : index
  return %width : index
}
