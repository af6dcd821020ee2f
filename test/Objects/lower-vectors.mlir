// RUN: onnx-opt %s -sdx-lower-vectors | FileCheck %s

// CHECK-LABEL: func @mask
// CHECK-NOT: vector.create_mask
// CHECK: arith.cmpi sgt
func.func @mask(%n: index) -> vector<8xi1> {
  %mask = vector.create_mask %n : vector<8xi1>
  return %mask : vector<8xi1>
}

// CHECK-LABEL: func @read
// CHECK: vector.load
func.func @read(%x: memref<16xf32>, %i: index) -> vector<8xf32> {
  %zero = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%i], %zero {in_bounds = [true]}
      : memref<16xf32>, vector<8xf32>
  return %v : vector<8xf32>
}

// CHECK-LABEL: func @matrix
// CHECK-COUNT-2: vector.fma {{.*}} : vector<4xf32>
func.func @matrix(%a: vector<2x4xf32>) -> vector<2x4xf32> {
  %r = vector.fma %a, %a, %a : vector<2x4xf32>
  return %r : vector<2x4xf32>
}
