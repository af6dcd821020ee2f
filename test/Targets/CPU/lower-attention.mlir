// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(cpu-lower-attention))' | FileCheck %s
// RUN: onnx-opt %s --target=haswell --cpu-lower-attention -split-input-file | FileCheck %s --check-prefix=AVX2
// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(cpu-select-plans))' | FileCheck %s --check-prefix=PLAN

!tensor = tensor<12x256x64xf32>
!memory = memref<12x256x64xf32>
#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// A task copies its queries, and for each block of keys packs these and values;
// scores of eight queries and 32 keys are summed up in registers.
// CHECK-LABEL: func private @scaled
// CHECK: scf.parallel
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<{{.*}}xi8>
// CHECK: scf.for %{{.*}} = %{{.*}} to %c256{{.*}} step %c128
// CHECK: vector.shuffle
// CHECK: vector.store {{.*}} memref<4x64x32xf32>
// CHECK: vector.store {{.*}} memref<2x128x32xf32>
// CHECK: iter_args({{.*}}) -> ({{(vector<16xf32>, ){15}vector<16xf32>}})
// CHECK-COUNT-16: vector.fma
// CHECK-COUNT-16: vector.store {{.*}} memref<64x128xf32>
// The factor is part of the difference; the body is left out.
// CHECK-NOT: arith.divf
// CHECK: arith.subf
// CHECK: arith.mulf
// CHECK: math.exp {{.*}} : vector<16xf32>
// CHECK: iter_args({{.*}}) -> ({{(vector<16xf32>, ){15}vector<16xf32>}})
// CHECK-COUNT-16: vector.fma
// CHECK: arith.divf
// CHECK: vector.store {{.*}}, %arg3
// CHECK-NOT: sdx.attention

// Of 16 registers 12 hold sums.
// AVX2-LABEL: func private @scaled
// AVX2: iter_args({{.*}}) -> ({{(vector<8xf32>, ){11}vector<8xf32>}})
// AVX2-COUNT-12: vector.fma
// AVX2-NOT: vector.fma
// AVX2: iter_args({{.*}}) -> ({{(vector<8xf32>, ){11}vector<8xf32>}})
// AVX2-COUNT-12: vector.fma
// AVX2-NOT: vector.fma
// AVX2-LABEL: func private @causal

// PLAN-LABEL: func private @scaled
// PLAN-SAME: cpu.plan = #cpu.attention_plan<queries = 128, rows = 64, keys = 128>
func.func private @scaled(%q: !memory, %k: !memory, %v: !memory, %r: !memory) attributes {sdx.kernel} {
  %c8 = arith.constant 8.0 : f32
  %tq = bufferization.to_tensor %q restrict : !memory to !tensor
  %tk = bufferization.to_tensor %k restrict : !memory to !tensor
  %tv = bufferization.to_tensor %v restrict : !memory to !tensor
  %e = tensor.empty() : !tensor
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : !tensor, !tensor, !tensor) outs(%e : !tensor) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    %0 = arith.divf %score, %c8 : f32
    sdx.yield %0 : f32
  } -> !tensor
  bufferization.materialize_in_destination %a in restrict writable %r : (!tensor, !memory) -> ()
  return
}

// -----

!queries = tensor<2x4x?x32xf32>
!shared = tensor<2x?x32xf32>
#q = affine_map<(k, g, m, n, d, e) -> (k, g, m, d)>
#k = affine_map<(k, g, m, n, d, e) -> (k, n, d)>
#v = affine_map<(k, g, m, n, d, e) -> (k, n, e)>
#r = affine_map<(k, g, m, n, d, e) -> (k, m, g, e)>

// Heads that share keys are queries of one task. What follows a query is not
// visited, and only blocks that some query sees in part change scores. Few
// queries read keys and values as they lie, in parts if there are threads.
// CHECK-LABEL: func private @causal
// CHECK: sdx.thread_count
// CHECK: scf.if
// CHECK: memref.alloc(%{{.*}}) {{.*}} : memref<?x?x8x64xf32>
// CHECK: scf.parallel
// CHECK: vector.load %arg1{{.*}} memref<2x?x32xf32>, vector<16xf32>
// CHECK: scf.parallel
// CHECK: } else {
// CHECK: scf.parallel
// CHECK: memref<4x4xindex>
// CHECK: scf.if
// CHECK: vector.step
// CHECK: arith.cmpi slt, {{.*}} : vector<16xindex>
// CHECK-NOT: sdx.attention

// PLAN-LABEL: func private @causal
// PLAN-SAME: cpu.plan = #cpu.attention_plan<queries = 256, rows = 64, keys = 128>
func.func private @causal(%q: memref<2x4x?x32xf32>, %k: memref<2x?x32xf32>, %v: memref<2x?x32xf32>, %past: index,
                          %r: memref<2x?x4x32xf32>) attributes {sdx.kernel} {
  %low = arith.constant 0xFF800000 : f32
  %c2 = arith.constant 2 : index
  %tq = bufferization.to_tensor %q restrict : memref<2x4x?x32xf32> to !queries
  %tk = bufferization.to_tensor %k restrict : memref<2x?x32xf32> to !shared
  %tv = bufferization.to_tensor %v restrict : memref<2x?x32xf32> to !shared
  %m = tensor.dim %tq, %c2 : !queries
  %e = tensor.empty(%m) : tensor<2x?x4x32xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : !queries, !shared, !shared) outs(%e : tensor<2x?x4x32xf32>) {
  ^bb0(%score: f32, %i: index, %g: index, %j: index, %n: index):
    %last = arith.addi %j, %past : index
    %after = arith.cmpi slt, %last, %n : index
    %0 = arith.select %after, %low, %score : f32
    sdx.yield %0 : f32
  } -> tensor<2x?x4x32xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<2x?x4x32xf32>, memref<2x?x4x32xf32>) -> ()
  return
}

// -----

#q = affine_map<(h, n, d, e) -> (h, 0, d)>
#k = affine_map<(h, n, d, e) -> (h, n, d)>
#v = affine_map<(h, n, d, e) -> (h, n, e)>
#x = affine_map<(h, n, d, e) -> (n)>
#r = affine_map<(h, n, d, e) -> (h, 0, e)>
#id = affine_map<(h, m, e) -> (h, m, e)>

// One query: nothing is packed, shorter floats are widened as they are read, and
// the last keys are read under a mask. What follows is computed with the sums.
// CHECK-LABEL: func private @one
// CHECK-NOT: sdx.thread_count
// CHECK: vector.load %arg1{{.*}} vector<16xf16>
// CHECK: arith.extf {{.*}} vector<16xf16> to vector<16xf32>
// CHECK: vector.maskedload %arg3{{.*}} vector<16xf32>
// CHECK: arith.select {{.*}} vector<16xi1>, vector<16xf32>
// CHECK: vector.load %arg2{{.*}} vector<16xf16>
// CHECK: arith.truncf {{.*}} vector<16xf32> to vector<16xf16>
// CHECK: arith.negf {{.*}} vector<16xf16>
// CHECK: vector.maskedstore %arg4
// CHECK-NOT: sdx.attention

// PLAN-LABEL: func private @one
// PLAN-SAME: cpu.plan = #cpu.attention_plan<queries = 8, rows = 8, keys = 128>
func.func private @one(%q: memref<3x1x40xf16>, %k: memref<3x130x40xf16>, %v: memref<3x130x24xf16>, %x: memref<130xf32>,
                       %r: memref<3x1x24xf16>) attributes {sdx.kernel} {
  %tq = bufferization.to_tensor %q restrict : memref<3x1x40xf16> to tensor<3x1x40xf16>
  %tk = bufferization.to_tensor %k restrict : memref<3x130x40xf16> to tensor<3x130x40xf16>
  %tv = bufferization.to_tensor %v restrict : memref<3x130x24xf16> to tensor<3x130x24xf16>
  %tx = bufferization.to_tensor %x restrict : memref<130xf32> to tensor<130xf32>
  %e = tensor.empty() : tensor<3x1x24xf16>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #x, #r]}
      ins(%tq, %tk, %tv, %tx : tensor<3x1x40xf16>, tensor<3x130x40xf16>, tensor<3x130x24xf16>, tensor<130xf32>)
      outs(%e : tensor<3x1x24xf16>) {
  ^bb0(%score: f32, %added: f32, %h: index, %n: index):
    %0 = arith.addf %score, %added : f32
    sdx.yield %0 : f32
  } -> tensor<3x1x24xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<3x1x24xf16>) outs(%e : tensor<3x1x24xf16>) {
  ^bb0(%i: f16, %o: f16):
    %0 = arith.negf %i : f16
    linalg.yield %0 : f16
  } -> tensor<3x1x24xf16>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<3x1x24xf16>, memref<3x1x24xf16>) -> ()
  return
}

// -----

!keys = tensor<8x4096x128xi8>
#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// Several queries read bytes as floats, which 16 keys and 32 values at a time
// become.
// CHECK-LABEL: func private @bytes
// CHECK: vector.load %arg1{{.*}} memref<8x4096x128xi8>, vector<16xi8>
// CHECK: arith.sitofp {{.*}} : vector<16xi8> to vector<16xf32>
// CHECK: vector.store {{.*}} memref<32x128xf32>
// CHECK: vector.load {{.*}} memref<32x128xf32>
// CHECK: vector.fma
// CHECK: math.exp
// CHECK: vector.load %arg2{{.*}} memref<8x4096x128xi8>, vector<16xi8>
// CHECK: arith.sitofp
// CHECK: vector.store {{.*}} memref<32x128xf32>
// CHECK: vector.fma

// One reads them as they lie.
// CHECK-LABEL: func private @bytes_of_one
// CHECK-NOT: memref<32x128xf32>
// CHECK: arith.sitofp
// CHECK: vector.fma
// CHECK-NOT: memref<32x128xf32>
func.func private @bytes(%q: memref<8x4x128xf32>, %k: memref<8x4096x128xi8>, %v: memref<8x4096x128xi8>, %r: memref<8x4x128xf32>) attributes {sdx.kernel} {
  %tq = bufferization.to_tensor %q restrict : memref<8x4x128xf32> to tensor<8x4x128xf32>
  %tk = bufferization.to_tensor %k restrict : memref<8x4096x128xi8> to !keys
  %tv = bufferization.to_tensor %v restrict : memref<8x4096x128xi8> to !keys
  %e = tensor.empty() : tensor<8x4x128xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<8x4x128xf32>, !keys, !keys) outs(%e : tensor<8x4x128xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<8x4x128xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<8x4x128xf32>, memref<8x4x128xf32>) -> ()
  return
}

func.func private @bytes_of_one(%q: memref<8x1x128xf32>, %k: memref<8x4096x128xi8>, %v: memref<8x4096x128xi8>, %r: memref<8x1x128xf32>) attributes {sdx.kernel} {
  %tq = bufferization.to_tensor %q restrict : memref<8x1x128xf32> to tensor<8x1x128xf32>
  %tk = bufferization.to_tensor %k restrict : memref<8x4096x128xi8> to !keys
  %tv = bufferization.to_tensor %v restrict : memref<8x4096x128xi8> to !keys
  %e = tensor.empty() : tensor<8x1x128xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%tq, %tk, %tv : tensor<8x1x128xf32>, !keys, !keys) outs(%e : tensor<8x1x128xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<8x1x128xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<8x1x128xf32>, memref<8x1x128xf32>) -> ()
  return
}
