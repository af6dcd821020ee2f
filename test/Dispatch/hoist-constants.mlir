// RUN: onnx-opt %s --sdx-hoist-constants --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @init
// CHECK-SAME: %[[W:.*]]: tensor<64x40xf32> {sdx.constant = dense_resource<w> : tensor<64x40xf32>, sdx.source = {length = 10240 : i64, offset = 0 : i64, path = "w.data"}}
// CHECK-SAME: -> tensor<2x64x32xf32>
// CHECK: cpu.pack_rhs ins(%[[W]]
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32> {onnx.name = "x", sdx.input = 0 : i64}
// CHECK-SAME: %[[P:.*]]: tensor<2x64x32xf32> {sdx.persistent = 0 : i64}
// CHECK-SAME: %[[B:.*]]: tensor<40xf32> {sdx.constant = dense_resource<b> : tensor<40xf32>}
// CHECK-SAME: -> (tensor<?x40xf32> {onnx.name = "y"}, tensor<40xf32>)
// CHECK: linalg.fill
// CHECK: cpu.packed_matmul ins(%[[X]], %[[P]] :
func.func @main_graph(%x: tensor<?x64xf32> {onnx.name = "x"}) -> (tensor<?x40xf32> {onnx.name = "y"}, tensor<40xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %w = arith.constant {sdx.source = {path = "w.data", offset = 0 : i64, length = 10240 : i64}} dense_resource<w> : tensor<64x40xf32>
  %e = tensor.empty() : tensor<2x64x32xf32>
  %p = cpu.pack_rhs ins(%w : tensor<64x40xf32>) outs(%e : tensor<2x64x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x64x32xf32>
  %m = tensor.dim %x, %c0 : tensor<?x64xf32>
  %b = arith.constant dense_resource<b> : tensor<40xf32>
  %er = tensor.empty(%m) : tensor<?x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<?x40xf32>) -> tensor<?x40xf32>
  %r = cpu.packed_matmul ins(%x, %p : tensor<?x64xf32>, tensor<2x64x32xf32>) outs(%f : tensor<?x40xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x40xf32>
  return %r, %b : tensor<?x40xf32>, tensor<40xf32>
}
{-# dialect_resources: { builtin: { w: "0x0400000000000000", b: "0x0400000000000000" } } #-}

// -----

// What is made of a weight for two products, one of them in a loop, is made once.
// CHECK-LABEL: func.func @init
// CHECK-SAME: -> tensor<1x16x32xf32>
// CHECK: cpu.pack_rhs
// CHECK-NOT: cpu.pack_rhs
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[P:[^:]*]]: tensor<1x16x32xf32> {sdx.persistent = 0 : i64}
// CHECK-NOT: sdx.persistent
// CHECK: cpu.packed_matmul ins(%{{.*}}, %[[P]] :
// CHECK: cpu.packed_matmul ins(%{{.*}}, %[[P]] :
func.func @main_graph(%x: tensor<2x16xf32>) -> tensor<2x16xf32> {
  %w = arith.constant dense_resource<w> : tensor<16x16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<2x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<2x16xf32>) -> tensor<2x16xf32>
  %e = tensor.empty() : tensor<1x16x32xf32>
  %p = cpu.pack_rhs ins(%w : tensor<16x16xf32>) outs(%e : tensor<1x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x16x32xf32>
  %m = cpu.packed_matmul ins(%x, %p : tensor<2x16xf32>, tensor<1x16x32xf32>) outs(%f : tensor<2x16xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %m) -> tensor<2x16xf32> {
    %e1 = tensor.empty() : tensor<1x16x32xf32>
    %p1 = cpu.pack_rhs ins(%w : tensor<16x16xf32>) outs(%e1 : tensor<1x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x16x32xf32>
    %m1 = cpu.packed_matmul ins(%s, %p1 : tensor<2x16xf32>, tensor<1x16x32xf32>) outs(%f : tensor<2x16xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16xf32>
    scf.yield %m1 : tensor<2x16xf32>
  }
  return %r : tensor<2x16xf32>
}
{-# dialect_resources: { builtin: { w: "0x0400000000000000" } } #-}

// -----

// Small and splat constants stay; a view of a weight is made again; what a loop
// computes of constants only moves out.
// CHECK-LABEL: func.func @init
// CHECK: cpu.pack_rhs
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[V:[^:]*]]: tensor<32xf32> {sdx.constant
// CHECK-SAME: %[[P:[^:]*]]: tensor<1x16x32xf32> {sdx.persistent = 0 : i64}
// CHECK-DAG: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-DAG: tensor.expand_shape %[[V]]
// CHECK-DAG: linalg.fill {{.*}} -> tensor<100xf32>
// CHECK: scf.for
// CHECK-NOT: cpu.pack_rhs
// CHECK: cpu.packed_matmul
func.func @main_graph(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2xf32>, tensor<100xf32>) {
  %w = arith.constant dense_resource<w> : tensor<16x16xf32>
  %v = arith.constant dense_resource<v> : tensor<32xf32>
  %v2 = tensor.expand_shape %v [[0, 1]] output_shape [2, 16] : tensor<32xf32> into tensor<2x16xf32>
  %small = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %splat = arith.constant dense<3.0> : tensor<100xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %x) -> tensor<2x16xf32> {
    %e = tensor.empty() : tensor<1x16x32xf32>
    %p = cpu.pack_rhs ins(%w : tensor<16x16xf32>) outs(%e : tensor<1x16x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<1x16x32xf32>
    %er = tensor.empty() : tensor<2x16xf32>
    %f = linalg.fill ins(%zero : f32) outs(%er : tensor<2x16xf32>) -> tensor<2x16xf32>
    %m = cpu.packed_matmul ins(%s, %p : tensor<2x16xf32>, tensor<1x16x32xf32>) outs(%f : tensor<2x16xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x16xf32>
    scf.yield %m : tensor<2x16xf32>
  }
  return %r, %v2, %small, %splat : tensor<2x16xf32>, tensor<2x16xf32>, tensor<2xf32>, tensor<100xf32>
}
{-# dialect_resources: { builtin: { w: "0x0400000000000000", v: "0x0400000000000000" } } #-}

// -----

// expected-error@+1 {{has no function '@main_graph'}}
module {
  func.func @other() {
    return
  }
}

// -----

// Large results of sines are kept, and so is what is as large as the constant that a body reads; what grows from little
// is made again.

// CHECK-LABEL: func.func @init
// CHECK-SAME: %[[W:[^:]*]]: tensor<2000000xf32>
// CHECK-SAME: -> (tensor<2000000xf32>, tensor<2000000xf32>)
// CHECK: math.sin
// CHECK: tensor.extract %[[W]]
// CHECK-LABEL: func.func @main
// CHECK: linalg.index
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: linalg.yield
#line = affine_map<(i) -> (i)>
func.func @main_graph(%x: tensor<2000000xf32>) -> tensor<2000000xf32> {
  %w = arith.constant dense_resource<w> : tensor<2000000xf32>
  %e = tensor.empty() : tensor<2000000xf32>
  %sines = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%e : tensor<2000000xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %s = math.sin %f : f32
    linalg.yield %s : f32
  } -> tensor<2000000xf32>
  %reversed = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%e : tensor<2000000xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %last = arith.constant 1999999 : index
    %at = arith.subi %last, %i : index
    %v = tensor.extract %w[%at] : tensor<2000000xf32>
    linalg.yield %v : f32
  } -> tensor<2000000xf32>
  %numbers = linalg.generic {indexing_maps = [#line], iterator_types = ["parallel"]} outs(%e : tensor<2000000xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    linalg.yield %f : f32
  } -> tensor<2000000xf32>
  %sum = linalg.generic {indexing_maps = [#line, #line, #line, #line, #line], iterator_types = ["parallel"]}
      ins(%x, %sines, %reversed, %numbers : tensor<2000000xf32>, tensor<2000000xf32>, tensor<2000000xf32>, tensor<2000000xf32>)
      outs(%e : tensor<2000000xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %p = arith.addf %a, %b : f32
    %q = arith.addf %c, %d : f32
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<2000000xf32>
  return %sum : tensor<2000000xf32>
}
{-# dialect_resources: { builtin: { w: "0x0400000000000000" } } #-}

// -----

// A matrix of numbers that is a result is made in the result's own buffer at each run; kept, it would be copied.

// CHECK-LABEL: func.func @init()
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @main()
// CHECK:         linalg.generic
func.func @main_graph() -> tensor<32x32xf32> {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x32xf32>
  %eye = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<32x32xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %on = arith.cmpi eq, %i, %j : index
    %v = arith.select %on, %one, %zero : f32
    linalg.yield %v : f32
  } -> tensor<32x32xf32>
  return %eye : tensor<32x32xf32>
}
