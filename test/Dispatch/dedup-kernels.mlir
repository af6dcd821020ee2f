// RUN: onnx-opt %s --sdx-dedup-kernels | FileCheck %s

// CHECK: sdx.call @a(
// CHECK: sdx.call @a(
// CHECK: sdx.call @c(
// CHECK: func.func private @a
// CHECK-NOT: @b
// CHECK: func.func private @c
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  sdx.call @a(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  sdx.call @b(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  sdx.call @c(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
func.func private @a(%x: memref<4xf32>, %y: memref<4xf32>) attributes {sdx.kernel} {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
func.func private @b(%x: memref<4xf32>, %y: memref<4xf32>) attributes {sdx.kernel} {
  linalg.exp ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
func.func private @c(%x: memref<4xf32>, %y: memref<4xf32>) attributes {sdx.kernel} {
  linalg.log ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}
