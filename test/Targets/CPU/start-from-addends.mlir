// RUN: onnx-opt %s -cpu-start-from-addends | FileCheck %s

#all = affine_map<(n, h, w, c) -> (n, h, w, c)>
#column = affine_map<(n, h, w, c) -> (c)>

// A bias and what zero points ask for are what the sums start from.
// CHECK-LABEL: func.func private @channels
// CHECK-SAME:    %[[X:[^:]*]]: tensor<1x14x14x64xi8>, %[[W:[^:]*]]: tensor<2x16x128xi8>, %[[B:[^:]*]]: tensor<64xi32>, %[[F:[^:]*]]: tensor<64xi32>
// CHECK:         %[[ZEROS:.*]] = linalg.fill
// CHECK:         %[[START:.*]] = linalg.generic {{.*}} ins(%[[F]], %[[B]] : tensor<64xi32>, tensor<64xi32>) outs(%[[ZEROS]]
// CHECK-NEXT:    ^bb0(%[[S:.*]]: i32, %[[BIAS:.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT:      %[[M:.*]] = arith.muli %[[S]], %{{.*}}
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant 0
// CHECK-NEXT:      %[[N:.*]] = arith.subi %[[ZERO]], %[[M]]
// CHECK-NEXT:      %[[T:.*]] = arith.addi %[[N]], %[[BIAS]]
// CHECK-NEXT:      linalg.yield %[[T]]
// CHECK:         %[[Y:.*]] = cpu.narrow_conv ins(%[[X]], %[[W]] {{.*}} outs(%[[START]]
// CHECK:         linalg.generic {{.*}} ins(%[[Y]],
// CHECK-NEXT:    ^bb0(%[[SUM:[^:]*]]: i32,
// CHECK-NEXT:      %[[V:.*]] = arith.sitofp %[[SUM]]
// CHECK-NEXT:      linalg.yield %[[V]]
func.func private @channels(%x: tensor<1x14x14x64xi8>, %w: tensor<2x16x128xi8>, %b: tensor<64xi32>, %f: tensor<64xi32>) -> tensor<1x14x14x64xf32> attributes {sdx.kernel} {
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x14x14x64xi8>, tensor<2x16x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  %zero_point = arith.constant 125 : i32
  %o = tensor.empty() : tensor<1x14x14x64xf32>
  %1 = linalg.generic {indexing_maps = [#all, #column, #column, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0, %f, %b : tensor<1x14x14x64xi32>, tensor<64xi32>, tensor<64xi32>) outs(%o : tensor<1x14x14x64xf32>) {
  ^bb0(%s: i32, %sf: i32, %sb: i32, %old: f32):
    %m = arith.muli %sf, %zero_point : i32
    %d = arith.subi %s, %m : i32
    %a = arith.addi %d, %sb : i32
    %v = arith.sitofp %a : i32 to f32
    linalg.yield %v : f32
  } -> tensor<1x14x14x64xf32>
  return %1 : tensor<1x14x14x64xf32>
}

// Numbers of positions are added as before.
// CHECK-LABEL: func.func private @positions
// CHECK:         cpu.narrow_conv {{.*}} outs(%{{.*}} : tensor<1x14x14x64xi32>)
// CHECK:         linalg.generic
// CHECK:           arith.addi
func.func private @positions(%x: tensor<1x14x14x64xi8>, %w: tensor<2x16x128xi8>, %b: tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32> attributes {sdx.kernel} {
  %c0 = arith.constant 0 : i32
  %e = tensor.empty() : tensor<1x14x14x64xi32>
  %z = linalg.fill ins(%c0 : i32) outs(%e : tensor<1x14x14x64xi32>) -> tensor<1x14x14x64xi32>
  %0 = cpu.narrow_conv ins(%x, %w : tensor<1x14x14x64xi8>, tensor<2x16x128xi8>) outs(%z : tensor<1x14x14x64xi32>)
      {kernel_shape = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = array<i64: 0, 0>, pads_end = array<i64: 0, 0>,
       group = 1 : i64, padding = 0 : i64, packing = #cpu.packing<i8, panel = 32>} -> tensor<1x14x14x64xi32>
  %o = tensor.empty() : tensor<1x14x14x64xi32>
  %1 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0, %b : tensor<1x14x14x64xi32>, tensor<1x14x14x64xi32>) outs(%o : tensor<1x14x14x64xi32>) {
  ^bb0(%s: i32, %sb: i32, %old: i32):
    %a = arith.addi %s, %sb : i32
    linalg.yield %a : i32
  } -> tensor<1x14x14x64xi32>
  return %1 : tensor<1x14x14x64xi32>
}
