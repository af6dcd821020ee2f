// RUN: onnx-opt %s --target=sapphirerapids --cpu-lower-attention -split-input-file | FileCheck %s --check-prefix=TILES
// RUN: onnx-opt %s --target=znver4 --cpu-lower-attention -split-input-file | FileCheck %s --check-prefix=PAIRS
// RUN: onnx-opt %s --target=skylake-avx512 --cpu-lower-attention -split-input-file | FileCheck %s --check-prefix=WIDE
// RUN: onnx-opt %s --target=sapphirerapids --cpu-select-plans -split-input-file | FileCheck %s --check-prefix=PLAN

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// Queries, squares of keys and rows of values are pairs of bf16; of keys past
// the last values are zeros. Scores are stored from tile registers, exponentials
// are rounded, and sums are those before and more.
// TILES-LABEL: func private @short
// TILES: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// TILES: vector.store {{.*}} memref<64x32xi32>, vector<16xi32>
// TILES: vector.store {{.*}} memref<4x32x32xi32>, vector<16xi32>
// TILES: vector.maskedload {{.*}} vector<32xbf16>
// TILES: vector.store {{.*}} memref<1x64x32xi32>, vector<16xi32>
// TILES-COUNT-4: tilezero
// TILES-COUNT-4: tdpbf16ps
// TILES-COUNT-4: tilestored64
// TILES: avx512.mask.reduce.ps.512
// TILES-COUNT-3: vector.fma
// TILES: avx512.mask.scalef.ps.512
// TILES: cvtne2ps2bf16.512
// TILES: vector.store {{.*}} memref<64x64xi32>, vector<16xi32>
// TILES-NOT: tilezero
// TILES-COUNT-4: tdpbf16ps
// TILES-COUNT-4: tilestored64
// TILES-NOT: sdx.attention

// PAIRS-LABEL: func private @short
// PAIRS-COUNT-16: dpbf16ps
// PAIRS: avx512.mask.scalef.ps.512
// PAIRS: vector.store {{.*}} memref<64x64xi32>, vector<16xi32>
// PAIRS-COUNT-16: dpbf16ps

// WIDE-LABEL: func private @short
// WIDE-NOT: i32>
// WIDE: vector.fma
// WIDE: math.exp
// WIDE: vector.fma

// Tasks suffice for some threads.
// PLAN-LABEL: func private @short
// PLAN-SAME: cpu.plan = #cpu.attention_plan<queries = 64, rows = 64, keys = 128>
func.func private @short(%q: memref<3x128x50xbf16>, %k: memref<3x333x50xbf16>, %v: memref<3x333x20xbf16>, %r: memref<3x128x20xf32>)
    attributes {sdx.kernel} {
  %tq = bufferization.to_tensor %q restrict : memref<3x128x50xbf16> to tensor<3x128x50xbf16>
  %tk = bufferization.to_tensor %k restrict : memref<3x333x50xbf16> to tensor<3x333x50xbf16>
  %tv = bufferization.to_tensor %v restrict : memref<3x333x20xbf16> to tensor<3x333x20xbf16>
  %e = tensor.empty() : tensor<3x128x20xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<3x128x50xbf16>, tensor<3x333x50xbf16>, tensor<3x333x20xbf16>) outs(%e : tensor<3x128x20xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x128x20xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x128x20xf32>, memref<3x128x20xf32>) -> ()
  return
}

// -----

// Operands of f32 are rounded as they are packed; few queries multiply them as
// they are.
// TILES-LABEL: func private @rounded
// TILES: scf.parallel
// TILES: vector.load %arg1{{.*}} vector<16xf32>
// TILES: vector.fma
// TILES: scf.parallel
// TILES: scf.parallel
// TILES: cvtne2ps2bf16.512
// TILES: tdpbf16ps
// TILES-NOT: sdx.attention

// PLAN-LABEL: func private @rounded
// PLAN-SAME: cpu.plan = #cpu.attention_plan<queries = 1024, rows = 64, keys = 128>
#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>
func.func private @rounded(%q: memref<3x?x64xf32>, %k: memref<3x?x64xf32>, %v: memref<3x?x64xf32>, %r: memref<3x?x64xf32>)
    attributes {sdx.kernel} {
  %c1 = arith.constant 1 : index
  %tq = bufferization.to_tensor %q restrict : memref<3x?x64xf32> to tensor<3x?x64xf32>
  %tk = bufferization.to_tensor %k restrict : memref<3x?x64xf32> to tensor<3x?x64xf32>
  %tv = bufferization.to_tensor %v restrict : memref<3x?x64xf32> to tensor<3x?x64xf32>
  %m = tensor.dim %tq, %c1 : tensor<3x?x64xf32>
  %e = tensor.empty(%m) : tensor<3x?x64xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r], sdx.rounded = bf16}
      ins(%tq, %tk, %tv : tensor<3x?x64xf32>, tensor<3x?x64xf32>, tensor<3x?x64xf32>) outs(%e : tensor<3x?x64xf32>) {
  ^bb0(%score: f32, %h: index, %m0: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x?x64xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x?x64xf32>, memref<3x?x64xf32>) -> ()
  return
}
