// RUN: onnx-opt %s -sdx-outline-device-copies | FileCheck %s

// Strided copies of one kind on the device share a kernel; all others stay.

// CHECK-LABEL: func.func @main
// CHECK: sdx.call @copy_2d(%{{.*}} : memref<?x?xf32, strided<[?, ?], offset: ?>, #gpu.address_space<global>>) outs(%{{.*}} :
// CHECK: sdx.call @copy_2d(
// CHECK: sdx.call @copy_2d_0(
// CHECK: memref.copy
// CHECK: memref.copy
// CHECK-NOT: memref.copy
// CHECK: return
// CHECK: func.func private @copy_2d({{.*}}) attributes {sdx.kernel}
// CHECK: linalg.generic
// CHECK: func.func private @copy_2d_0(%{{.*}}: memref<?x?xi8, strided<[?, ?], offset: ?>, #gpu.address_space<global>>
func.func @main(%a: memref<4x8xf32, #gpu.address_space<global>>,
                %b: memref<4x2xf32, #gpu.address_space<global>>,
                %c: memref<4x4xi8, #gpu.address_space<global>>,
                %d: memref<4x2xi8, #gpu.address_space<global>>,
                %e: memref<4x8xf32, #gpu.address_space<global>>,
                %f: memref<4x8xf32>, %g: memref<4x2xf32>) {
  %v = memref.subview %a[0, 1] [4, 2] [1, 1] : memref<4x8xf32, #gpu.address_space<global>>
      to memref<4x2xf32, strided<[8, 1], offset: 1>, #gpu.address_space<global>>
  memref.copy %v, %b : memref<4x2xf32, strided<[8, 1], offset: 1>, #gpu.address_space<global>> to memref<4x2xf32, #gpu.address_space<global>>
  memref.copy %b, %v : memref<4x2xf32, #gpu.address_space<global>> to memref<4x2xf32, strided<[8, 1], offset: 1>, #gpu.address_space<global>>
  %w = memref.subview %c[0, 1] [4, 2] [1, 1] : memref<4x4xi8, #gpu.address_space<global>>
      to memref<4x2xi8, strided<[4, 1], offset: 1>, #gpu.address_space<global>>
  memref.copy %w, %d : memref<4x2xi8, strided<[4, 1], offset: 1>, #gpu.address_space<global>> to memref<4x2xi8, #gpu.address_space<global>>
  memref.copy %a, %e : memref<4x8xf32, #gpu.address_space<global>> to memref<4x8xf32, #gpu.address_space<global>>
  %u = memref.subview %f[0, 1] [4, 2] [1, 1] : memref<4x8xf32> to memref<4x2xf32, strided<[8, 1], offset: 1>>
  memref.copy %u, %g : memref<4x2xf32, strided<[8, 1], offset: 1>> to memref<4x2xf32>
  return
}
