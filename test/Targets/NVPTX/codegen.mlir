// RUN: onnx-opt %s --sdx-run-target=stage=codegen | sed "s/.0A/\n/g" | FileCheck %s

// What the host program starts, in the place of the kernel's body, and the code
// of what it starts.
// CHECK: sdx.images = [{architecture = "sm_80", bytes =
// CHECK: .version 7.0
// CHECK: .target sm_80
// CHECK: .visible .entry k0_elementwise(
// CHECK: .maxntid 256, 1, 1
// CHECK: .minnctapersm 1
// CHECK: add.rn.f32
// CHECK: kernels = [{arguments = {{[0-9]}} : i64, name = "k0_elementwise", node = "", shared = 0 : i64}], ptx, target = "nvidia"
// CHECK: sdx.launch "k0_elementwise"
// CHECK-NOT: gpu.module

#id = affine_map<(d0) -> (d0)>
#g = #gpu.address_space<global>
module attributes {sdx.target = #nv.target<sm = 80>} {
func.func private @k0_elementwise(%x: memref<?xf32, #g>, %y: memref<?xf32, #g>) attributes {sdx.kernel} {
  %0 = bufferization.to_tensor %x restrict : memref<?xf32, #g> to tensor<?xf32>
  %c0 = arith.constant 0 : index
  %n = memref.dim %y, %c0 : memref<?xf32, #g>
  %e = tensor.empty(%n) : tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %in : f32
    linalg.yield %a : f32
  } -> tensor<?xf32>
  bufferization.materialize_in_destination %s in restrict writable %y : (tensor<?xf32>, memref<?xf32, #g>) -> ()
  return
}
}
