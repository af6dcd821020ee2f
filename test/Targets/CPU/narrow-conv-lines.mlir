// RUN: onnx-opt %s --target=sapphirerapids -cpu-select-plans | FileCheck %s --check-prefix=PLAN
// RUN: onnx-opt %s --target=sapphirerapids -cpu-select-plans -cpu-lower-narrow-conv | FileCheck %s
// RUN: onnx-opt %s --target=znver4 -cpu-select-plans | FileCheck %s --check-prefix=VNNI

// Seven of 28 lines at a time: 9 lines of 30 pixels are copied, with pads of 9,
// and a block of 32 positions more is there to be read. A step goes on to the
// next line after three pixels of 64 bytes.
// PLAN-LABEL: func.func private @lines
// PLAN-SAME: cpu.plan = #cpu.narrow_conv_plan<"amx_int8", tile_rows = 4, tile_columns = 32, chunk_rows = 196, in_place = true
// VNNI-LABEL: func.func private @lines
// VNNI-SAME: cpu.plan = #cpu.narrow_conv_plan<"vnni"
// VNNI-NOT:   in_place
// CHECK-LABEL: func.func private @lines
// CHECK: scf.parallel
// CHECK:   %[[LINES:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x19328xi8>
// CHECK:   scf.if
// CHECK:     arith.constant dense<9> : vector<64xi8>
// CHECK:     vector.store {{.*}}, %[[LINES]]
// CHECK:   %[[SUMS:.*]] = memref.alloc() {{.*}} : memref<33x32xi32>
// CHECK:   scf.for
// CHECK:     scf.for
// CHECK:       arith.divui %{{.*}}, %c3
// CHECK:       "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-4: "llvm.x86.tdpbusd.internal"
// CHECK:     vector.load %[[SUMS]]
// CHECK:     vector.store {{.*}}, %{{.*}} : memref<784x64xi32>, vector<32xi32>
func.func private @lines(%x: memref<1x28x28x64xi8>, %w: memref<2x144x128xi8>, %out: memref<1x28x28x64xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x28x28x64xi8> to tensor<1x28x28x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x144x128xi8> to tensor<2x144x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x28x28x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x28x28x64xi32>) -> tensor<1x28x28x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x28x28x64xi8>, tensor<2x144x128xi8>) outs(%z : tensor<1x28x28x64xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 9 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x28x28x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x28x28x64xi32>, memref<1x28x28x64xi32>) -> ()
  return
}
