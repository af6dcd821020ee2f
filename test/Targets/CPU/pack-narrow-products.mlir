// RUN: onnx-opt %s --sdx-normalize-contractions --cpu-pack-contractions --split-input-file | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: onnx-opt %s --target=cooperlake --sdx-normalize-contractions --cpu-pack-contractions --split-input-file | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: onnx-opt %s --target=haswell --sdx-normalize-contractions --cpu-pack-contractions --split-input-file | FileCheck %s --check-prefix=PAIRS

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// 6 values of k make two groups of four, 40 columns two panels of 32: zeros fill
// them up.
// CHECK-LABEL: @bytes
// CHECK: %[[ALL:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [6, 40] [1, 1] : tensor<6x40xi8> into tensor<8x64xi8>
// CHECK: %[[SPLIT:.*]] = tensor.expand_shape %[[ALL]] {{.*}} into tensor<2x4x2x32xi8>
// CHECK: %[[MOVED:.*]] = linalg.transpose ins(%[[SPLIT]] {{.*}} permutation = [2, 0, 3, 1]
// CHECK: %[[PACKED:.*]] = tensor.collapse_shape %[[MOVED]] {{.*}} into tensor<2x2x128xi8>
// CHECK: cpu.packed_matmul ins(%arg0, %[[PACKED]] : tensor<?x6xi8>, tensor<2x2x128xi8>) outs(%{{.*}} : tensor<?x40xi32>)
func.func @bytes(%a: tensor<?x6xi8>, %c: tensor<?x40xi32>) -> tensor<?x40xi32> {
  %b = arith.constant dense<3> : tensor<6x40xi8>
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%zero : i32) outs(%c : tensor<?x40xi32>) -> tensor<?x40xi32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x6xi8>, tensor<6x40xi8>) outs(%f : tensor<?x40xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extui %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<?x40xi32>
  return %r : tensor<?x40xi32>
}

// -----

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>

// Signed times signed is not what the instructions multiply.
// CHECK-LABEL: @both_signed
// CHECK-NOT: cpu.packed_matmul
func.func @both_signed(%a: tensor<4x8xi8>, %b: tensor<8x32xi8>, %c: tensor<4x32xi32>) -> tensor<4x32xi32> {
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%zero : i32) outs(%c : tensor<4x32xi32>) -> tensor<4x32xi32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x8xi8>, tensor<8x32xi8>) outs(%f : tensor<4x32xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extsi %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<4x32xi32>
  return %r : tensor<4x32xi32>
}

// -----

// A weight of bf16 is packed by twos of k, or becomes one of f32.
// CHECK-LABEL: @bf16
// BF16: %[[ALL:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [5, 40] [1, 1] : tensor<5x40xbf16> into tensor<6x64xbf16>
// BF16: %[[SPLIT:.*]] = tensor.expand_shape %[[ALL]] {{.*}} into tensor<3x2x2x32xbf16>
// BF16: %[[MOVED:.*]] = linalg.transpose ins(%[[SPLIT]] {{.*}} permutation = [2, 0, 3, 1]
// BF16: %[[PACKED:.*]] = tensor.collapse_shape %[[MOVED]] {{.*}} into tensor<2x3x64xbf16>
// BF16: cpu.packed_matmul ins(%arg0, %[[PACKED]] : tensor<?x5xbf16>, tensor<2x3x64xbf16>) outs(%{{.*}} : tensor<?x40xf32>)
// WIDE-DAG: %[[LHS:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<?x5xbf16>)
// WIDE-DAG: %[[RHS:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<5x40xbf16>)
// WIDE: arith.extf %{{.*}} : bf16 to f32
// WIDE: cpu.pack_rhs
// WIDE: cpu.packed_matmul ins(%{{.*}} : tensor<?x5xf32>, tensor<2x5x32xf32>)
func.func @bf16(%a: tensor<?x5xbf16>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %b = arith.constant dense<1.5> : tensor<5x40xbf16>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x40xf32>) -> tensor<?x40xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x5xbf16>, tensor<5x40xbf16>) outs(%f : tensor<?x40xf32>) -> tensor<?x40xf32>
  return %r : tensor<?x40xf32>
}

// -----

// What is no weight is of f32 in any case, and its transpose is left to the packing.
// CHECK-LABEL: @no_weight
// CHECK: cpu.pack_rhs transposed ins(%{{.*}} : tensor<?x8x5xf32>)
// CHECK: cpu.packed_matmul ins(%{{.*}} : tensor<?x6x5xf32>, tensor<?x1x5x32xf32>)
func.func @no_weight(%a: tensor<?x6x5xbf16>, %b: tensor<?x8x5xbf16>, %c: tensor<?x6x8xf32>, %e: tensor<?x5x8xbf16>) -> tensor<?x6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%c : tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  %t = linalg.transpose ins(%b : tensor<?x8x5xbf16>) outs(%e : tensor<?x5x8xbf16>) permutation = [0, 2, 1]
  %r = linalg.batch_matmul ins(%a, %t : tensor<?x6x5xbf16>, tensor<?x5x8xbf16>) outs(%f : tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
  return %r : tensor<?x6x8xf32>
}

// -----

#l = affine_map<(b, m, n, k) -> (b, m, k)>
#r = affine_map<(b, m, n, k) -> (b, k, n)>
#o = affine_map<(b, m, n, k) -> (b, m, n)>

// What is computed is packed by a kernel, which takes rows of several heads as
// they lie and in place of a transpose. Without an instruction for bytes it
// widens them, or floats are multiplied, which are exact sums of 64 products.
// CHECK-LABEL: @scores
// BF16: %[[P:.*]] = cpu.pack_rhs transposed ins(%arg1 : tensor<2x?x12x64xi8>) outs(%{{.*}} : tensor<24x?x16x128xi8>) {packing = #cpu.packing<i8, panel = 32>}
// BF16: cpu.packed_matmul ins(%arg0, %[[P]] : tensor<24x?x64xi8>, tensor<24x?x16x128xi8>) outs(%{{.*}} : tensor<24x?x?xi32>)
// WIDE: arith.uitofp
// WIDE: arith.sitofp
// WIDE: %[[S:.*]] = cpu.packed_matmul ins(%{{.*}} : tensor<24x?x64xf32>, tensor<24x?x64x32xf32>)
// WIDE: linalg.generic {{.*}} ins(%[[S]] :
// WIDE: arith.fptosi
// PAIRS-LABEL: @scores
// PAIRS: %[[P:.*]] = cpu.pack_rhs transposed ins(%arg1 : tensor<2x?x12x64xi8>) outs(%{{.*}} : tensor<24x?x32x64xi16>) {packing = #cpu.packing<i16, panel = 32>}
// PAIRS: %[[A:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<24x?x64xi8>) outs(%{{.*}} : tensor<24x?x64xi16>)
// PAIRS: arith.extui
// PAIRS: cpu.packed_matmul ins(%[[A]], %[[P]] : tensor<24x?x64xi16>, tensor<24x?x32x64xi16>)
func.func @scores(%a: tensor<24x?x64xi8>, %k: tensor<2x?x12x64xi8>, %t: tensor<2x12x64x?xi8>, %c: tensor<24x?x?xi32>) -> tensor<24x?x?xi32> {
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%zero : i32) outs(%c : tensor<24x?x?xi32>) -> tensor<24x?x?xi32>
  %kt = linalg.transpose ins(%k : tensor<2x?x12x64xi8>) outs(%t : tensor<2x12x64x?xi8>) permutation = [0, 2, 3, 1]
  %b = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x12x64x?xi8> into tensor<24x64x?xi8>
  %r = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<24x?x64xi8>, tensor<24x64x?xi8>) outs(%f : tensor<24x?x?xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extui %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<24x?x?xi32>
  return %r : tensor<24x?x?xi32>
}

// -----

#l = affine_map<(b, m, n, k) -> (b, m, k)>
#r = affine_map<(b, m, n, k) -> (b, k, n)>
#o = affine_map<(b, m, n, k) -> (b, m, n)>

// The number of values of k may be open.
// CHECK-LABEL: @open_depth
// CHECK: %[[P:.*]] = cpu.pack_rhs ins(%arg1 : tensor<4x?x64xi8>) outs(%{{.*}} : tensor<4x2x?x128xi8>)
// CHECK: cpu.packed_matmul ins(%arg0, %[[P]] : tensor<4x9x?xi8>, tensor<4x2x?x128xi8>)
func.func @open_depth(%a: tensor<4x9x?xi8>, %b: tensor<4x?x64xi8>, %c: tensor<4x9x64xi32>) -> tensor<4x9x64xi32> {
  %zero = arith.constant 0 : i32
  %f = linalg.fill ins(%zero : i32) outs(%c : tensor<4x9x64xi32>) -> tensor<4x9x64xi32>
  %r = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<4x9x?xi8>, tensor<4x?x64xi8>) outs(%f : tensor<4x9x64xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %0 = arith.extui %x : i8 to i32
    %1 = arith.extsi %y : i8 to i32
    %2 = arith.muli %0, %1 : i32
    %3 = arith.addi %o, %2 : i32
    linalg.yield %3 : i32
  } -> tensor<4x9x64xi32>
  return %r : tensor<4x9x64xi32>
}
