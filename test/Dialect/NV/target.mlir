// RUN: onnx-opt %s | onnx-opt | FileCheck %s
// RUN: split-file %S/Inputs/bad-targets.txt %t
// RUN: not onnx-opt %t/old.mlir 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not onnx-opt %t/letter.mlir 2>&1 | FileCheck %s --check-prefix=LETTER
// RUN: not onnx-opt %t/ptx.mlir 2>&1 | FileCheck %s --check-prefix=PTX
// RUN: not onnx-opt %t/huge.mlir 2>&1 | FileCheck %s --check-prefix=HUGE

// CHECK: module @one attributes {sdx.target = #nv.target<sm = 80>}
// CHECK: module @two attributes {sdx.target = #nv.target<sm = 90, feature = "a", ptx = 80, shared_bytes = 232448, multiprocessors = 132>}
// OLD: error: code is for compute capabilities from 80 on, not for 75
// LETTER: error: the letter of a compute capability is a or f, not 'q'
// PTX: error: sm_90a needs PTX 80 or later, not 70
// HUGE: error: no device is as large as this one
module @one attributes {sdx.target = #nv.target<sm = 80>} {
}
module @two attributes {sdx.target = #nv.target<sm = 90, feature = "a", ptx = 80, shared_bytes = 232448, multiprocessors = 132>} {
}
