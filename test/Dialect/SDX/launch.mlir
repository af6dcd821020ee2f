// RUN: onnx-opt %s | onnx-opt | FileCheck %s
// RUN: onnx-opt %s --mlir-print-op-generic | onnx-opt | FileCheck %s

// A function that the host program calls starts kernels on the device.

// CHECK-LABEL: func private @k0
// CHECK: %[[RECORD:.*]] = sdx.failure_record : memref<6xi64, #gpu.address_space<global>>
// CHECK: sdx.launch "k0_0" blocks(%{{.*}}, %{{.*}}, %{{.*}}) threads [256, 1, 1] shared 98304(%{{.*}}, %{{.*}}, %[[RECORD]] : memref<?xf32, #gpu.address_space<global>>, index, memref<6xi64, #gpu.address_space<global>>)
// CHECK: sdx.launch "k0_1" blocks(%{{.*}}, %{{.*}}, %{{.*}}) threads [32, 4, 1]()
func.func private @k0(%a: memref<?xf32, #gpu.address_space<global>>)
    attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf32, #gpu.address_space<global>>
  %record = sdx.failure_record : memref<6xi64, #gpu.address_space<global>>
  sdx.launch "k0_0" blocks(%n, %c1, %c1) threads [256, 1, 1] shared 98304
      (%a, %n, %record : memref<?xf32, #gpu.address_space<global>>, index,
       memref<6xi64, #gpu.address_space<global>>)
  sdx.launch "k0_1" blocks(%c1, %c1, %c1) threads [32, 4, 1] ()
  return
}

// Tensor maps come first.

// CHECK-LABEL: func private @k1
// CHECK: sdx.launch "k1" blocks(%{{.*}}, %{{.*}}, %{{.*}}) threads [128, 1, 1](%{{.*}}, %{{.*}} : vector<16xi64>, index)
func.func private @k1(%map: vector<16xi64>, %n: index) attributes {sdx.kernel} {
  sdx.launch "k1" blocks(%n, %n, %n) threads [128, 1, 1]
      (%map, %n : vector<16xi64>, index)
  return
}
