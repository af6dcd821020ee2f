// RUN: onnx-opt %s -sdx-attach-target="cpu=haswell" | FileCheck %s --check-prefix=HASWELL
// RUN: onnx-opt %s -sdx-attach-target="cpu=haswell features=-fma" | FileCheck %s --check-prefix=FEATURES
// RUN: onnx-opt %s -sdx-attach-target="triple=aarch64-linux-gnu" | FileCheck %s --check-prefix=NEON
// RUN: onnx-opt %s -sdx-attach-target="default" | FileCheck %s --check-prefix=KEPT
// RUN: sed 's/{sdx.target.*}/{}/' %s | onnx-opt -sdx-attach-target="default" | FileCheck %s --check-prefix=DEFAULT
// RUN: not onnx-opt %s -sdx-attach-target="cpu=8086" 2>&1 | FileCheck %s --check-prefix=OLD

// HASWELL: module attributes {sdx.target = #cpu.target<triple = "{{.+}}", cpu = "haswell", vector_bits = 256, l2_kib = 256, int8 = maddwd, traits = "shuffles_bytes|fused_multiply_add|rounds_to_integer|saturates_bytes|converts_halves">}
// FEATURES: cpu = "haswell"{{.*}}-fma
// NEON: #cpu.target<triple = "aarch64-linux-gnu", cpu = "generic"
// KEPT: #cpu.target<cpu = "znver5", l1_kib = 48>
// DEFAULT: module attributes {sdx.target = #cpu.target<>}
// OLD: error: processor '8086' is not known
module attributes {sdx.target = #cpu.target<cpu = "znver5", l1_kib = 48>} {
}
