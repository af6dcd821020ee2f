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
module attributes {sdx.target = #cpu.target<traits = "fused_multiply_add|rounds_to_integer">} {
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

  // By an argument that is said to be normal, too, whose reciprocal is computed
  // once; between bounds; and the integer is rounded to at once.
  // CHECK-LABEL: func.func @bounded
  // CHECK-SAME:    %[[X:[^:]*]]: vector<16xf32>, %[[C:[^:]*]]: f32 {sdx.normal}, %[[D:[^:]*]]: f32
  // CHECK:         %[[I:.*]] = arith.divf %{{.*}}, %[[C]] : f32
  // CHECK:         vector.broadcast %[[I]]
  // CHECK-NOT:     arith.divf
  // CHECK:         %[[P:.*]] = arith.mulf %[[X]]
  // CHECK:         %[[O:.*]] = arith.cmpf olt, %[[P]], %{{.*}}
  // CHECK:         arith.select %[[O]], %[[P]]
  // CHECK:         vector.fma
  // CHECK:         %[[Q:.*]] = vector.fma
  // CHECK:         %[[B:.*]] = vector.broadcast %{{.*}} : f32 to vector<16xf32>
  // CHECK:         arith.cmpf olt, %[[B]], %[[Q]]
  // CHECK:         %[[L:.*]] = arith.select %{{.*}}, %[[Q]], %{{.*}}
  // CHECK:         %[[H:.*]] = arith.select %{{.*}}, %[[L]], %{{.*}}
  // CHECK:         llvm.intr.lrint(%[[H]])
  // CHECK:         arith.divf
  func.func @bounded(%x: vector<16xf32>, %c: f32 {sdx.normal}, %d: f32) -> (vector<16xi32>, vector<16xi32>) {
    %l = arith.constant -3.0 : f32
    %high = arith.constant dense<252.0> : vector<16xf32>
    %cs = vector.broadcast %c : f32 to vector<16xf32>
    %0 = arith.divf %x, %cs : vector<16xf32>
    %low = vector.broadcast %l : f32 to vector<16xf32>
    %1 = arith.cmpf olt, %low, %0 : vector<16xf32>
    %lowest = vector.broadcast %l : f32 to vector<16xf32>
    %2 = arith.select %1, %0, %lowest : vector<16xi1>, vector<16xf32>
    %3 = arith.cmpf olt, %2, %high : vector<16xf32>
    %4 = arith.select %3, %2, %high : vector<16xi1>, vector<16xf32>
    %5 = math.roundeven %4 : vector<16xf32>
    %6 = arith.fptosi %5 : vector<16xf32> to vector<16xi32>
    %ds = vector.broadcast %d : f32 to vector<16xf32>
    %7 = arith.divf %x, %ds : vector<16xf32>
    %8 = math.roundeven %7 : vector<16xf32>
    %9 = arith.fptosi %8 : vector<16xf32> to vector<16xi32>
    return %6, %9 : vector<16xi32>, vector<16xi32>
  }

  // Of what saturates at the lower end only the upper bound is left.
  // CHECK-LABEL: func.func @saturating
  // CHECK-NOT:     arith.divf
  // CHECK:         %[[O:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}}
  // CHECK:         arith.select %[[O]]
  // CHECK:         vector.fma
  // CHECK:         %[[Q:.*]] = vector.fma
  // CHECK:         %[[H:.*]] = arith.cmpf olt, %{{.*}}, %[[Q]]
  // CHECK:         arith.select %[[H]], %{{.*}}, %[[Q]]
  func.func @saturating(%x: vector<16xf32>) -> vector<16xi32> {
    %c = arith.constant dense<0.3> : vector<16xf32>
    %high = arith.constant dense<252.0> : vector<16xf32>
    %0 = arith.divf %x, %c : vector<16xf32>
    %1 = arith.cmpf olt, %high, %0 : vector<16xf32>
    %2 = arith.select %1, %high, %0 : vector<16xi1>, vector<16xf32>
    %3 = math.roundeven %2 : vector<16xf32>
    %4 = arith.fptosi %3 : vector<16xf32> to vector<16xi32>
    return %4 : vector<16xi32>
  }
}
