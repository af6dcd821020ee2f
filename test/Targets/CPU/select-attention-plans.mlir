// RUN: onnx-opt %s --target=haswell --cpu-select-plans -split-input-file -verify-diagnostics | FileCheck %s

// Plans of attention: what is not asked for is chosen, what does not fit is
// refused.

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// A body that may trap where there are no keys is computed for those that there
// are, by plain loops.
// CHECK-LABEL: func private @trap
// CHECK-SAME: cpu.plan = #cpu.loops, sdx.kernel, sdx.plan_reason = "scores that are not changed on vectors"
func.func private @trap(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>) attributes {sdx.kernel} {
  %c9 = arith.constant 9 : index
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    %0 = arith.subi %c9, %n : index
    %1 = arith.divui %m, %0 : index
    %2 = arith.index_cast %1 : index to i32
    %3 = arith.sitofp %2 : i32 to f32
    %4 = arith.mulf %score, %3 : f32
    sdx.yield %4 : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}
// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

// CHECK-LABEL: func private @given
// CHECK-SAME: cpu.plan = #cpu.attention_plan<queries = 12, rows = 6, keys = 32>
func.func private @given(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>)
    attributes {sdx.kernel, cpu.plan = #cpu.attention_plan<queries = 12, rows = 6, keys = 32>} {
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

func.func private @rows(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>)
    attributes {sdx.kernel, cpu.plan = #cpu.attention_plan<queries = 6, rows = 2, keys = 32>} {
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  // expected-error@+1 {{the plan #cpu.attention_plan<queries = 6, rows = 2, keys = 32> of kernel 'rows' does not fit: 'rows' must be a multiple of 6 up to 4096}}
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

func.func private @queries(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>)
    attributes {sdx.kernel, cpu.plan = #cpu.attention_plan<queries = 15, rows = 6, keys = 32>} {
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  // expected-error@+1 {{the plan #cpu.attention_plan<queries = 15, rows = 6, keys = 32> of kernel 'queries' does not fit: 'queries' must be a multiple of 'rows' up to 4096}}
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

func.func private @keys(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>)
    attributes {sdx.kernel, cpu.plan = #cpu.attention_plan<queries = 6, rows = 6, keys = 24>} {
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  // expected-error@+1 {{the plan #cpu.attention_plan<queries = 6, rows = 6, keys = 24> of kernel 'keys' does not fit: 'keys' must be a multiple of 16 up to 4096}}
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}

// -----

#q = affine_map<(h, m, n, d, e) -> (h, m, d)>
#k = affine_map<(h, m, n, d, e) -> (h, n, d)>
#v = affine_map<(h, m, n, d, e) -> (h, n, e)>
#r = affine_map<(h, m, n, d, e) -> (h, m, e)>

func.func private @kind(%q: memref<3x9x16xf32>, %r: memref<3x9x16xf32>)
    attributes {sdx.kernel, cpu.plan = #cpu.pool_plan<columns = 1, width = 4, rows = 1>} {
  %t = bufferization.to_tensor %q restrict : memref<3x9x16xf32> to tensor<3x9x16xf32>
  %e = tensor.empty() : tensor<3x9x16xf32>
  // expected-error@+1 {{the plan #cpu.pool_plan<columns = 1, width = 4, rows = 1> of kernel 'kind' does not fit: it is for another kind of kernel}}
  %a = sdx.attention {indexing_maps = [#q, #k, #v, #r]}
      ins(%t, %t, %t : tensor<3x9x16xf32>, tensor<3x9x16xf32>, tensor<3x9x16xf32>) outs(%e : tensor<3x9x16xf32>) {
  ^bb0(%score: f32, %h: index, %m: index, %n: index):
    sdx.yield %score : f32
  } -> tensor<3x9x16xf32>
  bufferization.materialize_in_destination %a in restrict writable %r : (tensor<3x9x16xf32>, memref<3x9x16xf32>) -> ()
  return
}
