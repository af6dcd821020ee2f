// RUN: onnx-opt %s --nv-expand-math --split-input-file | FileCheck %s

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

// -----

// f64, and what f32 has no expansion of its own for. Large angles are reduced by
// the bits of 2/pi.
// CHECK: llvm.mlir.global internal constant @bits_of_two_over_pi({{.*}}) {addr_space = 4 : i32, alignment = 8 : i64} : !llvm.array<20 x i64>
// CHECK-LABEL: gpu.func @doubles
// CHECK-NOT: math.{{sin|powf}}
// CHECK: arith.extf %{{.+}} : f32 to f64
// CHECK: scf.if
// CHECK: llvm.mlir.addressof @bits_of_two_over_pi
// CHECK: arith.mului_extended
// CHECK: arith.truncf %{{.+}} : f64 to f32
// CHECK: gpu.return
gpu.module @device {
gpu.func @doubles(%p: !llvm.ptr<1>, %x: f32, %d: f64) kernel {
  %0 = math.sin %x : f32
  llvm.store %0, %p : f32, !llvm.ptr<1>
  %1 = math.powf %d, %d : f64
  llvm.store %1, %p : f64, !llvm.ptr<1>
  %2 = arith.remf %d, %d : f64
  llvm.store %2, %p : f64, !llvm.ptr<1>
  gpu.return
}
}
