// RUN: onnx-opt %s --sdx-fold-requantization | FileCheck %s

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: @with_a_zero_point
// CHECK:         %[[B:.*]] = arith.select
// CHECK:         %[[B:.*]] = arith.select
// CHECK-NEXT:    %[[FAR:.*]] = arith.constant 0x4B400000 : f32
// CHECK-NEXT:    %[[LESS:.*]] = arith.constant 0x4B400000 : f32
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[B]], %[[FAR]] : f32
// CHECK-NEXT:    %[[W:.*]] = arith.subf %[[S]], %[[LESS]] : f32
// CHECK-NEXT:    linalg.yield %[[W]]
func.func @with_a_zero_point(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %low = arith.constant -3.0 : f32
  %high = arith.constant 252.0 : f32
  %three = arith.constant 3.0 : f32
  %c3 = arith.constant 3 : i32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.cmpf olt, %low, %a : f32
    %2 = arith.select %1, %a, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.addi %6, %c3 : i32
    %8 = arith.trunci %7 : i32 to i8
    %9 = arith.uitofp %8 : i8 to f32
    %10 = arith.subf %9, %three : f32
    linalg.yield %10 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The byte is needed as well; without zero points.
// CHECK-LABEL: @and_the_byte
// CHECK:         %[[R:.*]] = math.roundeven %[[C:.*]] :
// CHECK-NEXT:    %[[I:.*]] = arith.fptosi %[[R]]
// CHECK-NEXT:    %[[B:.*]] = arith.trunci %[[I]]
// CHECK:         %[[S:.*]] = arith.addf %[[C]], %{{.*}} : f32
// CHECK-NEXT:    %[[W:.*]] = arith.subf %[[S]], %{{.*}} : f32
// CHECK-NEXT:    linalg.yield %[[B]], %[[W]]
func.func @and_the_byte(%x: tensor<8xf32>, %b: tensor<8xi8>, %e: tensor<8xf32>) -> (tensor<8xi8>, tensor<8xf32>) {
  %low = arith.constant -128.0 : f32
  %high = arith.constant 127.0 : f32
  %0:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%b, %e : tensor<8xi8>, tensor<8xf32>) {
  ^bb0(%a: f32, %o: i8, %p: f32):
    %1 = arith.cmpf olt, %low, %a : f32
    %2 = arith.select %1, %a, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    %8 = arith.sitofp %7 : i8 to f32
    linalg.yield %7, %8 : i8, f32
  } -> (tensor<8xi8>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xi8>, tensor<8xf32>
}

// Bounds of another type's bytes lose bits.
// CHECK-LABEL: @of_other_bounds
// CHECK:         arith.uitofp
func.func @of_other_bounds(%x: tensor<8xf32>, %e: tensor<8xf32>) -> tensor<8xf32> {
  %low = arith.constant -3.0 : f32
  %high = arith.constant 252.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.cmpf olt, %low, %a : f32
    %2 = arith.select %1, %a, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    %8 = arith.uitofp %7 : i8 to f32
    linalg.yield %8 : f32
  } -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A byte that saturates says so; one within narrower bounds does not.
// CHECK-LABEL: @saturating
// CHECK:         arith.trunci %{{.*}} {sdx.saturating = si8}
// CHECK-LABEL: @within
// CHECK:         arith.trunci %{{.*}} : i32 to i8
func.func @saturating(%x: tensor<8xf32>, %b: tensor<8xi8>) -> tensor<8xi8> {
  %low = arith.constant -131.0 : f32
  %high = arith.constant 124.0 : f32
  %c3 = arith.constant 3 : i32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%b : tensor<8xi8>) {
  ^bb0(%a: f32, %o: i8):
    %1 = arith.cmpf olt, %low, %a : f32
    %2 = arith.select %1, %a, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.addi %6, %c3 : i32
    %8 = arith.trunci %7 : i32 to i8
    linalg.yield %8 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
func.func @within(%x: tensor<8xf32>, %b: tensor<8xi8>) -> tensor<8xi8> {
  %low = arith.constant 0.0 : f32
  %high = arith.constant 6.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%b : tensor<8xi8>) {
  ^bb0(%a: f32, %o: i8):
    %1 = arith.cmpf olt, %low, %a : f32
    %2 = arith.select %1, %a, %low : f32
    %3 = arith.cmpf olt, %2, %high : f32
    %4 = arith.select %3, %2, %high : f32
    %5 = math.roundeven %4 : f32
    %6 = arith.fptosi %5 : f32 to i32
    %8 = arith.trunci %6 : i32 to i8
    linalg.yield %8 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
