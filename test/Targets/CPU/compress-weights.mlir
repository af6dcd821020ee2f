// RUN: onnx-opt %s --target=haswell --sdx-normalize-contractions --cpu-pack-contractions="numerics=fast min-compressed-bytes=32" --split-input-file | FileCheck %s
// RUN: onnx-opt %s --target=nehalem --sdx-normalize-contractions --cpu-pack-contractions=min-compressed-bytes=32 --split-input-file | FileCheck %s --check-prefix=BYTES
// Sums of so few products are more exact than 21 bits.
// RUN: onnx-opt %s --target=haswell --sdx-normalize-contractions --cpu-pack-contractions=min-compressed-bytes=32 --split-input-file | FileCheck %s --check-prefix=BYTES
// RUN: onnx-opt %s --target=haswell --sdx-normalize-contractions --cpu-pack-contractions="numerics=exact min-compressed-bytes=32" --split-input-file | FileCheck %s --check-prefix=OFF

// Numbers whose largest is 3 of a column are multiples of 2^-21 at least.
// CHECK-LABEL: @few_rows
// CHECK-DAG: %[[S:.*]] = arith.constant dense<{{\[\[\[\[}}2.38418579E-7, 4.76837158E-7, 1.1920929E-7, 2.38418579E-7, 1.000000e+00,
// CHECK-DAG: %[[W:.*]] = arith.constant dense<{{.*}}> : tensor<2x4xf32>
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%[[W]], %[[S]] : tensor<2x4xf32>, tensor<1x1x1x32xf32>) outs(%{{.*}} : tensor<1x2x96xi8>)
// CHECK: cpu.packed_matmul ins(%arg0, %[[P]], %[[S]] : tensor<3x2xf32>, tensor<1x2x96xi8>, tensor<1x1x1x32xf32>)
// CHECK-SAME: block = 2
// OFF-LABEL: @few_rows
// OFF: cpu.pack_rhs ins(%{{.*}} : tensor<2x4xf32>) outs(%{{.*}} : tensor<1x2x32xf32>)
func.func @few_rows(%a: tensor<3x2xf32>, %c: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = arith.constant dense<[[1.0, -2.5, 0.75, 1.0], [1.5, 3.0, 0.5, -1.0]]> : tensor<2x4xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  %r = linalg.matmul ins(%a, %w : tensor<3x2xf32>, tensor<2x4xf32>) outs(%f : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// -----

// Nine rows use each weight often enough, an open number of them may.
// CHECK-LABEL: @many_rows
// CHECK-NOT: i8
// CHECK: return
func.func @many_rows(%a: tensor<9x2xf32>, %b: tensor<?x2xf32>, %c: tensor<9x4xf32>, %d: tensor<?x4xf32>) -> (tensor<9x4xf32>, tensor<?x4xf32>) {
  %w = arith.constant dense<[[1.0, -2.5, 0.75, 1.0], [1.5, 3.0, 0.5, -1.0]]> : tensor<2x4xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<9x4xf32>) -> tensor<9x4xf32>
  %r = linalg.matmul ins(%a, %w : tensor<9x2xf32>, tensor<2x4xf32>) outs(%f : tensor<9x4xf32>) -> tensor<9x4xf32>
  %g = linalg.fill ins(%zero : f32) outs(%d : tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = linalg.matmul ins(%b, %w : tensor<?x2xf32>, tensor<2x4xf32>) outs(%g : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r, %s : tensor<9x4xf32>, tensor<?x4xf32>
}

// -----

// An infinity is no integer, and numbers below 2^-77 have scales below all f32.
// CHECK-LABEL: @no_scale
// CHECK-NOT: i8
// CHECK: return
func.func @no_scale(%a: tensor<1x3xf32>, %c: tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1x3xf32>) {
  %small = arith.constant dense<[[1.0e-24, 0.0, 1.0], [1.0e-24, 1.0, 1.0], [1.0e-25, 1.0, 1.0]]> : tensor<3x3xf32>
  %infinite = arith.constant dense<[[1.0, 0.0, 1.0], [1.0, 0x7F800000, 1.0], [2.0, 1.0, 1.0]]> : tensor<3x3xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<1x3xf32>) -> tensor<1x3xf32>
  %r = linalg.matmul ins(%a, %infinite : tensor<1x3xf32>, tensor<3x3xf32>) outs(%f : tensor<1x3xf32>) -> tensor<1x3xf32>
  %s = linalg.matmul ins(%a, %small : tensor<1x3xf32>, tensor<3x3xf32>) outs(%f : tensor<1x3xf32>) -> tensor<1x3xf32>
  return %r, %s : tensor<1x3xf32>, tensor<1x3xf32>
}

// -----

// A matrix that no run changes, but whose numbers are not known here.
// CHECK-LABEL: @no_constant
// CHECK-NOT: i8
// CHECK: return
func.func @no_constant(%a: tensor<1x3xf32>, %w: tensor<3x4xf32>, %c: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<1x4xf32>) -> tensor<1x4xf32>
  %r = linalg.matmul ins(%a, %w : tensor<1x3xf32>, tensor<3x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
  return %r : tensor<1x4xf32>
}

// -----

// Numbers of any bits, none of them zero, lie three to eight bytes, and the
// largest of a column is 2^20 - 1 of its scales.
// CHECK-LABEL: @triples
// CHECK-DAG: %[[S:.*]] = arith.constant dense<{{\[\[\[\[}}9.53675254E-8, 3.81470102E-7, 1.000000e+00,
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%{{.*}}, %[[S]] : tensor<4x2xf32>, tensor<1x1x1x32xf32>) outs(%{{.*}} : tensor<1x2x32xi64>)
// CHECK: cpu.packed_matmul ins(%arg0, %[[P]], %[[S]] : tensor<1x4xf32>, tensor<1x2x32xi64>, tensor<1x1x1x32xf32>)
// BYTES-LABEL: @triples
// BYTES: cpu.pack_rhs {{.*}} outs(%{{.*}} : tensor<1x4x96xi8>)
func.func @triples(%a: tensor<1x4xf32>, %c: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %w = arith.constant dense<[[0.1, 0.4], [-0.07, 0.3], [0.03, -0.2], [0.09, 0.1]]> : tensor<4x2xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = linalg.matmul ins(%a, %w : tensor<1x4xf32>, tensor<4x2xf32>) outs(%f : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %r : tensor<1x2xf32>
}

// -----

// A zero, and a column of which two numbers are too small for 21 bits.
// CHECK-LABEL: @no_triples
// CHECK: cpu.pack_rhs {{.*}} outs(%{{.*}} : tensor<1x4x96xi8>)
// CHECK: cpu.pack_rhs {{.*}} outs(%{{.*}} : tensor<1x4x96xi8>)
func.func @no_triples(%a: tensor<1x4xf32>, %c: tensor<1x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %zeros = arith.constant dense<[[0.1, 0.4], [-0.07, 0.3], [0.03, 0.0], [0.09, 0.1]]> : tensor<4x2xf32>
  %uneven = arith.constant dense<[[0.1, 0.4], [-0.007, 0.3], [0.003, -0.2], [0.009, 0.1]]> : tensor<4x2xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<1x2xf32>) -> tensor<1x2xf32>
  %r = linalg.matmul ins(%a, %zeros : tensor<1x4xf32>, tensor<4x2xf32>) outs(%f : tensor<1x2xf32>) -> tensor<1x2xf32>
  %s = linalg.matmul ins(%a, %uneven : tensor<1x4xf32>, tensor<4x2xf32>) outs(%f : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %r, %s : tensor<1x2xf32>, tensor<1x2xf32>
}

// -----

// What a loop multiplies by again and again is in a cache.
// CHECK-LABEL: @in_loop
// CHECK: cpu.pack_rhs transposed ins({{.*}} : tensor<4x2xf32>) outs({{.*}} : tensor<1x2x32xf32>)
// CHECK: cpu.pack_rhs ins({{.*}} : tensor<2x4xf32>, tensor<1x1x1x32xf32>)
func.func @in_loop(%a: tensor<1x2xf32>, %c: tensor<1x4xf32>, %n: index) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  // One direction of two.
  %w = arith.constant dense<[[[1.0, -2.5], [0.75, 1.0], [1.5, 3.0], [0.5, -1.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]]> : tensor<2x4x2xf32>
  %d = tensor.extract_slice %w[0, 0, 0] [1, 4, 2] [1, 1, 1] : tensor<2x4x2xf32> to tensor<4x2xf32>
  %v = arith.constant dense<[[1.0, -2.5, 0.75, 1.0], [1.5, 3.0, 0.5, -1.0]]> : tensor<2x4xf32>
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c) -> tensor<1x4xf32> {
    %f = linalg.fill ins(%zero : f32) outs(%x : tensor<1x4xf32>) -> tensor<1x4xf32>
    %e = tensor.empty() : tensor<2x4xf32>
    %t = linalg.transpose ins(%d : tensor<4x2xf32>) outs(%e : tensor<2x4xf32>) permutation = [1, 0]
    %r = linalg.matmul ins(%a, %t : tensor<1x2xf32>, tensor<2x4xf32>) outs(%f : tensor<1x4xf32>) -> tensor<1x4xf32>
    scf.yield %r : tensor<1x4xf32>
  }
  %g = linalg.fill ins(%zero : f32) outs(%c : tensor<1x4xf32>) -> tensor<1x4xf32>
  %s = linalg.matmul ins(%a, %v : tensor<1x2xf32>, tensor<2x4xf32>) outs(%g : tensor<1x4xf32>) -> tensor<1x4xf32>
  return %l, %s : tensor<1x4xf32>, tensor<1x4xf32>
}
