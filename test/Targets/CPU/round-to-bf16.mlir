// RUN: onnx-opt %s -split-input-file -pass-pipeline='builtin.module(func.func(cpu-approximate-math))' | FileCheck %s

// Rounding is an instruction for a register or two where subnormal numbers may
// become zero; other roundings stay.
// CHECK-LABEL: func @rounded
// CHECK: "llvm.x86.avx512bf16.cvtne2ps2bf16.512"(%{{.*}}, %{{.*}}) : (vector<16xf32>, vector<16xf32>) -> vector<32xbf16>
// CHECK: "llvm.x86.avx512bf16.cvtneps2bf16.512"(%arg1) : (vector<16xf32>) -> vector<16xbf16>
// CHECK: arith.truncf %arg1
module attributes {sdx.target = #cpu.target<bf16 = dot>} {
  func.func @rounded(%x: vector<32xf32>, %y: vector<16xf32>) -> (vector<32xbf16>, vector<16xbf16>, vector<16xbf16>) {
    %0 = arith.truncf %x fastmath<afn> : vector<32xf32> to vector<32xbf16>
    %1 = arith.truncf %y fastmath<afn> : vector<16xf32> to vector<16xbf16>
    %2 = arith.truncf %y : vector<16xf32> to vector<16xbf16>
    return %0, %1, %2 : vector<32xbf16>, vector<16xbf16>, vector<16xbf16>
  }
}

// -----

// CHECK-LABEL: func @plain
// CHECK: arith.truncf
module attributes {sdx.target = #cpu.target<>} {
  func.func @plain(%x: vector<16xf32>) -> vector<16xbf16> {
    %0 = arith.truncf %x fastmath<afn> : vector<16xf32> to vector<16xbf16>
    return %0 : vector<16xbf16>
  }
}
