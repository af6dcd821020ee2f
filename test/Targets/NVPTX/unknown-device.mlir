// RUN: not onnx-opt %s --sdx-run-target=stage=codegen 2>&1 | FileCheck %s

// LLVM would warn, and go on for another device.
// CHECK: error: LLVM makes no PTX of the kernels: sm_81a with ptx80 is not known
module attributes {sdx.target = #nv.target<sm = 81, feature = "a">} {
gpu.module @device {
llvm.func @nothing() attributes {gpu.kernel, nvvm.kernel} {
  llvm.return
}
}
}
