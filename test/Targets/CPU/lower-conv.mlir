// RUN: onnx-opt %s -split-input-file -cpu-lower-conv -canonicalize -cse | FileCheck %s

#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (c)>

// A 3x3 convolution of equal sizes: each tap is a shift of the whole panel, its
// edges masked. The panel is packed once and used for all channels, the last one
// a vector of positions at a time.
// CHECK-LABEL: func.func private @same
// CHECK-SAME: (%[[X:.*]]: memref<?x64x?x?xf32>, %[[W:.*]]: memref<1x8x576x8xf32>, %[[BIAS:.*]]: memref<64xf32>, %[[OUT:.*]]: memref<?x64x?x?xf32>)
// CHECK-NOT: tensor
// CHECK: scf.parallel
// CHECK: %[[PANEL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<576x48xf32>
// CHECK: scf.if
// CHECK: scf.for %{{.*}} step %c16
// CHECK: vector.maskedload {{.*}} : memref<?x64x?xf32>
// CHECK: vector.store {{.*}}, %[[PANEL]]
// CHECK: %{{.*}}:8 = scf.for
// CHECK: vector.maskedstore
// CHECK: } else {
// CHECK: %{{.*}}:24 = scf.if
// CHECK: %{{.*}}:24 = scf.for %[[K:.*]] = %c0 to %c576
// CHECK: vector.load %[[PANEL]][%[[K]], %c0]
// CHECK: memref.load %[[W]]
// CHECK: vector.fma
// CHECK: } else {
// CHECK: vector.maskedload {{.*}} : memref<?x64x?xf32>
// CHECK: vector.store {{.*}}, %[[PANEL]]
// CHECK: memref.load %[[BIAS]]
// CHECK-NOT: vector.maskedstore
// CHECK: memref.dealloc %[[PANEL]]
func.func private @same(%x: memref<?x64x?x?xf32>, %w: memref<1x8x576x8xf32>,
    %bias: memref<64xf32>, %out: memref<?x64x?x?xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %tx = bufferization.to_tensor %x restrict : memref<?x64x?x?xf32> to tensor<?x64x?x?xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x8x576x8xf32> to tensor<1x8x576x8xf32>
  %tbias = bufferization.to_tensor %bias restrict : memref<64xf32> to tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %tx, %c0 : tensor<?x64x?x?xf32>
  %h = tensor.dim %tx, %c2 : tensor<?x64x?x?xf32>
  %v = tensor.dim %tx, %c3 : tensor<?x64x?x?xf32>
  %e = tensor.empty(%n, %h, %v) : tensor<?x64x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x64x?x?xf32>) -> tensor<?x64x?x?xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<?x64x?x?xf32>, tensor<1x8x576x8xf32>)
      outs(%f : tensor<?x64x?x?xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<?x64x?x?xf32>
  %r = linalg.generic {indexing_maps = [#id, #channel, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m, %tbias : tensor<?x64x?x?xf32>, tensor<64xf32>) outs(%e : tensor<?x64x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x64x?x?xf32>
  bufferization.materialize_in_destination %r in restrict writable %out
      : (tensor<?x64x?x?xf32>, memref<?x64x?x?xf32>) -> ()
  return
}

// -----

// A depthwise convolution reads its input in place, and asks for the same rows
// of the next channel.
// CHECK-LABEL: func.func private @depthwise
// CHECK-SAME: (%[[X:.*]]: memref<1x32x112x112xf32>,
// CHECK-NOT: memref.alloc
// CHECK: scf.parallel
// CHECK: vector.{{(masked)?}}load {{.*}}memref<1x32x112x112xf32>
// CHECK: vector.fma
// CHECK: scf.for %[[ROW:.*]] = %c1 to %c109 step %c4
// CHECK-COUNT-4: memref.prefetch %[[X]][%c0, %{{.*}}], read, locality<2>, data
// CHECK-NOT: memref.alloc
func.func private @depthwise(%x: memref<1x32x112x112xf32>, %w: memref<32x1x9x8xf32>,
    %out: memref<1x32x112x112xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x112x112xf32> to tensor<1x32x112x112xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1x9x8xf32> to tensor<32x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x112x112xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x112x112xf32>) -> tensor<1x32x112x112xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x112x112xf32>, tensor<32x1x9x8xf32>)
      outs(%f : tensor<1x32x112x112xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 32 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x112x112xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x112x112xf32>, memref<1x32x112x112xf32>) -> ()
  return
}

// -----

// Of three taps of stride 2 the third is the first, moved by a lane; what comes
// in is one element, or zero behind the row's last.
// CHECK-LABEL: func.func private @depthwise_strided
// CHECK-SAME: (%[[X:.*]]: memref<1x32x112x112xf32>,
// CHECK: scf.parallel
// CHECK: %[[INSIDE:.*]] = vector.broadcast {{.*}} : i1 to vector<16xi1>
// CHECK: %[[BOTH:.*]] = vector.maskedload %[[X]]{{.*}} into vector<32xf32>
// CHECK: %[[EVEN:.*]] = vector.shuffle %[[BOTH]], %[[BOTH]] [0, 2, 4
// CHECK: %[[NEXT:.*]] = memref.load %[[X]]
// CHECK: %[[ALL:.*]] = vector.broadcast %[[NEXT]]
// CHECK: %[[SOME:.*]] = arith.select %[[INSIDE]], %[[ALL]]
// CHECK: vector.shuffle %[[EVEN]], %[[SOME]] [1, 2, 3
func.func private @depthwise_strided(%x: memref<1x32x112x112xf32>, %w: memref<32x1x9x8xf32>,
    %out: memref<1x32x56x56xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x112x112xf32> to tensor<1x32x112x112xf32>
  %tw = bufferization.to_tensor %w restrict : memref<32x1x9x8xf32> to tensor<32x1x9x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x112x112xf32>, tensor<32x1x9x8xf32>)
      outs(%f : tensor<1x32x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 32 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x32x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x56x56xf32>, memref<1x32x56x56xf32>) -> ()
  return
}

// -----

// Winograd's algorithm: transformed inputs, 36 products, transformed outputs.
// Few tiles: one parallel loop for the first, one for the rest.
// CHECK-LABEL: func.func private @winograd
// Both transforms have a loop for columns, and then one for rows, in the inputs'
// case over the six values of each that the first has made.
// CHECK: %[[INPUTS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x1x36x33x16xf32>
// CHECK: scf.parallel
// CHECK: %[[LINES:.*]] = memref.alloc() {{.*}} : memref<6x4x32xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK-COUNT-6: vector.maskedload
// CHECK: vector.store {{.*}}, %[[LINES]]
// CHECK: scf.for %{{.*}} = %c0 to %c6
// CHECK: vector.load %[[LINES]]
// CHECK: vector.shuffle
// CHECK-COUNT-6: vector.store {{.*}}, %[[INPUTS]]
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %c0 to %c36
// CHECK: vector.load %[[INPUTS]]
// CHECK: vector.fma
// CHECK: vector.maskedstore
// CHECK: memref.dealloc %[[INPUTS]]
func.func private @winograd(%x: memref<1x32x14x14xf32>, %w: memref<1x4x1152x8xf32>,
    %out: memref<1x32x14x14xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x14x14xf32> to tensor<1x32x14x14xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x1152x8xf32> to tensor<1x4x1152x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x14x14xf32>, tensor<1x4x1152x8xf32>)
      outs(%f : tensor<1x32x14x14xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x32x14x14xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x14x14xf32>, memref<1x32x14x14xf32>) -> ()
  return
}

// -----

// With filters in the lanes the tiles of the picture are the rows of the accumulators, and are transposed.
// CHECK-LABEL: func.func private @winograd_filter_lanes
// CHECK: %[[INPUTS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x1x36x33x16xf32>
// CHECK: scf.parallel
// CHECK: %[[PRODUCTS:.*]] = memref.alloc() {{.*}} : memref<36x32x16xf32>
// CHECK: %[[SUMS:.*]] = memref.alloc() {{.*}} : memref<16x32xf32>
// CHECK: vector.load %{{.*}} : memref<1x1x1152x32xf32>, vector<32xf32>
// CHECK: memref.load %[[INPUTS]]
// CHECK: vector.fma
// CHECK: vector.store {{.*}}, %[[SUMS]]
// CHECK: vector.shuffle
// CHECK: vector.store {{.*}}, %[[PRODUCTS]]
func.func private @winograd_filter_lanes(%x: memref<1x32x14x14xf32>, %w: memref<1x1x1152x32xf32>,
    %out: memref<1x32x14x14xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x14x14xf32> to tensor<1x32x14x14xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x1152x32xf32> to tensor<1x1x1152x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x14x14xf32>, tensor<1x1x1152x32xf32>)
      outs(%f : tensor<1x32x14x14xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 32, in_lanes = true, winograd = 4>} -> tensor<1x32x14x14xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x14x14xf32>, memref<1x32x14x14xf32>) -> ()
  return
}

// -----

// A picture of 7x7 is 16 tiles of 2x2.
// CHECK-LABEL: func.func private @winograd_of_two
// CHECK: %[[INPUTS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x1x16x33x16xf32>
// CHECK: scf.parallel
// CHECK-COUNT-4: vector.store {{.*}}, %[[INPUTS]]
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %c0 to %c16
// CHECK: vector.load %[[INPUTS]]
// CHECK: vector.fma
// CHECK: vector.maskedstore
// CHECK: memref.dealloc %[[INPUTS]]
func.func private @winograd_of_two(%x: memref<1x32x7x7xf32>, %w: memref<1x4x512x8xf32>,
    %out: memref<1x32x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x7x7xf32> to tensor<1x32x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x512x8xf32> to tensor<1x4x512x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x7x7xf32>) -> tensor<1x32x7x7xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x7x7xf32>, tensor<1x4x512x8xf32>)
      outs(%f : tensor<1x32x7x7xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x32x7x7xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x7x7xf32>, memref<1x32x7x7xf32>) -> ()
  return
}

// -----

// Of stride 2: a tile of 9x9 inputs becomes 81 values, of which those with the
// same of a filter's 36 are multiplied after one another.
// CHECK-LABEL: func.func private @winograd_of_stride_two
// CHECK: %[[INPUTS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x1x81x33x16xf32>
// CHECK: scf.parallel
// CHECK-COUNT-9: vector.maskedload
// CHECK: scf.for %{{.*}} = %c0 to %c9
// CHECK-COUNT-9: vector.store {{.*}}, %[[INPUTS]]
// CHECK: scf.parallel
// CHECK: scf.for %[[N:.*]] = %c0 to %c81
// CHECK: arith.cmpi sgt, %[[N]], %c44
// CHECK: arith.divui %{{.*}}, %c4
// CHECK: arith.minsi %{{.*}}, %c5
// CHECK: vector.load %[[INPUTS]]
// CHECK: vector.fma
// CHECK: memref.dealloc %[[INPUTS]]
func.func private @winograd_of_stride_two(%x: memref<1x32x28x28xf32>, %w: memref<1x4x1152x8xf32>,
    %out: memref<1x32x14x14xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x32x28x28xf32> to tensor<1x32x28x28xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x4x1152x8xf32> to tensor<1x4x1152x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x32x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x14x14xf32>) -> tensor<1x32x14x14xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x32x28x28xf32>, tensor<1x4x1152x8xf32>)
      outs(%f : tensor<1x32x14x14xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8, winograd = 4, stride = 2>} -> tensor<1x32x14x14xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x32x14x14xf32>, memref<1x32x14x14xf32>) -> ()
  return
}

// -----

// Of stride 2: even and odd rows and columns go into planes of their own first,
// rows of padding included, and each tap reads neighbours of one of them. No
// gather. The 29 rows of a plane are those that the output's 28 and the kernel's
// reach.
// CHECK-LABEL: func.func private @phases
// CHECK: %[[PLANES:.*]] = memref.alloc() {{.*}} : memref<1x3x4x812xf32>
// CHECK: scf.parallel
// CHECK: vector.maskedload {{.*}} vector<64xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4,
// CHECK: vector.maskedstore %[[PLANES]]
// CHECK: vector.shuffle {{.*}} [1, 3, 5,
// CHECK: vector.maskedstore %[[PLANES]]
// CHECK: scf.parallel
// CHECK-NOT: vector.gather
// CHECK: vector.maskedload %[[PLANES]]
// CHECK-NOT: vector.gather
// CHECK: vector.fma
// CHECK: memref.dealloc %[[PLANES]]
// CHECK: return
func.func private @phases(%x: memref<1x3x56x56xf32>, %w: memref<1x1x27x8xf32>,
    %out: memref<1x8x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x28x28xf32>) -> tensor<1x8x28x28xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x28x28xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x8x28x28xf32>, memref<1x8x28x28xf32>) -> ()
  return
}

// -----

// Of these planes a single tap reads one: even rows and columns.
// CHECK-LABEL: func.func private @phase
// CHECK: %[[PLANE:.*]] = memref.alloc() {{.*}} : memref<1x3x1x784xf32>
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} = %c0 to %c28 step %c1
// CHECK: vector.shuffle {{.*}} [0, 2, 4,
// CHECK: vector.maskedstore %[[PLANE]]
// CHECK-NOT: vector.shuffle
// CHECK: scf.parallel
// CHECK-NOT: vector.gather
// CHECK: vector.load %[[PLANE]]
// CHECK-NOT: vector.gather
// CHECK: memref.dealloc %[[PLANE]]
// CHECK: return
func.func private @phase(%x: memref<1x3x56x56xf32>, %w: memref<1x1x3x8xf32>,
    %out: memref<1x8x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x56x56xf32> to tensor<1x3x56x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x3x8xf32> to tensor<1x1x3x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x28x28xf32>) -> tensor<1x8x28x28xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x3x56x56xf32>, tensor<1x1x3x8xf32>) outs(%f : tensor<1x8x28x28xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x28x28xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x8x28x28xf32>, memref<1x8x28x28xf32>) -> ()
  return
}

// -----

// An input that is not twice as wide as the output: each column of the kernel has
// planes of its own, which need no mask. The odd elements of what was loaded for
// the first column are those of the second.
// CHECK-LABEL: func.func private @tap_phases
// CHECK: %[[PLANES:.*]] = memref.alloc() {{.*}} : memref<1x3x6x999xf32>
// CHECK: scf.parallel
// CHECK: vector.maskedload {{.*}} vector<64xf32>
// CHECK: vector.shuffle {{.*}} [0, 2, 4,
// CHECK: scf.parallel
// CHECK-NOT: vector.gather
// CHECK-NOT: vector.maskedload
// CHECK: vector.load %[[PLANES]]
// CHECK: vector.fma
// CHECK: memref.dealloc %[[PLANES]]
// CHECK: return
func.func private @tap_phases(%x: memref<1x3x74x56xf32>, %w: memref<1x1x27x8xf32>,
    %out: memref<1x8x36x27xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x74x56xf32> to tensor<1x3x74x56xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x36x27xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x36x27xf32>) -> tensor<1x8x36x27xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x3x74x56xf32>, tensor<1x1x27x8xf32>) outs(%f : tensor<1x8x36x27xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x36x27xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x8x36x27xf32>, memref<1x8x36x27xf32>) -> ()
  return
}

// -----

// Several taps: the first tile of filters carries its sums through the loops
// over them, reads the inputs where they lie and packs them for the others.
// CHECK-LABEL: func.func private @first_tile
// CHECK: scf.parallel
// CHECK: %[[PANEL:.*]] = memref.alloc() {{.*}} : memref<576x48xf32>
// CHECK-NOT: vector.store
// CHECK: scf.for %[[TILE:.*]] = %[[FIRST:.*]] to
// CHECK: arith.cmpi ne, %[[TILE]], %[[FIRST]]
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c576 step %{{.*}} iter_args
// CHECK: vector.load %[[PANEL]]
// CHECK: vector.fma
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 iter_args
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %{{.*}} iter_args
// CHECK: %[[INPUT:.*]] = vector.maskedload
// CHECK: vector.store %[[INPUT]], %[[PANEL]]
// CHECK: vector.fma
// CHECK: return
func.func private @first_tile(%x: memref<1x64x28x28xf32>, %w: memref<1x2x576x8xf32>,
    %out: memref<1x16x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x64x28x28xf32> to tensor<1x64x28x28xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x2x576x8xf32> to tensor<1x2x576x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x28x28xf32>) -> tensor<1x16x28x28xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x64x28x28xf32>, tensor<1x2x576x8xf32>) outs(%f : tensor<1x16x28x28xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>,
       pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x16x28x28xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x16x28x28xf32>, memref<1x16x28x28xf32>) -> ()
  return
}

// -----

// A single tap: the first tile of filters reads the inputs where they lie and
// packs them while it multiplies; what becomes of the sums is the same code for
// all tiles. All tiles fetch some inputs of the next panel
// and the lines that the tile after them writes, for each row of 48 positions
// three. 28x28 positions are 16 panels of three vectors and one of one. A chunk
// has all 32 tiles of filters, or where many threads would wait 16, 8 or 4.
// CHECK-LABEL: func.func private @pointwise
// CHECK-SAME: (%[[X:.*]]: memref<1x512x28x28xf32>, %[[W:.*]]: memref<1x32x512x8xf32>, %[[OUT:.*]]: memref<1x256x28x28xf32>)
// CHECK-DAG: %[[INPUTS:.*]] = memref.collapse_shape %[[X]] {{.*}} into memref<401408xf32>
// CHECK-DAG: %[[CHANNELS:.*]] = memref.collapse_shape %[[X]] {{.*}} into memref<1x512x784xf32>
// CHECK: %[[THREADS:.*]] = sdx.thread_count
// CHECK: %[[EIGHT:.*]] = arith.select %{{.*}}, %c8, %c4
// CHECK: %[[SIXTEEN:.*]] = arith.select %{{.*}}, %c16, %[[EIGHT]]
// CHECK: arith.addi %[[THREADS]], %c16
// CHECK: %[[TILES:.*]] = arith.select %{{.*}}, %c32, %[[SIXTEEN]]
// CHECK: %[[PANEL:.*]] = memref.alloc() {alignment = 64 : i64} : memref<512x48xf32>
// CHECK: scf.if
// CHECK: %[[SUMS:.*]]:24 = scf.if
// CHECK: %{{.*}}:24 = scf.for %{{.*}} = %c0 to %c512 step %c4
// CHECK-NOT: %[[CHANNELS]]
// CHECK: vector.load %[[PANEL]]
// CHECK: } else {
// CHECK: %{{.*}}:24 = scf.for %{{.*}} = %c0 to %c512 step %c4
// CHECK-COUNT-3: memref.prefetch %[[INPUTS]]{{.*}}, read
// CHECK-COUNT-3: memref.prefetch %{{.*}}, write
// CHECK: vector.load %[[CHANNELS]]
// CHECK: vector.store %{{.*}}, %[[PANEL]]
// CHECK: } {sdx.rare_else}
// CHECK-COUNT-24: vector.store %[[SUMS]]#
// CHECK-NOT: vector.store %[[SUMS]]#
// CHECK: } else {
// CHECK: %{{.*}}:8 = scf.for
// CHECK: memref.dealloc %[[PANEL]]
func.func private @pointwise(%x: memref<1x512x28x28xf32>, %w: memref<1x32x512x8xf32>,
    %out: memref<1x256x28x28xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x512x28x28xf32> to tensor<1x512x28x28xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x32x512x8xf32> to tensor<1x32x512x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x256x28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x256x28x28xf32>) -> tensor<1x256x28x28xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x512x28x28xf32>, tensor<1x32x512x8xf32>)
      outs(%f : tensor<1x256x28x28xf32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>,
       pads_end = array<i64: 0, 0>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x256x28x28xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x256x28x28xf32>, memref<1x256x28x28xf32>) -> ()
  return
}

// -----

// All rows of a small plane are one block, which leaves out the taps in the
// padding, and seven columns do with half a register.
// CHECK-LABEL: func.func private @depthwise_small
// CHECK: scf.parallel
// CHECK-NOT: scf.for
// CHECK-COUNT-145: vector.fma {{.*}} vector<8xf32>
// CHECK-NOT: vector.fma
// CHECK: return
func.func private @depthwise_small(%x: memref<1x8x7x7xf32>, %w: memref<8x1x25x8xf32>,
    %out: memref<1x8x7x7xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x8x7x7xf32> to tensor<1x8x7x7xf32>
  %tw = bufferization.to_tensor %w restrict : memref<8x1x25x8xf32> to tensor<8x1x25x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x7x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x7x7xf32>) -> tensor<1x8x7x7xf32>
  %y = cpu.conv ins(%tx, %tw : tensor<1x8x7x7xf32>, tensor<8x1x25x8xf32>) outs(%f : tensor<1x8x7x7xf32>)
      {kernel_shape = array<i64: 5, 5>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
       pads_begin = array<i64: 2, 2>, pads_end = array<i64: 2, 2>, group = 8 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x7x7xf32>
  bufferization.materialize_in_destination %y in restrict writable %out
      : (tensor<1x8x7x7xf32>, memref<1x8x7x7xf32>) -> ()
  return
}

// -----

// Few channels: lines of the padded input, 9 of each channel for 4 rows of the
// output, with even columns before odd ones, from which each tap reads.
// 56 columns are two vectors twice.
// CHECK-LABEL: func.func private @lines
// CHECK-SAME: (%[[X:.*]]: memref<1x3x112x112xf32>, %[[W:.*]]: memref<1x1x27x8xf32>, %[[OUT:.*]]: memref<1x8x56x56xf32>)
// CHECK: scf.parallel ({{.*}}) = (%c0) to (%c14)
// CHECK: %[[LINES:.*]] = memref.alloc() {alignment = 64 : i64} : memref<27x160xf32>
// CHECK: scf.if
// CHECK: vector.maskedload {{.*}} : memref<1x3x12544xf32>
// CHECK: vector.store {{.*}}, %[[LINES]]
// CHECK: vector.load {{.*}} : memref<1x3x12544xf32>, vector<32xf32>
// CHECK: vector.store {{.*}}, %[[LINES]]
// CHECK: } else {
// CHECK: scf.for
// CHECK: %{{.*}}:16 = scf.for %{{.*}} = %c0 to %c9 step %c1
// CHECK-COUNT-6: vector.load %[[LINES]]
// CHECK: vector.store {{.*}} : memref<1x8x3136xf32>
// CHECK: %{{.*}}:16 = scf.for
// CHECK: vector.maskedstore {{.*}} : memref<1x8x3136xf32>
// CHECK: memref.dealloc %[[LINES]]
func.func private @lines(%x: memref<1x3x112x112xf32>, %w: memref<1x1x27x8xf32>,
    %out: memref<1x8x56x56xf32>) attributes {sdx.kernel} {
  %tx = bufferization.to_tensor %x restrict : memref<1x3x112x112xf32> to tensor<1x3x112x112xf32>
  %tw = bufferization.to_tensor %w restrict : memref<1x1x27x8xf32> to tensor<1x1x27x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x56x56xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x56x56xf32>) -> tensor<1x8x56x56xf32>
  %m = cpu.conv ins(%tx, %tw : tensor<1x3x112x112xf32>, tensor<1x1x27x8xf32>)
      outs(%f : tensor<1x8x56x56xf32>)
      {kernel_shape = array<i64: 3, 3>, strides = array<i64: 2, 2>,
       dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>,
       pads_end = array<i64: 1, 1>, group = 1 : i64, filters = #cpu.filters<f32, rows = 8>} -> tensor<1x8x56x56xf32>
  bufferization.materialize_in_destination %m in restrict writable %out
      : (tensor<1x8x56x56xf32>, memref<1x8x56x56xf32>) -> ()
  return
}
