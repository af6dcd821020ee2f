// RUN: onnx-opt %s --nv-expand-math | FileCheck %s

gpu.module @device {

// CHECK-LABEL: gpu.func @functions
// CHECK-NOT: math.{{exp|log|tanh|erf|rsqrt|sin|cos}}
// CHECK: math.fma
// CHECK: math.sqrt
// CHECK: gpu.return
gpu.func @functions(%p: !llvm.ptr<1>, %x: f32, %h: f16) kernel {
  %0 = math.exp %x : f32
  %1 = math.log %0 : f32
  %2 = math.tanh %1 : f32
  %3 = math.erf %2 : f32
  %4 = math.rsqrt %3 : f32
  llvm.store %4, %p : f32, !llvm.ptr<1>
  %5 = math.exp %h : f16
  llvm.store %5, %p : f16, !llvm.ptr<1>
  gpu.return
}

}
