// RUN: onnx-opt %s --cpu-pack-dequant-matmuls --split-input-file | FileCheck %s

// Two integers of 4 bits in a byte are of columns half a panel apart, four bytes
// beside each other of neighbours along K. Columns past the last of 40 are zero.
// Scales of 16 bits stay so.
// CHECK-LABEL: @four_bits
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x12x64xi8>)
// CHECK: %[[WORD:.*]] = arith.divui %{{.*}}, %c4
// CHECK: %[[N:.*]] = arith.addi %{{.*}}, %[[WORD]]
// CHECK: %[[PLACE:.*]] = arith.remui %{{.*}}, %c4
// CHECK: %[[DEPTH:.*]] = arith.addi %{{.*}}, %[[PLACE]]
// CHECK: %[[AT:.*]] = arith.divui %[[DEPTH]], %c32
// CHECK: %[[FIRST:.*]] = arith.addi %[[N]], %c0
// CHECK: %[[THERE:.*]] = arith.cmpi sle, %[[FIRST]], %c39
// CHECK: %[[COLUMN:.*]] = arith.minsi %[[FIRST]], %c39
// CHECK: tensor.extract %arg1[%[[COLUMN]], %[[AT]], %{{.*}}]
// CHECK: %[[NUMBER:.*]] = arith.andi %{{.*}}, %c15_i32
// CHECK: arith.select %[[THERE]], %[[NUMBER]], %c0_i32
// CHECK: arith.addi %[[N]], %c16
// CHECK: arith.shli %{{.*}}, %c4_i32
// CHECK: arith.trunci %{{.*}} : i32 to i8
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x1x32xf16>)
// CHECK: %[[SCALE:.*]] = tensor.extract %arg2[
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-NEXT: arith.select %{{.*}}, %[[SCALE]], %[[ZERO]]
// CHECK: %[[R:.*]] = cpu.packed_matmul ins(%arg0, %[[W]], %[[S]] : tensor<?x48xf32>, tensor<2x12x64xi8>, tensor<2x2x1x32xf16>) outs(%arg3 : tensor<?x40xf32>)
// CHECK-SAME: block = 32
// CHECK-SAME: #cpu.packing<u4, panel = 32>, sdx.rounded = i8, whole_zeros}
// CHECK: return %[[R]]
func.func @four_bits(%a: tensor<?x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xf16>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf16>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64, sdx.rounded = i8} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

// Zero points come with the scales; floats need not be whole numbers. Numbers of
// 8 bits have a byte each.
// CHECK-LABEL: @eight_bits
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x10x128xi8>)
// CHECK: arith.andi %{{.*}}, %c255_i32
// CHECK-NOT: arith.andi
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x3x2x32xf32>)
// CHECK: %[[IS_SCALE:.*]] = arith.cmpi eq
// CHECK: %[[DOUBLE:.*]] = tensor.extract %arg2[
// CHECK: %[[SCALE:.*]] = arith.truncf %[[DOUBLE]] : f64 to f32
// CHECK: %[[ZERO:.*]] = tensor.extract %arg3[{{.*}}] : tensor<20x3xf32>
// CHECK: arith.select %[[IS_SCALE]], %[[SCALE]], %[[ZERO]]
// CHECK: cpu.packed_matmul ins(%arg0, %[[W]], %[[S]] :
// CHECK-SAME: block = 16
// CHECK-SAME: #cpu.packing<u8, panel = 32>} ->
func.func @eight_bits(%a: tensor<4x40xf32>, %w: tensor<20x3x16xi8>, %s: tensor<20x3xf64>, %z: tensor<20x3xf32>, %c: tensor<4x20xf32>) -> tensor<4x20xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<4x40xf32>, tensor<20x3x16xi8>, tensor<20x3xf64>, tensor<20x3xf32>) outs(%c : tensor<4x20xf32>)
      {bits = 8 : i64, block = 16 : i64} -> tensor<4x20xf32>
  return %0 : tensor<4x20xf32>
}

// -----

// Zero points of 2 bits lie in bytes as weights do: those of block b in byte
// b / 4.
// CHECK-LABEL: @two_bits
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x18x32xi8>)
// CHECK-COUNT-4: arith.andi %{{.*}}, %c3_i32
// CHECK: arith.shli %{{.*}}, %c6_i32
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x5x2x32xf32>)
// CHECK: %[[BLOCK:.*]] = linalg.index 1
// CHECK: %[[BIT:.*]] = arith.muli %[[BLOCK]], %c2
// CHECK: %[[BYTE:.*]] = arith.divui %[[BIT]], %c8
// CHECK: %[[RAW:.*]] = tensor.extract %arg3[%{{.*}}, %[[BYTE]]] : tensor<40x2xi8>
// CHECK: arith.extui %[[RAW]]
// CHECK: %[[INTEGER:.*]] = arith.andi %{{.*}}, %c3_i32
// CHECK: arith.sitofp %[[INTEGER]]
// CHECK: cpu.packed_matmul ins(%arg0, %[[W]], %[[S]] :
// CHECK-SAME: block = 16
// CHECK-SAME: #cpu.packing<u2, panel = 32>, whole_zeros}
func.func @two_bits(%a: tensor<?x72xf32>, %w: tensor<40x5x4xi8>, %s: tensor<40x5xf32>, %z: tensor<40x2xi8>, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %0 = sdx.dequant_matmul ins(%a, %w, %s, %z : tensor<?x72xf32>, tensor<40x5x4xi8>, tensor<40x5xf32>, tensor<40x2xi8>) outs(%c : tensor<?x40xf32>)
      {bits = 2 : i64, block = 16 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

// Floats are packed as integers are.
// CHECK-LABEL: @floats
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x12x64xi8>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x1x32xbf16>)
// CHECK: cpu.packed_matmul ins(%arg0, %[[W]], %[[S]] :
// CHECK-SAME: #cpu.packing<f4, panel = 32>, whole_zeros}
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x12x128xi8>)
// CHECK: cpu.packed_matmul
// CHECK-SAME: #cpu.packing<f8e4m3, panel = 32>, whole_zeros}
// CHECK: cpu.packed_matmul
// CHECK-SAME: #cpu.packing<f8e5m2, panel = 32>, whole_zeros}
func.func @floats(%a: tensor<?x48xf32>, %w: tensor<40x2x16xi8>, %s: tensor<40x2xbf16>, %v: tensor<40x2x32xi8>, %c: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<?x40xf32>, tensor<?x40xf32>) {
  %0 = sdx.dequant_matmul ins(%a, %w, %s : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xbf16>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64, element = f4E2M1FN} -> tensor<?x40xf32>
  %1 = sdx.dequant_matmul ins(%a, %v, %s : tensor<?x48xf32>, tensor<40x2x32xi8>, tensor<40x2xbf16>) outs(%c : tensor<?x40xf32>)
      {bits = 8 : i64, block = 32 : i64, element = f8E4M3FN} -> tensor<?x40xf32>
  %2 = sdx.dequant_matmul ins(%a, %v, %s : tensor<?x48xf32>, tensor<40x2x32xi8>, tensor<40x2xbf16>) outs(%c : tensor<?x40xf32>)
      {bits = 8 : i64, block = 32 : i64, element = f8E5M2} -> tensor<?x40xf32>
  return %0, %1, %2 : tensor<?x40xf32>, tensor<?x40xf32>, tensor<?x40xf32>
}

// -----

// Of constants that a run chooses one of all are packed, and the product reads a
// part of that.
// CHECK-LABEL: @chosen
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3x2x12x64xi8>)
// CHECK: %[[ONE:.*]] = linalg.index 0
// CHECK: tensor.extract %{{.*}}[%[[ONE]], %{{.*}}] : tensor<3x40x2x16xi8>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3x2x2x2x32xf32>)
// CHECK: %[[ONE:.*]] = linalg.index 0
// CHECK: tensor.extract %{{.*}}[%[[ONE]], %{{.*}}] : tensor<3x40x2xf32>
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}] : tensor<3x40x1xi8>
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W]][%arg1, 0, 0, 0] [1, 2, 12, 64]
// CHECK: %[[W2:.*]] = tensor.collapse_shape %[[W1]]
// CHECK: %[[S1:.*]] = tensor.extract_slice %[[S]][%arg1, 0, 0, 0, 0] [1, 2, 2, 2, 32]
// CHECK: %[[S2:.*]] = tensor.collapse_shape %[[S1]]
// CHECK: cpu.packed_matmul ins(%arg0, %[[W2]], %[[S2]] : tensor<?x48xf32>, tensor<2x12x64xi8>, tensor<2x2x2x32xf32>)
func.func @chosen(%a: tensor<?x48xf32>, %i: index, %c: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %w = arith.constant dense_resource<bytes> : tensor<3x40x32xi8>
  %s = arith.constant dense_resource<scales> : tensor<1x3x80xf32>
  %z = arith.constant dense<8> : tensor<3x40x1xi8>
  %w1 = tensor.extract_slice %w[%i, 0, 0] [1, 40, 32] [1, 1, 1] : tensor<3x40x32xi8> to tensor<40x32xi8>
  %w2 = tensor.expand_shape %w1 [[0], [1, 2]] output_shape [40, 2, 16] : tensor<40x32xi8> into tensor<40x2x16xi8>
  %s1 = tensor.extract_slice %s[0, %i, 0] [1, 1, 80] [1, 1, 1] : tensor<1x3x80xf32> to tensor<1x1x80xf32>
  %s2 = tensor.collapse_shape %s1 [[0, 1, 2]] : tensor<1x1x80xf32> into tensor<80xf32>
  %s3 = tensor.expand_shape %s2 [[0, 1]] output_shape [40, 2] : tensor<80xf32> into tensor<40x2xf32>
  %z1 = tensor.extract_slice %z[%i, 0, 0] [1, 40, 1] [1, 1, 1] : tensor<3x40x1xi8> to tensor<40x1xi8>
  %0 = sdx.dequant_matmul ins(%a, %w2, %s3, %z1 : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>, tensor<40x1xi8>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  return %0 : tensor<?x40xf32>
}

// -----

// Not of what a run computes, nor where a piece has gaps: only what is chosen is
// packed.
// CHECK-LABEL: @not_chosen
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x12x64xi8>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x2x1x32xf32>)
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x12x64xi8>)
func.func @not_chosen(%a: tensor<?x48xf32>, %i: index, %w: tensor<3x40x2x16xi8>, %c: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<?x40xf32>) {
  %v = arith.constant dense_resource<bytes> : tensor<40x3x2x16xi8>
  %s = arith.constant dense_resource<scales> : tensor<3x40x2xf32>
  %w1 = tensor.extract_slice %w[%i, 0, 0, 0] [1, 40, 2, 16] [1, 1, 1, 1] : tensor<3x40x2x16xi8> to tensor<40x2x16xi8>
  %v1 = tensor.extract_slice %v[0, %i, 0, 0] [40, 1, 2, 16] [1, 1, 1, 1] : tensor<40x3x2x16xi8> to tensor<40x2x16xi8>
  %s1 = tensor.extract_slice %s[%i, 0, 0] [1, 40, 2] [1, 1, 1] : tensor<3x40x2xf32> to tensor<40x2xf32>
  %0 = sdx.dequant_matmul ins(%a, %w1, %s1 : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  %1 = sdx.dequant_matmul ins(%a, %v1, %s1 : tensor<?x48xf32>, tensor<40x2x16xi8>, tensor<40x2xf32>) outs(%c : tensor<?x40xf32>)
      {bits = 4 : i64, block = 32 : i64} -> tensor<?x40xf32>
  return %0, %1 : tensor<?x40xf32>, tensor<?x40xf32>
}

// -----

// CHECK-LABEL: @buffers
// CHECK: sdx.dequant_matmul
func.func @buffers(%a: memref<4x48xf32>, %w: memref<40x2x16xi8>, %s: memref<40x2xf32>, %c: memref<4x40xf32>) {
  sdx.dequant_matmul ins(%a, %w, %s : memref<4x48xf32>, memref<40x2x16xi8>, memref<40x2xf32>) outs(%c : memref<4x40xf32>)
      {bits = 4 : i64, block = 32 : i64}
  return
}

{-#
  dialect_resources: {
    builtin: {
      bytes: "0x0100000000",
      scales: "0x0400000000000000"
    }
  }
#-}
