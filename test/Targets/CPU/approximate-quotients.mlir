// RUN: onnx-opt %s -cpu-approximate-math | FileCheck %s

// The quotient by a constant that is rounded is a product by the reciprocal and
// what that leaves over; infinity leaves nothing. Others are divided.
// CHECK-LABEL: func.func @quantize
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>, %[[D:.*]]: vector<16xf32>
// CHECK:         %[[Q:.*]] = arith.mulf %[[X]], %{{.*}} : vector<16xf32>
// CHECK:         %[[N:.*]] = arith.negf %[[Q]]
// CHECK:         %[[R:.*]] = vector.fma %[[N]], %{{.*}}, %[[X]]
// CHECK:         %[[T:.*]] = vector.fma %[[R]], %{{.*}}, %[[Q]]
// CHECK:         %[[O:.*]] = arith.cmpf ord, %[[T]], %[[T]]
// CHECK:         %[[S:.*]] = arith.select %[[O]], %[[T]], %[[Q]]
// CHECK:         llvm.intr.roundeven(%[[S]])
// CHECK:         arith.divf %[[X]], %[[D]]
// A reciprocal of 2^-126 is a number, of 2^-128 infinity.
// CHECK:         arith.divf %[[X]], %{{.*}}
module attributes {sdx.target = #cpu.target<traits = fused_multiply_add>} {
  func.func @quantize(%x: vector<16xf32>, %d: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>) {
    %c = arith.constant dense<0.3> : vector<16xf32>
    %0 = arith.divf %x, %c : vector<16xf32>
    %1 = math.roundeven %0 : vector<16xf32>
    %2 = arith.divf %x, %d : vector<16xf32>
    %3 = math.roundeven %2 : vector<16xf32>
    %small = arith.constant dense<2.938735877055719e-39> : vector<16xf32>
    %4 = arith.divf %x, %small : vector<16xf32>
    %5 = math.roundeven %4 : vector<16xf32>
    return %1, %3, %5 : vector<16xf32>, vector<16xf32>, vector<16xf32>
  }
}
