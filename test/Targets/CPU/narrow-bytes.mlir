// RUN: onnx-opt %s --target=znver4 -cpu-lower-narrow-conv | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: onnx-opt %s --target=haswell -cpu-lower-narrow-conv | FileCheck %s --check-prefixes=CHECK,HALF
// RUN: onnx-opt %s --sdx-attach-target="triple=aarch64-linux-gnu" -cpu-lower-narrow-conv | FileCheck %s --check-prefixes=NEON

// What saturates needs no bound from below, and four registers are packed into
// one: 16 integers each, of two rows, or 8 of one.
// CHECK-LABEL: func.func private @saturating
// CHECK-NOT:   arith.trunci
// CHECK:       %[[HIGH:.*]] = arith.cmpf olt, %[[MOST:.*]], %[[V:.*]] : vector<{{32|16}}xf32>
// CHECK-NEXT:  %[[B:.*]] = arith.select %[[HIGH]], %[[MOST]], %[[V]]
// CHECK-NEXT:  %[[R:.*]] = math.roundeven %[[B]]
// CHECK-NEXT:  %[[I:.*]] = arith.fptosi %[[R]]
// WIDE:        "llvm.x86.avx512.packssdw.512"
// WIDE:        llvm.intr.sadd.sat({{.*}}) : (vector<32xi16>, vector<32xi16>)
// WIDE:        "llvm.x86.avx512.packssdw.512"
// WIDE:        llvm.intr.sadd.sat
// WIDE:        "llvm.x86.avx512.packuswb.512"
// WIDE:        vector.shuffle {{.*}} [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
// WIDE:        vector.store {{.*}} vector<32xi8>
// WIDE-NEXT:   vector.store {{.*}} vector<32xi8>
// HALF:        "llvm.x86.avx2.packssdw"
// HALF:        llvm.intr.sadd.sat({{.*}}) : (vector<16xi16>, vector<16xi16>)
// HALF:        "llvm.x86.avx2.packssdw"
// HALF:        "llvm.x86.avx2.packuswb"
// HALF:        vector.shuffle {{.*}} [0, 4, 1, 5, 2, 6, 3, 7]
// NEON-LABEL:  func.func private @saturating
// NEON:        arith.trunci
func.func private @saturating(%x: memref<1x14x14x64xi8>, %w: memref<2x16x128xi8>, %scale: f32, %low: f32, %high: f32, %zero: i32, %out: memref<1x14x14x64xi8>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x16x128xi8> to tensor<2x16x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x16x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  %o = tensor.empty() : tensor<1x14x14x64xi8>
  %1 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x14x14x64xi32>) outs(%o : tensor<1x14x14x64xi8>) {
  ^bb0(%s: i32, %old: i8):
    %f = arith.sitofp %s : i32 to f32
    %m = arith.mulf %f, %scale : f32
    %l = arith.cmpf olt, %low, %m : f32
    %a = arith.select %l, %m, %low : f32
    %h = arith.cmpf olt, %a, %high : f32
    %c = arith.select %h, %a, %high : f32
    %r = math.roundeven %c : f32
    %i = arith.fptosi %r : f32 to i32
    %q = arith.addi %i, %zero : i32
    %t = arith.trunci %q {sdx.saturating = ui8} : i32 to i8
    linalg.yield %t : i8
  } -> tensor<1x14x14x64xi8>
  bufferization.materialize_in_destination %1 in restrict writable %out : (tensor<1x14x14x64xi8>, memref<1x14x14x64xi8>) -> ()
  return
}

// What is widened to 16 bits becomes no byte before.
// CHECK-LABEL: func.func private @widened
// CHECK-NOT:   arith.trunci
// WIDE:        "llvm.x86.avx512.packssdw.512"
// WIDE-NEXT:   %[[Z:.*]] = llvm.call_intrinsic "llvm.x86.avx512.packssdw.512"
// WIDE-NEXT:   %[[S:.*]] = llvm.intr.sadd.sat(%{{.*}}, %[[Z]])
// WIDE:        arith.maxsi %[[S]], %{{.*}} : vector<32xi16>
// WIDE:        vector.shuffle {{.*}} [0, 2, 4, 6, 1, 3, 5, 7]
// WIDE:        vector.store {{.*}} vector<32xi16>
// HALF:        arith.maxsi {{.*}} : vector<16xi16>
// HALF:        vector.shuffle {{.*}} [0, 2, 1, 3]
func.func private @widened(%x: memref<1x14x14x64xi8>, %w: memref<2x16x128xi8>, %scale: f32, %low: f32, %high: f32, %zero: i32, %out: memref<1x14x14x64xi16>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi8> to tensor<1x14x14x64xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x16x128xi8> to tensor<2x16x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi8>, tensor<2x16x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  %o = tensor.empty() : tensor<1x14x14x64xi16>
  %1 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0 : tensor<1x14x14x64xi32>) outs(%o : tensor<1x14x14x64xi16>) {
  ^bb0(%s: i32, %old: i16):
    %f = arith.sitofp %s : i32 to f32
    %m = arith.mulf %f, %scale : f32
    %l = arith.cmpf olt, %low, %m : f32
    %a = arith.select %l, %m, %low : f32
    %h = arith.cmpf olt, %a, %high : f32
    %c = arith.select %h, %a, %high : f32
    %r = math.roundeven %c : f32
    %i = arith.fptosi %r : f32 to i32
    %q = arith.addi %i, %zero : i32
    %t = arith.trunci %q {sdx.saturating = ui8} : i32 to i8
    %u = arith.extui %t : i8 to i16
    linalg.yield %u : i16
  } -> tensor<1x14x14x64xi16>
  bufferization.materialize_in_destination %1 in restrict writable %out : (tensor<1x14x14x64xi16>, memref<1x14x14x64xi16>) -> ()
  return
}
