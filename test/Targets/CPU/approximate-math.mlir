// RUN: onnx-opt %s --target=haswell -cpu-approximate-math | FileCheck %s
// RUN: onnx-opt %s --target=skylake-avx512 -cpu-approximate-math | FileCheck %s --check-prefix=AVX512
// RUN: onnx-opt %s --target=x86-64 -cpu-approximate-math | FileCheck %s --check-prefix=SSE

// CHECK-LABEL: func.func @exp
// CHECK-NOT:     math.exp
// CHECK:         vector.fma
// CHECK:         arith.shli {{.*}} : vector<16xi32>
// AVX512-LABEL: func.func @exp
// AVX512:        %[[KEPT:.*]] = arith.cmpf uge, %arg0, %{{.*}}
// AVX512-NOT:    arith.shli
// AVX512:        %[[MASK:.*]] = llvm.bitcast %[[KEPT]] : vector<16xi1> to i16
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({{.*}}, %[[MASK]],
// AVX512-NOT:    arith.shli
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// A term of a softmax that would be subnormal is 0: scaled once.
// CHECK-LABEL: func.func @softmax_term
// CHECK:         %[[KEPT:.*]] = arith.cmpf uge, %arg0, %{{.*}}
// CHECK:         arith.select %[[KEPT]], %arg0
// CHECK-COUNT-1: arith.shli {{.*}} : vector<16xi32>
// CHECK-NOT:     arith.shli
// CHECK:         arith.select %[[KEPT]]
// AVX512-LABEL: func.func @softmax_term
// AVX512:        %[[KEPT:.*]] = arith.cmpf uge, %arg0, %{{.*}}
// AVX512-NOT:    arith.select
// AVX512:        %[[MASK:.*]] = llvm.bitcast %[[KEPT]] : vector<16xi1> to i16
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"({{.*}}, %[[MASK]],
func.func @softmax_term(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x {sdx.softmax_term} : vector<16xf32>
  return %y : vector<16xf32>
}

// Two registers, half of one, and no register.
// AVX512-LABEL: func.func @exp_of_other_lengths
// AVX512-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// AVX512:        llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.256"
// AVX512-COUNT-2: arith.shli {{.*}} : vector<5xi32>
// AVX512-COUNT-2: arith.shli {{.*}} : i32
func.func @exp_of_other_lengths(%x: vector<32xf32>, %y: vector<8xf32>, %z: vector<5xf32>, %w: f32)
    -> (vector<32xf32>, vector<8xf32>, vector<5xf32>, f32) {
  %0 = math.exp %x : vector<32xf32>
  %1 = math.exp %y : vector<8xf32>
  %2 = math.exp %z : vector<5xf32>
  %3 = math.exp %w : f32
  return %0, %1, %2, %3 : vector<32xf32>, vector<8xf32>, vector<5xf32>, f32
}

// Of a sigmoid, which is 0 where exp(-x) is infinite, exp is scaled once; what it is multiplied by is divided instead.
// CHECK-LABEL: func.func @sigmoid
// CHECK:         %[[ONE:.*]] = arith.constant dense<1.0
// CHECK-COUNT-1: arith.shli {{.*}} : vector<16xi32>
// CHECK-NOT:     arith.shli
// CHECK:         %[[SUM:.*]] = arith.addf %[[ONE]], %{{.*}}
// CHECK:         %[[QUOTIENT:.*]] = arith.divf %arg1, %[[SUM]]
// CHECK:         return %[[QUOTIENT]]
// AVX512-LABEL: func.func @sigmoid
// AVX512-COUNT-1: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// AVX512-NOT:    llvm.call_intrinsic
// AVX512:        return
func.func @sigmoid(%x: vector<16xf32>, %z: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %n = arith.negf %x : vector<16xf32>
  %e = math.exp %n : vector<16xf32>
  %s = arith.addf %one, %e : vector<16xf32>
  %d = arith.divf %one, %s : vector<16xf32>
  %y = arith.mulf %d, %z : vector<16xf32>
  return %y : vector<16xf32>
}

// The exponential is needed elsewhere, too.
// CHECK-LABEL: func.func @no_sigmoid
// CHECK-COUNT-2: arith.shli {{.*}} : vector<16xi32>
// CHECK:         arith.divf
// CHECK:         arith.mulf
func.func @no_sigmoid(%x: vector<16xf32>) -> (vector<16xf32>, vector<16xf32>) {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %n = arith.negf %x : vector<16xf32>
  %e = math.exp %n : vector<16xf32>
  %s = arith.addf %e, %one : vector<16xf32>
  %d = arith.divf %one, %s : vector<16xf32>
  %y = arith.mulf %d, %x : vector<16xf32>
  return %e, %y : vector<16xf32>, vector<16xf32>
}

// One polynomial for all numbers: no division, and no coefficient is selected.
// CHECK-LABEL: func.func @erf
// CHECK-SAME:    (%[[X:.*]]: vector<16xf32>)
// CHECK-NOT:     arith.divf
// Four of its parts wait for no other.
// CHECK:         %[[T2:.*]] = arith.mulf %[[T:[0-9]+]], %[[T]]
// CHECK:         %[[T4:.*]] = arith.mulf %[[T2]], %[[T2]]
// CHECK:         %[[A1:.*]] = vector.fma %{{.*}}, %[[T]]
// CHECK:         %[[A2:.*]] = vector.fma %[[A1]], %[[T]]
// CHECK:         %[[A3:.*]] = vector.fma %[[A2]], %[[T]]
// CHECK:         %[[B1:.*]] = vector.fma %{{.*}}, %[[T]]
// CHECK:         %[[B2:.*]] = vector.fma %[[B1]], %[[T]]
// CHECK:         %[[B3:.*]] = vector.fma %[[B2]], %[[T]]
// CHECK:         vector.fma %[[A3]], %[[T4]], %[[B3]]
// CHECK-COUNT-8: vector.fma
// CHECK:         %[[PRODUCT:.*]] = arith.mulf %[[X]]
// CHECK:         arith.cmpf olt, %[[PRODUCT]]
// CHECK:         arith.cmpf ogt
func.func @erf(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.erf %x : vector<16xf32>
  return %y : vector<16xf32>
}

// The factor of Gelu goes into the constants.
// CHECK-LABEL: func.func @scaled_erf
// CHECK-SAME:    (%[[X:.*]]: vector<16xf32>)
// CHECK-NOT:     arith.mulf
// CHECK:         arith.mulf %[[X]], %[[X]]
// CHECK-COUNT-2: arith.mulf
// CHECK:         arith.mulf %[[X]]
// CHECK-NOT:     arith.mulf
// CHECK:         return
func.func @scaled_erf(%x: vector<16xf32>) -> vector<16xf32> {
  %c = arith.constant 0.707106769 : f32
  %b = vector.broadcast %c : f32 to vector<16xf32>
  %s = arith.mulf %x, %b : vector<16xf32>
  %y = math.erf %s : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @erf_bf16
// CHECK:         arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK-NOT:     math.erf
// CHECK:         arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
func.func @erf_bf16(%x: vector<16xbf16>) -> vector<16xbf16> {
  %y = math.erf %x : vector<16xbf16>
  return %y : vector<16xbf16>
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

// CHECK-LABEL: func.func @tanh
// CHECK-SAME:    (%[[X:.*]]: vector<16xf32>)
// CHECK-DAG:     %[[ONE:.*]] = llvm.intr.copysign(%{{.*}}, %[[X]])
// CHECK-DAG:     %[[LARGE:.*]] = arith.cmpf oge
// CHECK:         %[[Y:.*]] = arith.select %[[LARGE]], %[[ONE]], %{{.*}}
// CHECK:         return %[[Y]]
func.func @tanh(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.tanh %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @rsqrt
// CHECK:         %[[ROOT:.*]] = llvm.intr.sqrt
// CHECK:         arith.divf %{{.*}}, %[[ROOT]]
func.func @rsqrt(%x: f32) -> f32 {
  %y = math.rsqrt %x : f32
  return %y : f32
}

// Double precision is arithmetic, too, where a multiply-add is an instruction;
// else it is the library's, and LLVM makes the calls.
// CHECK-LABEL: func.func @exp_f64
// CHECK-NOT:     llvm.intr.exp
// CHECK:         vector.fma {{.*}} : vector<8xf64>
// CHECK:         arith.shli {{.*}} : vector<8xi64>
// CHECK-NOT:     arith.fptosi
// SSE-LABEL:   func.func @exp_f64
// SSE:           llvm.intr.exp(%{{.*}}) : (vector<8xf64>) -> vector<8xf64>
func.func @exp_f64(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.exp %x : vector<8xf64>
  return %y : vector<8xf64>
}

// Large angles are the library's.
// CHECK-LABEL: func.func @sin_f64
// CHECK:         vector.fma {{.*}} : vector<8xf64>
// CHECK:         scf.if
// CHECK:         } else {
// CHECK:           llvm.intr.sin(%arg0) {{.*}} : (vector<8xf64>) -> vector<8xf64>
func.func @sin_f64(%x: vector<8xf64>) -> vector<8xf64> {
  %y = math.sin %x : vector<8xf64>
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

// Angles of usual size; where a lane has another one all are the library's.
// CHECK-LABEL: func.func @sin
// CHECK-SAME:    %[[X:.*]]: vector<16xf32>
// CHECK-DAG:     %[[ALL:.*]] = vector.reduction <and>
// CHECK-DAG:     vector.fma
// CHECK-DAG:     arith.xori
// CHECK:         scf.if %[[ALL]] -> (vector<16xf32>) {
// CHECK:         } else {
// CHECK:           llvm.intr.sin(%[[X]])
// CHECK:         sdx.rare_else
func.func @sin(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.sin %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @atan
// CHECK-COUNT-1: arith.divf
// CHECK-NOT:     math.atan
// CHECK:         llvm.intr.copysign
func.func @atan(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.atan %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @acos
// CHECK-NOT:     math.acos
// CHECK:         llvm.intr.sqrt
func.func @acos(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.acos %x : vector<16xf32>
  return %y : vector<16xf32>
}

// A power is computed in f64, which makes it exact but for the last bit.
// CHECK-LABEL: func.func @pow
// CHECK:         arith.extf %{{.*}} : vector<16xf32> to vector<16xf64>
// CHECK:         arith.truncf %{{.*}} : vector<16xf64> to vector<16xf32>
// CHECK:         scf.if
// CHECK:           llvm.intr.pow
func.func @pow(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %z = math.powf %x, %y : vector<16xf32>
  return %z : vector<16xf32>
}

// CHECK-LABEL: func.func @remainder
// CHECK:         arith.divf
// CHECK:         vector.fma
// CHECK:         scf.if
// CHECK:           arith.remf
func.func @remainder(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
  %z = arith.remf %x, %y : vector<16xf32>
  return %z : vector<16xf32>
}
