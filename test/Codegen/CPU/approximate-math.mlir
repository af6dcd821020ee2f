// RUN: onnx-opt %s -sdx-cpu-approximate-math | FileCheck %s

// CHECK-LABEL: func.func @exp
// CHECK-NOT:     math.exp
// CHECK:         vector.fma
// CHECK:         arith.shli {{.*}} : vector<16xi32>
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// Half precision goes through single.
// CHECK-LABEL: func.func @tanh_f16
// CHECK:         arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK-NOT:     math.tanh
// CHECK:         arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
func.func @tanh_f16(%x: vector<16xf16>) -> vector<16xf16> {
  %y = math.tanh %x : vector<16xf16>
  return %y : vector<16xf16>
}

// CHECK-LABEL: func.func @rsqrt
// CHECK:         %[[ROOT:.*]] = llvm.intr.sqrt
// CHECK:         arith.divf %{{.*}}, %[[ROOT]]
func.func @rsqrt(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  return %y : f32
}

// Double precision is the library's; LLVM makes the calls.
// CHECK-LABEL: func.func @exp_f64
// CHECK:         llvm.intr.exp(%{{.*}}) : (vector<8xf64>) -> vector<8xf64>
func.func @exp_f64(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.exp %x : vector<8xf64>
  return %y : vector<8xf64>
}

// Subnormal numbers are scaled before their exponent is taken.
// CHECK-LABEL: func.func @log
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X]]
// CHECK:         %[[SCALED:.*]] = arith.mulf %[[X]]
// CHECK:         arith.select %[[SMALL]], %[[SCALED]], %[[X]]
// CHECK-NOT:     math.log
// CHECK-NOT:     llvm.intr.log
func.func @log(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.log %x : vector<16xf32>
  return %y : vector<16xf32>
}
