// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-lower-device-ops

func.func @main(%a: memref<4xf32, #gpu.address_space<global>>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{is in memory space #gpu.address_space<global>, which the host has no access to}}
  %0 = memref.load %a[%c0] : memref<4xf32, #gpu.address_space<global>>
  return
}

// -----

func.func private @start(%n: index) attributes {sdx.kernel} {
  // expected-error @below {{starts 'k9', which no image has}}
  sdx.launch "k9" blocks(%n, %n, %n) threads [1, 1, 1] ()
  return
}
