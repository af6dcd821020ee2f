// RUN: split-file %s %t
// RUN: onnx-opt %t/layout.mlir --sdx-run-target="stage=layout" | FileCheck %t/layout.mlir
// RUN: onnx-opt %t/layout.mlir --sdx-run-target="stage=layout numerics=exact" | FileCheck %t/layout.mlir --check-prefix=EXACT
// RUN: onnx-opt %t/plan.mlir --sdx-run-target="stage=plan" | FileCheck %t/plan.mlir
// RUN: onnx-opt %t/codegen.mlir --sdx-run-target="stage=codegen" | FileCheck %t/codegen.mlir
// RUN: onnx-opt %t/errors.mlir --sdx-run-target --split-input-file --verify-diagnostics
// RUN: not onnx-opt %t/layout.mlir --sdx-run-target="stage=link" 2>&1 | FileCheck %s --check-prefix=STAGE

// STAGE: Cannot find option named 'link'

//--- layout.mlir
// All dense operations are laid out, and plain sums ask for direct convolutions.
// Nothing else happens to the module.
// CHECK: module attributes {sdx.target = #cpu.target<cpu = "haswell"
// CHECK-LABEL: @main_graph
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%arg1 :
// CHECK: cpu.packed_matmul ins(%arg0, %[[P]] :
// CHECK: cpu.packed_matmul ins(%arg0, %{{.*}}, %{{.*}} : tensor<?x768xf32>, tensor<2x192x64xi8>,
// CHECK: cpu.pack_conv_weights {{.*}} winograd = 4
// CHECK: cpu.conv {{.*}} winograd = 4
// CHECK-NOT: sdx.{{matmul|conv|dequant_matmul}}

// EXACT-LABEL: @main_graph
// EXACT: cpu.packed_matmul
// EXACT: cpu.conv
// EXACT-NOT: winograd
// EXACT: return
module attributes {sdx.target = #cpu.target<cpu = "haswell", vector_bits = 256, l2_kib = 256>} {
  func.func @main_graph(%a: tensor<?x768xf32>, %b: tensor<768x40xf32>, %w: tensor<40x24x16xi8>, %s: tensor<40x24xf32>,
      %x: tensor<1x64x56x56xf32>, %f: tensor<64x64x3x3xf32>, %c: tensor<?x40xf32>, %d: tensor<1x64x56x56xf32>)
      -> (tensor<?x40xf32>, tensor<?x40xf32>, tensor<1x64x56x56xf32>) {
    %zero = arith.constant 0.0 : f32
    %c0 = linalg.fill ins(%zero : f32) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
    %d0 = linalg.fill ins(%zero : f32) outs(%d : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    %0 = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x40xf32>) outs(%c0 : tensor<?x40xf32>) -> tensor<?x40xf32>
    %1 = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x768xf32>, tensor<40x24x16xi8>, tensor<40x24xf32>) outs(%c0 : tensor<?x40xf32>)
        {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
    %2 = sdx.conv ins(%x, %f : tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32>) outs(%d0 : tensor<1x64x56x56xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
         group = 1 : i64} -> tensor<1x64x56x56xf32>
    return %0, %1, %2 : tensor<?x40xf32>, tensor<?x40xf32>, tensor<1x64x56x56xf32>
  }
}

//--- plan.mlir
// Equal kernels are one; they stay kernels on tensors.
// CHECK: sdx.call @a(
// CHECK: sdx.call @a(
// CHECK: func.func private @a
// CHECK: linalg.exp {{.*}} tensor<4xf32>
// CHECK-NOT: @b
module attributes {sdx.target = #cpu.target<cpu = "haswell", vector_bits = 256>} {
  func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
    sdx.call @a(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    sdx.call @b(%x : memref<4xf32>) outs(%y : memref<4xf32>)
    return
  }
  func.func private @a(%x: memref<4xf32>, %y: memref<4xf32>) attributes {sdx.kernel} {
    %t = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %r = linalg.exp ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
    return
  }
  func.func private @b(%x: memref<4xf32>, %y: memref<4xf32>) attributes {sdx.kernel} {
    %t = bufferization.to_tensor %x restrict : memref<4xf32> to tensor<4xf32>
    %e = tensor.empty() : tensor<4xf32>
    %r = linalg.exp ins(%t : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<4xf32>, memref<4xf32>) -> ()
    return
  }
}

//--- codegen.mlir
// A kernel is loops over vectors of the machine's width. The CPU makes no images:
// bodies stay.
// CHECK-NOT: sdx.images
// CHECK: sdx.call @square
// CHECK: func.func private @square
// CHECK-NOT: tensor<
// CHECK: scf.parallel
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK: arith.mulf {{.*}} vector<8xf32>
// CHECK: vector.store
// CHECK-NOT: linalg
module attributes {sdx.target = #cpu.target<cpu = "haswell", vector_bits = 256>} {
  func.func @main(%x: memref<?xf32>, %y: memref<?xf32>) {
    sdx.call @square(%x : memref<?xf32>) outs(%y : memref<?xf32>)
    return
  }
  func.func private @square(%x: memref<?xf32>, %y: memref<?xf32>) attributes {sdx.kernel} {
    %t = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
    %c0 = arith.constant 0 : index
    %n = tensor.dim %t, %c0 : tensor<?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%t : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %s = arith.mulf %in, %in : f32
      linalg.yield %s : f32
    } -> tensor<?xf32>
    bufferization.materialize_in_destination %r in restrict writable %y : (tensor<?xf32>, memref<?xf32>) -> ()
    return
  }
}

//--- errors.mlir
// expected-error@below {{no 'sdx.target' says which machine to compile for}}
module {
}

// -----

// expected-error@below {{'sdx.target' must be a machine, as #cpu.target<>, got 5 : i64}}
module attributes {sdx.target = 5} {
}
