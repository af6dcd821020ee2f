// RUN: onnx-opt %s -split-input-file -verify-diagnostics -sdx-verify-codegen

func.func @ok(%a: memref<4xf32>) {
  return
}

// -----

func.func private @left(%a: memref<4xf32>) attributes {sdx.kernel} {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{is left after code generation}}
  linalg.fill ins(%zero : f32) outs(%a : memref<4xf32>)
  return
}

// -----

func.func private @tensors(%a: memref<4xf32>) attributes {sdx.kernel} {
  // expected-error @below {{still works on tensors after code generation}}
  %t = bufferization.to_tensor %a restrict : memref<4xf32> to tensor<4xf32>
  return
}

// -----

func.func private @allocates(%n: index) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{allocates memory in an innermost loop}}
    %t = memref.alloc(%n) : memref<?xf32>
    memref.dealloc %t : memref<?xf32>
  }
  return
}

// -----

func.func private @reduces(%a: memref<?xf32>, %n: index) -> f32 attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{reduces after code generation}}
  %sum = scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%zero) -> f32 {
    %x = memref.load %a[%i] : memref<?xf32>
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  return %sum : f32
}

// -----

// The next pass makes the inner one sequential.
func.func private @nested(%a: memref<?xf32>, %n: index) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
    scf.parallel (%j) = (%c0) to (%n) step (%c1) {
      memref.store %zero, %a[%j] : memref<?xf32>
    }
  }
  return
}
