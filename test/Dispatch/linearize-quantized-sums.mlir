// RUN: onnx-opt %s --sdx-linearize-quantized-sums | FileCheck %s

#id = affine_map<(i) -> (i)>

// Two bytes, with zero points.
// CHECK-LABEL: @of_bytes
// CHECK-DAG:     %[[X:.*]] = arith.uitofp %{{.*}} : i8 to f32
// CHECK-DAG:     %[[Y:.*]] = arith.uitofp %{{.*}} : i8 to f32
// CHECK:         %[[S:.*]] = math.fma %[[Y]], %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    %{{.*}} = arith.constant
// CHECK-NEXT:    %[[V:.*]] = math.fma %[[X]], %{{.*}}, %[[S]] : f32
// CHECK-NOT:     arith.divf
// CHECK:         arith.cmpf olt, %{{.*}}, %[[V]] : f32
func.func @of_bytes(%a: tensor<8xi8>, %b: tensor<8xi8>, %e: tensor<8xi8>) -> tensor<8xi8> {
  %za = arith.constant 118.0 : f32
  %sa = arith.constant 0.00462536141 : f32
  %zb = arith.constant 138.0 : f32
  %sb = arith.constant 0.00549295 : f32
  %sy = arith.constant 0.00799147 : f32
  %low = arith.constant -97.0 : f32
  %high = arith.constant 158.0 : f32
  %zy = arith.constant 97 : i32
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xi8>, tensor<8xi8>) outs(%e : tensor<8xi8>) {
  ^bb0(%x: i8, %y: i8, %o: i8):
    %1 = arith.uitofp %x : i8 to f32
    %2 = arith.subf %1, %za : f32
    %3 = arith.mulf %2, %sa : f32
    %4 = arith.uitofp %y : i8 to f32
    %5 = arith.subf %4, %zb : f32
    %6 = arith.mulf %5, %sb : f32
    %7 = arith.addf %3, %6 : f32
    %8 = arith.divf %7, %sy : f32
    %9 = arith.cmpf olt, %low, %8 : f32
    %10 = arith.select %9, %8, %low : f32
    %11 = arith.cmpf olt, %10, %high : f32
    %12 = arith.select %11, %10, %high : f32
    %13 = math.roundeven %12 : f32
    %14 = arith.fptosi %13 : f32 to i32
    %15 = arith.addi %14, %zy : i32
    %16 = arith.trunci %15 : i32 to i8
    linalg.yield %16 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}

// A float that was rounded, and a byte. Neighbours of zero would be subnormal.
// CHECK-LABEL: @of_a_whole_number
// CHECK:         %[[W:.*]] = arith.subf
// CHECK:         %[[Y:.*]] = arith.uitofp
// CHECK-NOT:     e-4{{[0-9]}} : f32
// CHECK:         %[[S:.*]] = math.fma %[[Y]]
// CHECK:         math.fma %[[W]], %{{.*}}, %[[S]]
func.func @of_a_whole_number(%a: tensor<8xf32>, %b: tensor<8xi8>, %e: tensor<8xi8>) -> tensor<8xi8> {
  %far = arith.constant 0x4B400000 : f32
  %first = arith.constant -129.0 : f32
  %last = arith.constant 126.0 : f32
  %sa = arith.constant 0.0212435 : f32
  %sb = arith.constant 0.00914796 : f32
  %sy = arith.constant 0.0130774 : f32
  %low = arith.constant 0.0 : f32
  %high = arith.constant 255.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xf32>, tensor<8xi8>) outs(%e : tensor<8xi8>) {
  ^bb0(%x: f32, %y: i8, %o: i8):
    %c1 = arith.cmpf olt, %first, %x : f32
    %s1 = arith.select %c1, %x, %first : f32
    %c2 = arith.cmpf olt, %s1, %last : f32
    %s2 = arith.select %c2, %s1, %last : f32
    %1 = arith.addf %s2, %far : f32
    %2 = arith.subf %1, %far : f32
    %3 = arith.mulf %2, %sa : f32
    %4 = arith.uitofp %y : i8 to f32
    %6 = arith.mulf %4, %sb : f32
    %7 = arith.addf %3, %6 : f32
    %8 = arith.divf %7, %sy : f32
    %9 = arith.cmpf olt, %low, %8 : f32
    %10 = arith.select %9, %8, %low : f32
    %11 = arith.cmpf olt, %10, %high : f32
    %12 = arith.select %11, %10, %high : f32
    %13 = math.roundeven %12 : f32
    %14 = arith.fptosi %13 : f32 to i32
    %16 = arith.trunci %14 : i32 to i8
    linalg.yield %16 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}

// (6 x + 5 y) / 8 is half way between two integers for many pairs, which
// roundings of the model decide.
// CHECK-LABEL: @half_way
// CHECK-NOT:     math.fma
// CHECK:         arith.divf
func.func @half_way(%a: tensor<8xi8>, %b: tensor<8xi8>, %e: tensor<8xi8>) -> tensor<8xi8> {
  %sa = arith.constant 0.05 : f32
  %sb = arith.constant 0.06 : f32
  %sy = arith.constant 0.08 : f32
  %low = arith.constant 0.0 : f32
  %high = arith.constant 255.0 : f32
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<8xi8>, tensor<8xi8>) outs(%e : tensor<8xi8>) {
  ^bb0(%x: i8, %y: i8, %o: i8):
    %1 = arith.uitofp %x : i8 to f32
    %3 = arith.mulf %1, %sa : f32
    %4 = arith.uitofp %y : i8 to f32
    %6 = arith.mulf %4, %sb : f32
    %7 = arith.addf %3, %6 : f32
    %8 = arith.divf %7, %sy : f32
    %9 = arith.cmpf olt, %low, %8 : f32
    %10 = arith.select %9, %8, %low : f32
    %11 = arith.cmpf olt, %10, %high : f32
    %12 = arith.select %11, %10, %high : f32
    %13 = math.roundeven %12 : f32
    %14 = arith.fptosi %13 : f32 to i32
    %16 = arith.trunci %14 : i32 to i8
    linalg.yield %16 : i8
  } -> tensor<8xi8>
  return %0 : tensor<8xi8>
}
