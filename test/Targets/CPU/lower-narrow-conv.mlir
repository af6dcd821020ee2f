// RUN: onnx-opt %s --target=znver4 -split-input-file -cpu-lower-narrow-conv | FileCheck %s --check-prefixes=CHECK,VNNI
// RUN: onnx-opt %s --target=haswell -split-input-file -cpu-lower-narrow-conv | FileCheck %s --check-prefix=MADDWD
// RUN: onnx-opt %s --target=sapphirerapids -split-input-file -cpu-lower-narrow-conv | FileCheck %s --check-prefixes=CHECK,AMX

// Rows of the input, six by two panels, and what follows on the sums.
// CHECK-LABEL: func.func private @in_place
// CHECK: %[[ROWS:.*]] = memref.collapse_shape %arg0 {{\[}}[0, 1, 2], [3]] : memref<1x14x14x64xi8> into memref<196x64xi8>
// CHECK: scf.parallel
// VNNI-NOT:    memref.alloc
// VNNI:        scf.for
// VNNI:          %{{.*}}:12 = scf.for
// VNNI-COUNT-6:    vector.load %[[ROWS]]{{.*}} vector<4xi8>
// VNNI:            llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// VNNI:          arith.sitofp
// VNNI:          arith.trunci
// VNNI:          vector.store {{.*}} vector<32xi8>
// AMX:           llvm.call_intrinsic "llvm.x86.tdpbusd.internal"
// AMX:           vector.store {{.*}} vector<32xi8>
func.func private @in_place(%x: memref<1x14x14x64xi8>, %w: memref<2x16x128xi8>, %out: memref<1x14x14x64xi8>) attributes {sdx.kernel} {
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
    %i = arith.fptosi %f : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  } -> tensor<1x14x14x64xi8>
  bufferization.materialize_in_destination %1 in restrict writable %out : (tensor<1x14x14x64xi8>, memref<1x14x14x64xi8>) -> ()
  return
}

// -----

// The same of bytes that were widened: six rows by two registers, for which two
// values of k are a product and a sum.
// MADDWD-LABEL: func.func private @widened
// MADDWD: %[[ROWS:.*]] = memref.collapse_shape %arg0 {{\[}}[0, 1, 2], [3]] : memref<1x14x14x64xi16> into memref<196x64xi16>
// MADDWD: scf.parallel
// MADDWD-NOT: memref.alloc
// MADDWD:   %{{.*}}:6 = scf.for
// MADDWD:     vector.load %{{.*}} : memref<2x32x64xi16>, vector<32xi16>
// MADDWD-NOT: arith.sh
// MADDWD:     vector.load %[[ROWS]]{{.*}} vector<2xi16>
// MADDWD:     llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"{{.*}} : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// MADDWD:     arith.addi %{{.*}}, %{{.*}} : vector<8xi32>
func.func private @widened(%x: memref<1x14x14x64xi16>, %w: memref<2x32x64xi16>, %out: memref<1x14x14x64xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x64xi16> to tensor<1x14x14x64xi16>
  %tw = bufferization.to_tensor %w restrict : memref<2x32x64xi16> to tensor<2x32x64xi16>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x64xi16>, tensor<2x32x64xi16>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i16, panel = 32>} -> tensor<1x14x14x64xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x64xi32>, memref<1x14x14x64xi32>) -> ()
  return
}

// -----

// Windows are copied, a line of the kernel at once where all of it is inside;
// what is outside is filled. Of an open number of images the last rows repeat.
// CHECK-LABEL: func.func private @windows
// CHECK: scf.parallel
// CHECK:   %[[WINDOWS:.*]] = memref.alloc() {{.*}} : memref<{{.*}}x{{[0-9]+}}xi8>
// CHECK:   scf.for
// CHECK:     arith.cmpi ult
// CHECK:     scf.if
// The two other taps of three beside each other, 24 channels.
// CHECK:       vector.load {{.*}} vector<{{64|32}}xi8>
// CHECK:       vector.store {{.*}} %[[WINDOWS]]
// CHECK:     else
// CHECK:       arith.constant dense<9> : vector<16xi8>
// CHECK:   vector.load %[[WINDOWS]]
// CHECK:   memref.dealloc %[[WINDOWS]]
func.func private @windows(%x: memref<?x14x14x24xi8>, %w: memref<2x64x128xi8>, %out: memref<?x14x14x40xi32>, %n: index) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<?x14x14x24xi8> to tensor<?x14x14x24xi8>
  %tw = bufferization.to_tensor %w restrict : memref<2x64x128xi8> to tensor<2x64x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty(%n) : tensor<?x14x14x40xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<?x14x14x40xi32>) -> tensor<?x14x14x40xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<?x14x14x24xi8>, tensor<2x64x128xi8>) outs(%z : tensor<?x14x14x40xi32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>,
       group = 1 : i64, padding = 9 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<?x14x14x40xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<?x14x14x40xi32>, memref<?x14x14x40xi32>) -> ()
  return
}

// -----

// Weights that come from memory: tiles fetch the next panels beside their work.
// VNNI-LABEL: func.func private @large
// VNNI: %[[WEIGHTS:.*]] = memref.collapse_shape %arg1 {{\[}}[0, 1, 2]] : memref<8x256x128xi8> into memref<262144xi8>
// VNNI: scf.for
// VNNI: memref.prefetch %[[WEIGHTS]]
// VNNI: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
func.func private @large(%x: memref<1x14x14x1024xi8>, %w: memref<8x256x128xi8>, %out: memref<1x14x14x256xi32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x14x14x1024xi8> to tensor<1x14x14x1024xi8>
  %tw = bufferization.to_tensor %w restrict : memref<8x256x128xi8> to tensor<8x256x128xi8>
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x256xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x256xi32>) -> tensor<1x14x14x256xi32>
  %0 = cpu.narrow_conv ins(%tx, %tw : tensor<1x14x14x1024xi8>, tensor<8x256x128xi8>) outs(%z : tensor<1x14x14x256xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x256xi32>
  bufferization.materialize_in_destination %0 in restrict writable %out : (tensor<1x14x14x256xi32>, memref<1x14x14x256xi32>) -> ()
  return
}
