// RUN: onnx-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @products
// CHECK: sdx.matmul ins(%{{.*}}, %{{.*}} : tensor<?x768xf32>, tensor<768x40xf32>) outs(%{{.*}} : tensor<?x40xf32>) -> tensor<?x40xf32>
// CHECK: sdx.matmul {{.*}} outs(%{{.*}} : tensor<4x?x40xf32>) {transposed} -> tensor<4x?x40xf32>
// CHECK: sdx.matmul ins(%{{.*}}, %{{.*}} : tensor<4x?x768xf32>, tensor<768x40xf32>)
// CHECK: sdx.matmul {{.*}} outs(%{{.*}} : memref<8x40xf32>){{$}}
func.func @products(%a: tensor<?x768xf32>, %b: tensor<768x40xf32>, %c: tensor<?x40xf32>,
                    %a3: tensor<4x?x768xf32>, %b3: tensor<4x40x768xf32>, %c3: tensor<4x?x40xf32>,
                    %am: memref<8x768xf32>, %bm: memref<768x40xf32>, %cm: memref<8x40xf32>)
    -> (tensor<?x40xf32>, tensor<4x?x40xf32>) {
  %0 = sdx.matmul ins(%a, %b : tensor<?x768xf32>, tensor<768x40xf32>) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  %1 = sdx.matmul ins(%a3, %b3 : tensor<4x?x768xf32>, tensor<4x40x768xf32>) outs(%c3 : tensor<4x?x40xf32>) {transposed} -> tensor<4x?x40xf32>
  %2 = sdx.matmul ins(%a3, %b : tensor<4x?x768xf32>, tensor<768x40xf32>) outs(%1 : tensor<4x?x40xf32>) -> tensor<4x?x40xf32>
  sdx.matmul ins(%am, %bm : memref<8x768xf32>, memref<768x40xf32>) outs(%cm : memref<8x40xf32>)
  return %0, %2 : tensor<?x40xf32>, tensor<4x?x40xf32>
}

// Narrow elements are extended to those of the sum, of two types as well.
// CHECK-LABEL: @extending_products
// CHECK: sdx.matmul {{.*}} : tensor<?x768xi8>, tensor<768x40xi8>) {{.*}} {lhs_unsigned} -> tensor<?x40xi32>
// CHECK: sdx.matmul {{.*}} {lhs_unsigned, rhs_unsigned, transposed}
// CHECK: sdx.matmul {{.*}} : tensor<?x768xbf16>, tensor<768x40xf32>) outs(%{{.*}} : tensor<?x40xf32>)
func.func @extending_products(%a: tensor<?x768xi8>, %b: tensor<768x40xi8>, %t: tensor<40x768xi16>, %c: tensor<?x40xi32>,
                              %d: tensor<?x768xbf16>, %e: tensor<768x40xf32>, %f: tensor<?x40xf32>) -> (tensor<?x40xi32>, tensor<?x40xf32>) {
  %0 = sdx.matmul ins(%a, %b : tensor<?x768xi8>, tensor<768x40xi8>) outs(%c : tensor<?x40xi32>) {lhs_unsigned} -> tensor<?x40xi32>
  %1 = sdx.matmul ins(%a, %t : tensor<?x768xi8>, tensor<40x768xi16>) outs(%0 : tensor<?x40xi32>) {lhs_unsigned, rhs_unsigned, transposed} -> tensor<?x40xi32>
  %2 = sdx.matmul ins(%d, %e : tensor<?x768xbf16>, tensor<768x40xf32>) outs(%f : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %1, %2 : tensor<?x40xi32>, tensor<?x40xf32>
}

// Zero points are left out, floats, or integers in bytes.
// CHECK-LABEL: @dequant_products
// CHECK: sdx.dequant_matmul ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>) outs(%{{.*}} : tensor<?x40xf32>) {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
// CHECK: sdx.dequant_matmul ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>, tensor<40x3xf64>)
// CHECK: sdx.dequant_matmul ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>, tensor<40x2xi8>)
// CHECK: sdx.dequant_matmul {{.*}} outs(%{{.*}} : memref<8x40xf32>) {bits = 8 : i64, block = 12 : i64}{{$}}
func.func @dequant_products(%a: tensor<?x80xf32>, %w: tensor<40x3x16xi8>, %s: tensor<40x3xf16>, %f: tensor<40x3xf64>, %i: tensor<40x2xi8>, %c: tensor<?x40xf32>,
                            %am: memref<8x12xf32>, %wm: memref<40x1x12xi8>, %sm: memref<40x1xf32>, %cm: memref<8x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  %1 = sdx.dequant_matmul ins(%a, %w, %s, %f : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>, tensor<40x3xf64>) outs(%0 : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  %2 = sdx.dequant_matmul ins(%a, %w, %s, %i : tensor<?x80xf32>, tensor<40x3x16xi8>, tensor<40x3xf16>, tensor<40x2xi8>) outs(%1 : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  sdx.dequant_matmul ins(%am, %wm, %sm : memref<8x12xf32>, memref<40x1x12xi8>, memref<40x1xf32>) outs(%cm : memref<8x40xf32>)
      {bits = 8 : i64, block = 12 : i64}
  return %2 : tensor<?x40xf32>
}

// CHECK-LABEL: @conv
// CHECK: sdx.conv ins(%{{.*}}, %{{.*}} : tensor<?x64x56x56xf32>, tensor<32x16x3x3xf32>) outs(%{{.*}} : tensor<?x32x28x28xf32>)
// CHECK-SAME: {dilations = array<i64: 1, 1>, exact, group = 4 : i64, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 0, 1>, strides = array<i64: 2, 2>} -> tensor<?x32x28x28xf32>
func.func @conv(%x: tensor<?x64x56x56xf32>, %w: tensor<32x16x3x3xf32>, %e: tensor<?x32x28x28xf32>) -> tensor<?x32x28x28xf32> {
  %0 = sdx.conv ins(%x, %w : tensor<?x64x56x56xf32>, tensor<32x16x3x3xf32>) outs(%e : tensor<?x32x28x28xf32>)
      {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 0, 1>,
       group = 4 : i64, exact} -> tensor<?x32x28x28xf32>
  return %0 : tensor<?x32x28x28xf32>
}

// Of one and three dimensions, of open sizes, of nothing, and on buffers.
// CHECK-LABEL: @convs
// CHECK: sdx.conv {{.*}} : tensor<?x?x?xi8>, tensor<?x?x3xi8>) outs(%{{.*}} : tensor<?x?x?xi32>)
// CHECK: sdx.conv {{.*}} -> tensor<1x6x0x6x6xf64>
// CHECK: sdx.conv {{.*}} outs(%{{.*}} : memref<1x6x6xf32>) {dilations = array<i64: 1>, group = 1 : i64, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, strides = array<i64: 1>}{{$}}
func.func @convs(%x: tensor<?x?x?xi8>, %w: tensor<?x?x3xi8>, %e: tensor<?x?x?xi32>,
                 %y: tensor<1x4x2x8x8xf64>, %v: tensor<6x4x3x3x3xf64>, %f: tensor<1x6x0x6x6xf64>,
                 %xm: memref<1x4x8xf32>, %wm: memref<6x4x3xf32>, %em: memref<1x6x6xf32>) -> (tensor<?x?x?xi32>, tensor<1x6x0x6x6xf64>) {
  %0 = sdx.conv ins(%x, %w : tensor<?x?x?xi8>, tensor<?x?x3xi8>) outs(%e : tensor<?x?x?xi32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, group = 2 : i64} -> tensor<?x?x?xi32>
  %1 = sdx.conv ins(%y, %v : tensor<1x4x2x8x8xf64>, tensor<6x4x3x3x3xf64>) outs(%f : tensor<1x6x0x6x6xf64>)
      {strides = array<i64: 1, 1, 1>, dilations = array<i64: 1, 1, 1>, pads_begin = array<i64: 0, 0, 0>, pads_end = array<i64: 0, 0, 0>,
       group = 1 : i64} -> tensor<1x6x0x6x6xf64>
  sdx.conv ins(%xm, %wm : memref<1x4x8xf32>, memref<6x4x3xf32>) outs(%em : memref<1x6x6xf32>)
      {strides = array<i64: 1>, dilations = array<i64: 1>, pads_begin = array<i64: 0>, pads_end = array<i64: 0>, group = 1 : i64}
  return %0, %1 : tensor<?x?x?xi32>, tensor<1x6x0x6x6xf64>
}

// CHECK-LABEL: @average_pool
// CHECK: sdx.average_pool ins(%{{.*}} : tensor<?x64x?x35xf32>) outs(%{{.*}} : tensor<?x64x?x35xf32>)
// CHECK-SAME: count_include_pad
func.func @average_pool(%x: tensor<?x64x?x35xf32>, %e: tensor<?x64x?x35xf32>) -> tensor<?x64x?x35xf32> {
  %0 = sdx.average_pool ins(%x : tensor<?x64x?x35xf32>) outs(%e : tensor<?x64x?x35xf32>)
      {count_include_pad, kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>} -> tensor<?x64x?x35xf32>
  return %0 : tensor<?x64x?x35xf32>
}

// CHECK-LABEL: @max_pool
// CHECK: sdx.max_pool ins(%{{.*}} : tensor<?x64x112x112xf32>) outs(%{{.*}} : tensor<?x64x56x56xf32>)
func.func @max_pool(%x: tensor<?x64x112x112xf32>, %e: tensor<?x64x56x56xf32>) -> tensor<?x64x56x56xf32> {
  %0 = sdx.max_pool ins(%x : tensor<?x64x112x112xf32>) outs(%e : tensor<?x64x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_begin = array<i64: 1, 1>} -> tensor<?x64x56x56xf32>
  return %0 : tensor<?x64x56x56xf32>
}

func.func private @kernel(memref<?x8xf32>, index, memref<?x8xf32>) attributes {sdx.kernel}

// CHECK-LABEL: @host
// CHECK: sdx.call @kernel(%{{.*}}, %{{.*}} : tensor<?x8xf32>, index) outs(%{{.*}} : tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: sdx.call @kernel(%{{.*}}, %{{.*}} : tensor<?x8xf32>, index) outs(%{{.*}} : tensor<?x8xf32>) {updates = array<i64: 0>} -> tensor<?x8xf32>
// CHECK: sdx.call @kernel(%{{.*}}, %{{.*}} : memref<?x8xf32>, index) outs(%{{.*}} : memref<?x8xf32>)
// CHECK: sdx.check %{{.*}}, "sizes differ"
// CHECK: sdx.check %{{.*}}, "sizes {0} and {1} differ"(%[[I:.*]], %[[I]])
// CHECK: sdx.check %{{.*}}, "no {0}"(%{{.*}}) as unsupported
// CHECK: sdx.output_buffer 0(%{{.*}}) : memref<?x8xf32>
// CHECK: sdx.arena : memref<1024xi8>
// CHECK: sdx.thread_count : index
func.func @host(%t: tensor<?x8xf32>, %m: memref<?x8xf32>, %n: index, %c: i1) -> tensor<?x8xf32> {
  %0 = sdx.call @kernel(%t, %n : tensor<?x8xf32>, index) outs(%t : tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = sdx.call @kernel(%t, %n : tensor<?x8xf32>, index) outs(%0 : tensor<?x8xf32>) {updates = array<i64: 0>} -> tensor<?x8xf32>
  sdx.call @kernel(%m, %n : memref<?x8xf32>, index) outs(%m : memref<?x8xf32>)
  sdx.check %c, "sizes differ"
  sdx.check %c, "sizes {0} and {1} differ" (%n, %n)
  sdx.check %c, "no {0}" (%n) as unsupported
  %1 = sdx.output_buffer 0(%n) : memref<?x8xf32>
  %2 = sdx.arena : memref<1024xi8>
  %3 = sdx.thread_count : index
  return %0 : tensor<?x8xf32>
}

// CHECK-LABEL: @runtime
// CHECK: sdx.runtime_call "sdx_rt_list_length"(%{{.*}} : tensor<i64>) outs(%{{.*}} : tensor<i64>) -> tensor<i64>
// CHECK: sdx.runtime_call stateful "sdx_rt_list_erase"(%{{.*}}, %{{.*}}, %{{.*}} : memref<i64>, index, i64) outs(%{{.*}} : memref<i64>)
func.func @runtime(%t: tensor<i64>, %m: memref<i64>, %n: index, %i: i64) -> tensor<i64> {
  %0 = sdx.runtime_call "sdx_rt_list_length" (%t : tensor<i64>) outs(%t : tensor<i64>) -> tensor<i64>
  sdx.runtime_call stateful "sdx_rt_list_erase" (%m, %n, %i : memref<i64>, index, i64) outs(%m : memref<i64>)
  return %0 : tensor<i64>
}

// A loop of one iteration stays a loop.
// CHECK-LABEL: @tasks
// CHECK: scf.forall (%{{.*}}) in (1) shared_outs
// CHECK: mapping = [#sdx.task]
func.func @tasks(%t: tensor<1x8xf32>, %x: f32) -> tensor<1x8xf32> {
  %c0 = arith.constant 0 : index
  %0 = scf.forall (%i) in (1) shared_outs(%o = %t) -> (tensor<1x8xf32>) {
    %row = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<8xf32>
    %next = tensor.insert %x into %row[%c0] : tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %next into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1x8xf32>
    }
  } {mapping = [#sdx.task]}
  return %0 : tensor<1x8xf32>
}

// CHECK-LABEL: @observations
// CHECK: sdx.observe %{{.*}} site 3 <range|moments|bits> : tensor<?x8xf32>
// CHECK: sdx.observe %{{.*}} site 4 <channels> axis 1 : tensor<?x8xf32>
// CHECK: sdx.observe %{{.*}} site 5 <gram> : tensor<8x8xf64>
// CHECK: sdx.observe %{{.*}}[%{{.*}}, %{{.*}}] site 3 <range> : memref<6x32xbf16>
func.func @observations(%t: tensor<?x8xf32>, %g: tensor<8x8xf64>, %m: memref<6x32xbf16>, %n: index) {
  sdx.observe %t site 3 <range|moments|bits> : tensor<?x8xf32>
  sdx.observe %t site 4 <channels> axis 1 : tensor<?x8xf32>
  sdx.observe %g site 5 <gram> : tensor<8x8xf64>
  sdx.observe %m[%n, %n] site 3 <range> : memref<6x32xbf16>
  return
}
