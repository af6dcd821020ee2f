// RUN: onnx-opt %s --sdx-run-target=stage=codegen | sed "s/.0A/\n/g" > %t.threads
// RUN: onnx-opt %s --sdx-run-target=stage=codegen --mlir-disable-threading | sed "s/.0A/\n/g" > %t.alone
// RUN: cmp %t.threads %t.alone
// RUN: FileCheck %s < %t.threads

// Threads compile a few kernels each; the text is one, with one head.
// CHECK: .version 7.0
// CHECK: .target sm_80
// CHECK: .address_size 64
// CHECK: .visible .entry k0_elementwise(
// CHECK: .visible .entry k1_elementwise(
// CHECK: .visible .entry k2_elementwise(
// CHECK: .visible .entry k3_elementwise(
// CHECK-NOT: .version
// CHECK-NOT: .target
// CHECK: .visible .entry k4_elementwise(
// CHECK: mul.rn.f32 {{.*}}, 0f40900000
// CHECK-NOT: .version
// CHECK: kernels = [{{.*}}"k0_elementwise"{{.*}}"k1_elementwise"{{.*}}"k2_elementwise"{{.*}}"k3_elementwise"{{.*}}"k4_elementwise"

#id = affine_map<(d0) -> (d0)>
#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %init = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %factor = arith.constant 0.5 : f32
    %r = arith.mulf %a, %factor : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
func.func private @k1_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %init = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %factor = arith.constant 1.5 : f32
    %r = arith.mulf %a, %factor : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
func.func private @k2_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %init = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %factor = arith.constant 2.5 : f32
    %r = arith.mulf %a, %factor : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
func.func private @k3_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %init = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %factor = arith.constant 3.5 : f32
    %r = arith.mulf %a, %factor : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
func.func private @k4_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %init = tensor.empty(%n) : tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %factor = arith.constant 4.5 : f32
    %r = arith.mulf %a, %factor : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %1 in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
}
