// RUN: onnx-opt %s -split-input-file -verify-diagnostics -cpu-lower-packing -canonicalize -cse | FileCheck %s

// Rows are copied; columns past N become zeros.
// CHECK-LABEL: func.func private @rhs
// CHECK-SAME: (%[[B:.*]]: memref<?x40xf32>, %[[OUT:.*]]: memref<2x?x32xf32>)
// CHECK-NOT: tensor
// CHECK: scf.parallel (%[[PANEL:.*]]) =
// CHECK: vector.create_mask
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[V:.*]] = vector.maskedload %[[B]][%[[K]], %{{.*}}]
// CHECK: vector.store %[[V]], %[[OUT]][%[[PANEL]], %[[K]], %c0]
func.func private @rhs(%b: memref<?x40xf32>, %out: memref<2x?x32xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %t = bufferization.to_tensor %b restrict : memref<?x40xf32> to tensor<?x40xf32>
  %k = tensor.dim %t, %c0 : tensor<?x40xf32>
  %e = tensor.empty(%k) : tensor<2x?x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<?x40xf32>) outs(%e : tensor<2x?x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x?x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x?x32xf32>, memref<2x?x32xf32>) -> ()
  return
}

// -----

// Heads beside each other: [batch, row, head, column].
// CHECK-LABEL: func.func private @heads
// CHECK-SAME: (%[[B:.*]]: memref<?x?x12x64xf32>, %[[OUT:.*]]: memref<?x2x?x32xf32>)
// CHECK: scf.parallel (%[[MATRIX:.*]], %[[PANEL:.*]]) =
// CHECK: %[[BATCH:.*]] = arith.divui %[[MATRIX]], %c12
// CHECK: %[[FULL:.*]] = arith.muli %[[BATCH]], %c12
// CHECK: %[[HEAD:.*]] = arith.subi %[[MATRIX]], %[[FULL]]
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[V:.*]] = vector.load %[[B]][%[[BATCH]], %[[K]], %[[HEAD]], %{{.*}}]
// CHECK: vector.store %[[V]], %[[OUT]][%[[MATRIX]], %[[PANEL]], %[[K]], %c0]
func.func private @heads(%b: memref<?x?x12x64xf32>, %out: memref<?x2x?x32xf32>) attributes {sdx.kernel} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %t = bufferization.to_tensor %b restrict : memref<?x?x12x64xf32> to tensor<?x?x12x64xf32>
  %n = memref.dim %out, %c0 : memref<?x2x?x32xf32>
  %k = memref.dim %out, %c2 : memref<?x2x?x32xf32>
  %e = tensor.empty(%n, %k) : tensor<?x2x?x32xf32>
  %p = cpu.pack_rhs ins(%t : tensor<?x?x12x64xf32>) outs(%e : tensor<?x2x?x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<?x2x?x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<?x2x?x32xf32>, memref<?x2x?x32xf32>) -> ()
  return
}

// -----

// Rows become columns: squares are transposed in registers.
// CHECK-LABEL: func.func private @transposed
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-COUNT-16: vector.load
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
func.func private @transposed(%b: memref<64x128xf32>, %out: memref<2x128x32xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %b restrict : memref<64x128xf32> to tensor<64x128xf32>
  %e = tensor.empty() : tensor<2x128x32xf32>
  %p = cpu.pack_rhs transposed ins(%t : tensor<64x128xf32>) outs(%e : tensor<2x128x32xf32>) {packing = #cpu.packing<f32, panel = 32>} -> tensor<2x128x32xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x128x32xf32>, memref<2x128x32xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: func.func private @conv_weights
// CHECK-SAME: (%[[W:.*]]: memref<12x3x3x3xf32>, %[[OUT:.*]]: memref<2x1x27x8xf32>)
// CHECK: memref.collapse_shape %[[W]] {{\[\[}}0], [1, 2, 3]]
// CHECK: scf.parallel
// CHECK: vector.maskedload {{.*}} vector<8xf32>
// CHECK: vector.store {{.*}}, %[[OUT]]
func.func private @conv_weights(%w: memref<12x3x3x3xf32>, %out: memref<2x1x27x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<12x3x3x3xf32> to tensor<12x3x3x3xf32>
  %e = tensor.empty() : tensor<2x1x27x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<12x3x3x3xf32>) outs(%e : tensor<2x1x27x8xf32>) {filters = #cpu.filters<f32, rows = 8>} -> tensor<2x1x27x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x1x27x8xf32>, memref<2x1x27x8xf32>) -> ()
  return
}

// -----

// Filters as sums of two bf16: 32 channels of one tap of a filter, the bf16 nearest to them, and that nearest to the rest.
// CHECK-LABEL: func.func private @filter_parts
// CHECK-SAME: (%{{.*}}: memref<40x48x3x3xf32>, %[[OUT:.*]]: memref<1x2x18x2048xbf16>)
// CHECK: scf.parallel (%[[BLOCK:.*]], %[[STEP:.*]]) = {{.*}} to (%c2, %c18)
// CHECK: %[[ROW:.*]] = arith.muli %[[BLOCK]], %c32
// CHECK: scf.for %[[R:.*]] = %c0 to %c32
// CHECK: arith.addi %[[ROW]], %[[R]]
// CHECK: vector.gather {{.*}} : memref<40x48x9xf32>, vector<32xi32>, vector<32xi1>, vector<32xf32> into vector<32xf32>
// CHECK: vector.store %{{.*}}, %[[OUT]]{{.*}} vector<32xbf16>
// CHECK: arith.subf
// CHECK: vector.store %{{.*}}, %[[OUT]]{{.*}} vector<32xbf16>
// CHECK-NOT: vector.store
func.func private @filter_parts(%w: memref<40x48x3x3xf32>, %out: memref<1x2x18x2048xbf16>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<40x48x3x3xf32> to tensor<40x48x3x3xf32>
  %e = tensor.empty() : tensor<1x2x18x2048xbf16>
  %p = cpu.pack_conv_weights ins(%t : tensor<40x48x3x3xf32>) outs(%e : tensor<1x2x18x2048xbf16>) {filters = #cpu.filters<bf16x2, rows = 32>} -> tensor<1x2x18x2048xbf16>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<1x2x18x2048xbf16>, memref<1x2x18x2048xbf16>) -> ()
  return
}

// -----

// Filters for Winograd's algorithm: 9 taps become 36 values.
// CHECK-LABEL: func.func private @winograd_weights
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-COUNT-9: vector.gather
// CHECK-COUNT-36: vector.store {{.*}} vector<8xf32>
func.func private @winograd_weights(%w: memref<32x16x3x3xf32>, %out: memref<1x4x576x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<32x16x3x3xf32> to tensor<32x16x3x3xf32>
  %e = tensor.empty() : tensor<1x4x576x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<32x16x3x3xf32>) outs(%e : tensor<1x4x576x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 4>} -> tensor<1x4x576x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<1x4x576x8xf32>, memref<1x4x576x8xf32>) -> ()
  return
}

// -----

// ... or 16, for tiles of 2x2.
// CHECK-LABEL: func.func private @winograd_weights_of_two
// CHECK-COUNT-9: vector.gather
// CHECK-COUNT-16: vector.store {{.*}} vector<8xf32>
// CHECK-NOT: vector.store
func.func private @winograd_weights_of_two(%w: memref<32x16x3x3xf32>, %out: memref<1x4x256x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<32x16x3x3xf32> to tensor<32x16x3x3xf32>
  %e = tensor.empty() : tensor<1x4x256x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<32x16x3x3xf32>) outs(%e : tensor<1x4x256x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 2>} -> tensor<1x4x256x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<1x4x256x8xf32>, memref<1x4x256x8xf32>) -> ()
  return
}

// -----

// ... or 36 for tiles of 4x4 and strides of 2, the last of them as it is.
// CHECK-LABEL: func.func private @winograd_weights_of_stride_two
// CHECK-COUNT-4: vector.gather
// CHECK: %[[MIDDLE:.*]] = vector.gather
// CHECK-COUNT-4: vector.gather
// CHECK-COUNT-35: vector.store {{.*}} vector<8xf32>
// CHECK: vector.store %[[MIDDLE]]
// CHECK-NOT: vector.store
func.func private @winograd_weights_of_stride_two(%w: memref<32x16x3x3xf32>, %out: memref<1x4x576x8xf32>) attributes {sdx.kernel} {
  %t = bufferization.to_tensor %w restrict : memref<32x16x3x3xf32> to tensor<32x16x3x3xf32>
  %e = tensor.empty() : tensor<1x4x576x8xf32>
  %p = cpu.pack_conv_weights ins(%t : tensor<32x16x3x3xf32>) outs(%e : tensor<1x4x576x8xf32>) {filters = #cpu.filters<f32, rows = 8, winograd = 4, stride = 2>} -> tensor<1x4x576x8xf32>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<1x4x576x8xf32>, memref<1x4x576x8xf32>) -> ()
  return
}

// -----

// Three bytes a number: a panel is brought together in f32, then scaled, rounded
// and cut to the low bytes of each integer.
// CHECK-LABEL: func.func private @short
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<10x32xf32>
// CHECK: math.roundeven
// CHECK: arith.fptosi %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK: vector.shuffle %{{.*}} [0, 1, 2, 4, 5, 6, 8, 9, 10,
// CHECK: vector.store %{{.*}} : memref<2x10x96xi8>, vector<48xi8>
func.func private @short(%a: memref<10x64xf32>, %s: memref<2x1x1x32xf32>, %out: memref<2x10x96xi8>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<10x64xf32> to tensor<10x64xf32>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %e = tensor.empty() : tensor<2x10x96xi8>
  %p = cpu.pack_rhs ins(%ta, %ts : tensor<10x64xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x10x96xi8>) {packing = #cpu.packing<w24, panel = 32>} -> tensor<2x10x96xi8>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x10x96xi8>, memref<2x10x96xi8>) -> ()
  return
}

// -----

// Three numbers in eight bytes, [4 * 3, 32] with zeros past the end: each less
// what lies below it, rounded, and put to its place.
// CHECK-LABEL: func.func private @triples
// CHECK: memref.alloc() {alignment = 64 : i64} : memref<12x32xf32>
// CHECK: vector.shuffle %{{.*}} [0, 2, 4, 6, 8, 10, 12, 14]
// CHECK: math.roundeven
// CHECK: arith.andi
// CHECK: arith.subf
// CHECK: math.roundeven
// CHECK: arith.subf
// CHECK: math.roundeven
// CHECK: arith.extui %{{.*}} : vector<8xi32> to vector<8xi64>
// CHECK: vector.store %{{.*}} : memref<2x4x32xi64>, vector<8xi64>
func.func private @triples(%a: memref<10x64xf32>, %s: memref<2x1x1x32xf32>, %out: memref<2x4x32xi64>) attributes {sdx.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<10x64xf32> to tensor<10x64xf32>
  %ts = bufferization.to_tensor %s restrict : memref<2x1x1x32xf32> to tensor<2x1x1x32xf32>
  %e = tensor.empty() : tensor<2x4x32xi64>
  %p = cpu.pack_rhs ins(%ta, %ts : tensor<10x64xf32>, tensor<2x1x1x32xf32>) outs(%e : tensor<2x4x32xi64>) {packing = #cpu.packing<w21, panel = 32>} -> tensor<2x4x32xi64>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x4x32xi64>, memref<2x4x32xi64>) -> ()
  return
}

// -----

// Of four rows of bytes, which may end before a group does, the columns are
// interleaved.
// CHECK-LABEL: func.func private @bytes
// CHECK-SAME: (%[[B:.*]]: memref<4x?x64xi8>, %[[OUT:.*]]: memref<4x2x?x128xi8>)
// CHECK: scf.parallel
// CHECK: scf.for
// CHECK-COUNT-4: vector.load %[[B]]{{.*}} vector<32xi8>
// CHECK-COUNT-3: vector.interleave
// CHECK: vector.store %{{.*}}, %[[OUT]]{{.*}} vector<128xi8>
// CHECK: scf.if
// CHECK-COUNT-4: arith.select {{.*}} : vector<32xi8>
// CHECK: vector.store %{{.*}}, %[[OUT]]{{.*}} vector<128xi8>
func.func private @bytes(%b: memref<4x?x64xi8>, %out: memref<4x2x?x128xi8>) attributes {sdx.kernel} {
  %c2 = arith.constant 2 : index
  %t = bufferization.to_tensor %b restrict : memref<4x?x64xi8> to tensor<4x?x64xi8>
  %k = memref.dim %out, %c2 : memref<4x2x?x128xi8>
  %e = tensor.empty(%k) : tensor<4x2x?x128xi8>
  %p = cpu.pack_rhs ins(%t : tensor<4x?x64xi8>) outs(%e : tensor<4x2x?x128xi8>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<4x2x?x128xi8>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<4x2x?x128xi8>, memref<4x2x?x128xi8>) -> ()
  return
}

// -----

// Rows of bytes become columns: squares of groups are transposed. Rows past the
// end are the first one.
// CHECK-LABEL: func.func private @transposed_bytes
// CHECK: arith.select {{.*}} : index
// CHECK-COUNT-16: vector.load {{.*}} vector<64xi8>
// CHECK-COUNT-64: vector.shuffle {{.*}} vector<16xi32>, vector<16xi32>
// CHECK-COUNT-16: vector.store {{.*}} vector<64xi8>
func.func private @transposed_bytes(%b: memref<50x64xi8>, %out: memref<2x16x128xi8>) attributes {sdx.kernel, sdx.target = #cpu.target<vector_bits = 512>} {
  %t = bufferization.to_tensor %b restrict : memref<50x64xi8> to tensor<50x64xi8>
  %e = tensor.empty() : tensor<2x16x128xi8>
  %p = cpu.pack_rhs transposed ins(%t : tensor<50x64xi8>) outs(%e : tensor<2x16x128xi8>) {packing = #cpu.packing<i8, panel = 32>} -> tensor<2x16x128xi8>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x16x128xi8>, memref<2x16x128xi8>) -> ()
  return
}

// -----

// Without masks of bytes columns that fill no panel go one by one; integers of
// 16 bits are widened.
// CHECK-LABEL: func.func private @pairs
// CHECK-NOT: vector.maskedload
// CHECK: scf.if
// CHECK: vector.load {{.*}} vector<1xi8>
// CHECK: } else {
// CHECK-COUNT-2: arith.extsi {{.*}} : vector<32xi8> to vector<32xi16>
// CHECK: vector.interleave {{.*}} : vector<32xi16>
func.func private @pairs(%b: memref<8x40xi8>, %out: memref<2x4x64xi16>) attributes {sdx.kernel, sdx.target = #cpu.target<vector_bits = 256>} {
  %t = bufferization.to_tensor %b restrict : memref<8x40xi8> to tensor<8x40xi8>
  %e = tensor.empty() : tensor<2x4x64xi16>
  %p = cpu.pack_rhs ins(%t : tensor<8x40xi8>) outs(%e : tensor<2x4x64xi16>) {packing = #cpu.packing<i16, panel = 32>} -> tensor<2x4x64xi16>
  bufferization.materialize_in_destination %p in restrict writable %out
      : (tensor<2x4x64xi16>, memref<2x4x64xi16>) -> ()
  return
}
