// RUN: onnx-opt %s | onnx-opt | FileCheck %s
// RUN: onnx-opt %s --target=haswell | FileCheck %s --check-prefix=HASWELL
// RUN: onnx-opt %s --sdx-attach-target="triple=aarch64-linux-gnu" | FileCheck %s --check-prefix=NEON
// RUN: not onnx-opt %s --target=8086 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not onnx-opt %s --target=haswell --pass-pipeline="builtin.module(cse)" 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not onnx-opt %s --target=haswell --pass-pipeline="builtin.module()" 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: split-file %S/Inputs/bad-targets.txt %t
// RUN: not onnx-opt %t/bits.mlir 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not onnx-opt %t/registers.mlir 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: not onnx-opt %t/cache.mlir 2>&1 | FileCheck %s --check-prefix=CACHE
// RUN: not onnx-opt %t/int8.mlir 2>&1 | FileCheck %s --check-prefix=INT8
// RUN: not onnx-opt %t/trait.mlir 2>&1 | FileCheck %s --check-prefix=TRAIT

// CHECK: module attributes {sdx.target = #cpu.target<cpu = "znver5", l1_kib = 48, int8 = vnni, bf16 = dot, traits = "shuffles_bytes|fast_l3">}
// HASWELL: sdx.target = #cpu.target<triple = "{{.+}}", cpu = "haswell", vector_bits = 256, l2_kib = 256, int8 = maddwd, traits = "shuffles_bytes|fused_multiply_add|rounds_to_integer|saturates_bytes|converts_halves">
// NEON: sdx.target = #cpu.target<triple = "aarch64-linux-gnu", cpu = "generic", vector_bits = 128, vector_registers = 32, l2_kib = 256, traits = "shuffles_bytes|fused_multiply_add|rounds_to_integer|converts_halves">
// OLD: error: processor '8086' is not known
// PIPELINE: begins with sdx-attach-target{cpu=haswell}
// BITS: error: vectors have 128, 256 or 512 bits, not 64
// REGISTERS: error: there are 16 to 64 vector registers, not 7
// CACHE: error: caches of 32 and 0 KiB are none
// INT8: error: expected one of [generic, maddwd, vnni, amx] for how 8-bit integers are multiplied, got: fast
// TRAIT: error: expected one of [none, shuffles_bytes, {{.*}}] for what a processor does, got: swift
module attributes {sdx.target = #cpu.target<cpu = "znver5", l1_kib = 48, int8 = vnni, bf16 = dot, traits = "shuffles_bytes|fast_l3">} {
}
