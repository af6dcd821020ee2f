// RUN: onnx-opt %s -split-input-file -cpu-assign-layouts | FileCheck %s

module attributes {sdx.target = #cpu.target<int8 = vnni>} {
  // A transpose where the region begins and one where it ends.
  // CHECK-LABEL: func @region
  // CHECK: %[[X:.*]] = linalg.transpose ins(%arg0 {{.*}} permutation = [0, 2, 3, 1]
  // CHECK: %[[A:.*]] = cpu.narrow_conv ins(%[[X]], %{{.*}} : tensor<1x8x9x6xi8>, tensor<2x14x128xi8>)
  // CHECK-SAME: group = 1 {{.*}} packing = #cpu.packing<i8, panel = 32>, padding = 3 : i64, pads_begin = array<i64: 1, 1>
  // CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<1x8x9x40xi32>)
  // CHECK: %[[D:.*]] = cpu.depthwise_narrow_conv ins(%[[Q]], %{{.*}} : tensor<1x8x9x40xi8>, tensor<3x160xi8>)
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%[[D]] : tensor<1x6x7x40xi32>)
  // CHECK: %[[M:.*]] = cpu.channels_last_max_pool ins(%[[P]] : tensor<1x6x7x40xi8>)
  // CHECK: linalg.transpose ins(%[[M]] {{.*}} permutation = [0, 3, 1, 2]
  func.func @region(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x3x3xi8>, %v: tensor<40x1x3x3xi8>) -> tensor<1x40x3x3xi8> {
    %c0 = arith.constant 0 : i32
    %low = arith.constant 0 : i8
    %e = tensor.empty() : tensor<1x40x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x3x3xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, input_unsigned, padding = 3 : i64} -> tensor<1x40x8x9xi32>
    %b = tensor.empty() : tensor<1x40x8x9xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%0 : tensor<1x40x8x9xi32>) outs(%b : tensor<1x40x8x9xi8>) {
    ^bb0(%s: i32, %o: i8):
      %t = arith.trunci %s : i32 to i8
      linalg.yield %t : i8
    } -> tensor<1x40x8x9xi8>
    %f = tensor.empty() : tensor<1x40x6x7xi32>
    %y = linalg.fill ins(%c0 : i32) outs(%f : tensor<1x40x6x7xi32>) -> tensor<1x40x6x7xi32>
    %2 = sdx.conv ins(%1, %v : tensor<1x40x8x9xi8>, tensor<40x1x3x3xi8>) outs(%y : tensor<1x40x6x7xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 40 : i64, input_unsigned} -> tensor<1x40x6x7xi32>
    %d = tensor.empty() : tensor<1x40x6x7xi8>
    %3 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%2 : tensor<1x40x6x7xi32>) outs(%d : tensor<1x40x6x7xi8>) {
    ^bb0(%s: i32, %o: i8):
      %t = arith.trunci %s : i32 to i8
      linalg.yield %t : i8
    } -> tensor<1x40x6x7xi8>
    %g = tensor.empty() : tensor<1x40x3x3xi8>
    %h = linalg.fill ins(%low : i8) outs(%g : tensor<1x40x3x3xi8>) -> tensor<1x40x3x3xi8>
    %4 = sdx.max_pool ins(%3 : tensor<1x40x6x7xi8>) outs(%h : tensor<1x40x3x3xi8>)
        {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>, is_unsigned} -> tensor<1x40x3x3xi8>
    return %4 : tensor<1x40x3x3xi8>
  }
}

// -----

module attributes {sdx.target = #cpu.target<int8 = amx>} {
  // Signed inputs and unsigned weights change their sign; rows fill tile
  // registers: 16 groups of values of k.
  // CHECK-LABEL: func @signs
  // CHECK: %[[X:.*]] = linalg.transpose ins(%arg0
  // CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%[[X]]
  // CHECK:   arith.xori
  // CHECK: linalg.generic {{.*}} ins(%arg1
  // CHECK:   arith.xori
  // CHECK: %[[A:.*]] = cpu.narrow_conv ins(%[[U]], %{{.*}} : tensor<1x8x9x6xi8>, tensor<2x16x128xi8>)
  // CHECK-SAME: padding = 121
  // CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<40x6x1x1xi8>) outs({{.*}} : tensor<40xi32>)
  // CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[A]], %[[S]]
  // CHECK: %[[O:.*]] = cpu.narrow_conv ins(%[[U]], %{{.*}} : tensor<1x8x9x6xi8>, tensor<1x16x128xi8>) outs({{.*}} : tensor<1x8x9x1xi32>)
  // CHECK: linalg.generic {{.*}} ins(%[[B]], %[[O]]
  func.func @signs(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x1x1xi8>) -> tensor<1x40x8x9xi32> {
    %c0 = arith.constant 0 : i32
    %e = tensor.empty() : tensor<1x40x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x1x1xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, weights_unsigned, padding = -7 : i64} -> tensor<1x40x8x9xi32>
    return %0 : tensor<1x40x8x9xi32>
  }
}

// -----

module attributes {sdx.target = #cpu.target<vector_bits = 256, int8 = maddwd>} {
  // Where instructions multiply integers of 16 bits, inputs of products and all
  // weights are widened.
  // CHECK-LABEL: func @widened
  // CHECK: %[[X:.*]] = linalg.transpose ins(%arg0
  // CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x8x9x6xi8>) outs({{.*}} : tensor<1x8x9x6xi16>)
  // CHECK:   arith.extui
  // CHECK: %[[F:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x27x64xi16>)
  // CHECK:   arith.extsi
  // CHECK: cpu.narrow_conv ins(%[[W]], %[[F]] : tensor<1x8x9x6xi16>, tensor<2x27x64xi16>)
  // CHECK-SAME: packing = #cpu.packing<i16, panel = 32>, padding = 3 : i64
  // CHECK: cpu.depthwise_narrow_conv ins(%[[X]], %{{.*}} : tensor<1x8x9x6xi8>, tensor<6x12xi16>)
  func.func @widened(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x3x3xi8>, %v: tensor<6x1x3x3xi8>) -> (tensor<1x40x8x9xi32>, tensor<1x6x6x7xi32>) {
    %c0 = arith.constant 0 : i32
    %e = tensor.empty() : tensor<1x40x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x3x3xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 1, 1>, pads_end = array<i64: 1, 1>, group = 1 : i64, input_unsigned, padding = 3 : i64} -> tensor<1x40x8x9xi32>
    %f = tensor.empty() : tensor<1x6x6x7xi32>
    %y = linalg.fill ins(%c0 : i32) outs(%f : tensor<1x6x6x7xi32>) -> tensor<1x6x6x7xi32>
    %1 = sdx.conv ins(%x, %v : tensor<1x6x8x9xi8>, tensor<6x1x3x3xi8>) outs(%y : tensor<1x6x6x7xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 6 : i64, input_unsigned} -> tensor<1x6x6x7xi32>
    return %0, %1 : tensor<1x40x8x9xi32>, tensor<1x6x6x7xi32>
  }
}

// -----

module attributes {sdx.target = #cpu.target<int8 = vnni>} {
  // Bytes that are looked up, and channels that become blocks of 2x2 positions,
  // stay in the region.
  // CHECK-LABEL: func @blocks
  // CHECK: %[[A:.*]] = cpu.narrow_conv
  // CHECK: %[[Q:.*]] = linalg.generic {{.*}} ins(%[[A]] : tensor<1x8x9x160xi32>)
  // CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<1x8x9x160xi8>)
  // CHECK: tensor.extract %arg2
  // CHECK: %[[N:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2], [3]]
  // CHECK: %[[P:.*]] = tensor.expand_shape %[[N]] {{\[\[}}0], [1], [2, 3, 4]] output_shape [8, 9, 2, 2, 40]
  // CHECK: linalg.transpose ins(%[[P]] : tensor<8x9x2x2x40xi8>) {{.*}} permutation = [0, 2, 1, 3, 4]
  // CHECK: tensor.collapse_shape {{.*}} : tensor<8x2x9x2x40xi8> into tensor<16x18x40xi8>
  // CHECK: %[[B:.*]] = tensor.expand_shape {{.*}} : tensor<16x18x40xi8> into tensor<1x16x18x40xi8>
  // CHECK: linalg.transpose ins(%[[B]] {{.*}} permutation = [0, 3, 1, 2]
  func.func @blocks(%x: tensor<1x6x8x9xi8>, %w: tensor<160x6x1x1xi8>, %table: tensor<256xi8>) -> tensor<1x40x16x18xi8> {
    %c0 = arith.constant 0 : i32
    %e = tensor.empty() : tensor<1x160x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x160x8x9xi32>) -> tensor<1x160x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<160x6x1x1xi8>) outs(%z : tensor<1x160x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x160x8x9xi32>
    %b = tensor.empty() : tensor<1x160x8x9xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%0 : tensor<1x160x8x9xi32>) outs(%b : tensor<1x160x8x9xi8>) {
    ^bb0(%s: i32, %o: i8):
      %t = arith.trunci %s : i32 to i8
      linalg.yield %t : i8
    } -> tensor<1x160x8x9xi8>
    %2 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%1 : tensor<1x160x8x9xi8>) outs(%b : tensor<1x160x8x9xi8>) {
    ^bb0(%s: i8, %o: i8):
      %at = arith.index_castui %s : i8 to index
      %t = tensor.extract %table[%at] : tensor<256xi8>
      linalg.yield %t : i8
    } -> tensor<1x160x8x9xi8>
    %3 = tensor.expand_shape %2 [[0], [1, 2, 3], [4], [5]] output_shape [1, 2, 2, 40, 8, 9] : tensor<1x160x8x9xi8> into tensor<1x2x2x40x8x9xi8>
    %4 = tensor.collapse_shape %3 [[0, 1], [2], [3, 4], [5]] : tensor<1x2x2x40x8x9xi8> into tensor<2x2x320x9xi8>
    %f = tensor.empty() : tensor<320x2x9x2xi8>
    %5 = linalg.transpose ins(%4 : tensor<2x2x320x9xi8>) outs(%f : tensor<320x2x9x2xi8>) permutation = [2, 0, 3, 1]
    %6 = tensor.expand_shape %5 [[0, 1, 2], [3], [4], [5]] output_shape [1, 40, 8, 2, 9, 2] : tensor<320x2x9x2xi8> into tensor<1x40x8x2x9x2xi8>
    %7 = tensor.collapse_shape %6 [[0], [1], [2, 3], [4, 5]] : tensor<1x40x8x2x9x2xi8> into tensor<1x40x16x18xi8>
    return %7 : tensor<1x40x16x18xi8>
  }
}

// -----

// No instruction multiplies bytes, or groups fill no panel.
// CHECK-LABEL: module attributes {sdx.target = #cpu.target<>}
module attributes {sdx.target = #cpu.target<>} {
  // CHECK: sdx.conv
  // CHECK-NOT: linalg.transpose
  func.func @plain(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x1x1xi8>, %z: tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32> {
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x1x1xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64} -> tensor<1x40x8x9xi32>
    return %0 : tensor<1x40x8x9xi32>
  }
}

// -----

// CHECK-LABEL: func @narrow_groups
// CHECK: sdx.conv
// CHECK-NOT: linalg.transpose
module attributes {sdx.target = #cpu.target<int8 = vnni>} {
  func.func @narrow_groups(%x: tensor<1x8x8x9xi8>, %w: tensor<16x4x1x1xi8>, %z: tensor<1x16x8x9xi32>) -> tensor<1x16x8x9xi32> {
    %0 = sdx.conv ins(%x, %w : tensor<1x8x8x9xi8>, tensor<16x4x1x1xi8>) outs(%z : tensor<1x16x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 2 : i64} -> tensor<1x16x8x9xi32>
    return %0 : tensor<1x16x8x9xi32>
  }
}

// -----

module attributes {sdx.target = #cpu.target<bf16 = amx>} {
  // CHECK-LABEL: func @single_channels_of_bf16
  // CHECK: %[[X:.*]] = linalg.transpose ins(%arg0 {{.*}} permutation = [0, 2, 3, 1]
  // CHECK: %[[D:.*]] = cpu.depthwise_narrow_conv ins(%[[X]], %{{.*}} : tensor<1x8x9x40xbf16>, tensor<9x40xbf16>) outs({{.*}} : tensor<1x6x7x40xf32>)
  // CHECK: %[[M:.*]] = cpu.channels_last_max_pool ins(%[[D]] : tensor<1x6x7x40xf32>)
  // CHECK: linalg.transpose ins(%[[M]] {{.*}} permutation = [0, 3, 1, 2]
  func.func @single_channels_of_bf16(%x: tensor<1x40x8x9xbf16>, %v: tensor<40x1x3x3xbf16>) -> tensor<1x40x3x3xf32> {
    %c0 = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    %f = tensor.empty() : tensor<1x40x6x7xf32>
    %y = linalg.fill ins(%c0 : f32) outs(%f : tensor<1x40x6x7xf32>) -> tensor<1x40x6x7xf32>
    %0 = sdx.conv ins(%x, %v : tensor<1x40x8x9xbf16>, tensor<40x1x3x3xbf16>) outs(%y : tensor<1x40x6x7xf32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 40 : i64} -> tensor<1x40x6x7xf32>
    %g = tensor.empty() : tensor<1x40x3x3xf32>
    %h = linalg.fill ins(%low : f32) outs(%g : tensor<1x40x3x3xf32>) -> tensor<1x40x3x3xf32>
    %1 = sdx.max_pool ins(%0 : tensor<1x40x6x7xf32>) outs(%h : tensor<1x40x3x3xf32>)
        {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads_begin = array<i64: 0, 0>} -> tensor<1x40x3x3xf32>
    return %1 : tensor<1x40x3x3xf32>
  }
}

// -----

module attributes {sdx.target = #cpu.target<int8 = vnni>} {
  // What computes the first image writes it with channels last; what a
  // convolution of floats computes is quantised in its kernel, and then copied.
  // CHECK-LABEL: func @quantized_input
  // CHECK: %[[Q:.*]] = linalg.generic {indexing_maps = [#[[FIRST:.*]], #[[LAST:.*]]]{{.*}} ins(%arg0 : tensor<1x3x8x9xf32>) outs({{.*}} : tensor<1x8x9x3xi8>)
  // CHECK-NOT: linalg.transpose ins(%{{.*}} : tensor<1x3x8x9xi8>)
  // CHECK: cpu.narrow_conv ins(%[[Q]], %{{.*}} : tensor<1x8x9x3xi8>
  func.func @quantized_input(%x: tensor<1x3x8x9xf32>, %w: tensor<40x3x3x3xi8>) -> tensor<1x40x6x7xi32> {
    %c0 = arith.constant 0 : i32
    %b = tensor.empty() : tensor<1x3x8x9xi8>
    %0 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%x : tensor<1x3x8x9xf32>) outs(%b : tensor<1x3x8x9xi8>) {
    ^bb0(%s: f32, %o: i8):
      %t = arith.fptoui %s : f32 to i8
      linalg.yield %t : i8
    } -> tensor<1x3x8x9xi8>
    %e = tensor.empty() : tensor<1x40x6x7xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x6x7xi32>) -> tensor<1x40x6x7xi32>
    %1 = sdx.conv ins(%0, %w : tensor<1x3x8x9xi8>, tensor<40x3x3x3xi8>) outs(%z : tensor<1x40x6x7xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x40x6x7xi32>
    return %1 : tensor<1x40x6x7xi32>
  }
}

// -----

module attributes {sdx.target = #cpu.target<int8 = vnni>} {
  // Pixels that are picked by computed positions, as a resize does, are those
  // of the image with channels last. What picks from other channels reads the
  // image as it was.
  // CHECK-LABEL: func @picks
  // CHECK:     %[[A:.*]] = cpu.narrow_conv {{.*}} -> tensor<1x8x9x40xi32>
  // CHECK:     %[[P:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x16x9x40xi8>)
  // CHECK:       tensor.extract %[[A]][{{.*}}] : tensor<1x8x9x40xi32>
  // CHECK:     cpu.narrow_conv ins(%[[P]], %{{.*}} : tensor<1x16x9x40xi8>
  // CHECK-LABEL: func @picks_from_other_channels
  // CHECK:     %[[A:.*]] = cpu.narrow_conv {{.*}} -> tensor<1x8x9x40xi32>
  // CHECK:     %[[T:.*]] = linalg.transpose ins(%[[A]]
  // CHECK:       tensor.extract %[[T]]
  func.func @picks(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x1x1xi8>, %v: tensor<40x40x1x1xi8>) -> tensor<1x40x16x9xi32> {
    %c0 = arith.constant 0 : i32
    %two = arith.constant 2 : index
    %e = tensor.empty() : tensor<1x40x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x1x1xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x40x8x9xi32>
    %b = tensor.empty() : tensor<1x40x16x9xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%b : tensor<1x40x16x9xi8>) {
    ^bb0(%o: i8):
      %n = linalg.index 0 : index
      %c = linalg.index 1 : index
      %h = linalg.index 2 : index
      %k = linalg.index 3 : index
      %r = arith.divui %h, %two : index
      %p = tensor.extract %0[%n, %c, %r, %k] : tensor<1x40x8x9xi32>
      %t = arith.trunci %p : i32 to i8
      linalg.yield %t : i8
    } -> tensor<1x40x16x9xi8>
    %f = tensor.empty() : tensor<1x40x16x9xi32>
    %y = linalg.fill ins(%c0 : i32) outs(%f : tensor<1x40x16x9xi32>) -> tensor<1x40x16x9xi32>
    %2 = sdx.conv ins(%1, %v : tensor<1x40x16x9xi8>, tensor<40x40x1x1xi8>) outs(%y : tensor<1x40x16x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x40x16x9xi32>
    return %2 : tensor<1x40x16x9xi32>
  }
  func.func @picks_from_other_channels(%x: tensor<1x6x8x9xi8>, %w: tensor<40x6x1x1xi8>) -> tensor<1x40x8x9xi8> {
    %c0 = arith.constant 0 : i32
    %last = arith.constant 39 : index
    %e = tensor.empty() : tensor<1x40x8x9xi32>
    %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x40x8x9xi32>) -> tensor<1x40x8x9xi32>
    %0 = sdx.conv ins(%x, %w : tensor<1x6x8x9xi8>, tensor<40x6x1x1xi8>) outs(%z : tensor<1x40x8x9xi32>)
        {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>, group = 1 : i64, input_unsigned} -> tensor<1x40x8x9xi32>
    %b = tensor.empty() : tensor<1x40x8x9xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%b : tensor<1x40x8x9xi8>) {
    ^bb0(%o: i8):
      %n = linalg.index 0 : index
      %c = linalg.index 1 : index
      %h = linalg.index 2 : index
      %k = linalg.index 3 : index
      %r = arith.subi %last, %c : index
      %p = tensor.extract %0[%n, %r, %h, %k] : tensor<1x40x8x9xi32>
      %t = arith.trunci %p : i32 to i8
      linalg.yield %t : i8
    } -> tensor<1x40x8x9xi8>
    return %1 : tensor<1x40x8x9xi8>
  }
}
