// RUN: onnx-opt %s --pass-pipeline="builtin.module(gpu.module(nv-verify))" --split-input-file --verify-diagnostics

gpu.module @device {
llvm.func @sinf(f32) -> f32
llvm.func @calls(%x: f32) attributes {gpu.kernel, nvvm.kernel} {
  // expected-error@+1 {{is a function that no instruction computes}}
  %0 = llvm.call @sinf(%x) : (f32) -> f32
  llvm.return
}
}

// -----

gpu.module @device {
// expected-error@+1 {{has more parameters than a kernel can}}
llvm.func @parameters(%x: !llvm.array<513 x i64>) attributes {gpu.kernel, nvvm.kernel} {
  llvm.return
}
}

// -----

gpu.module @device {
// expected-error@+1 {{has more memory for each thread than it may}}
llvm.func @local(%x: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
  %n = llvm.mlir.constant(5000 : i64) : i64
  %0 = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
  llvm.return
}
llvm.func @open(%n: i64) attributes {gpu.kernel, nvvm.kernel} {
  // expected-error@+1 {{is memory of a thread whose size is not known}}
  %0 = llvm.alloca %n x i8 : (i64) -> !llvm.ptr
  llvm.return
}
}

// -----

// expected-error@+1 {{declares more shared memory than there is}}
gpu.module @device {
llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<50000 x i8>
}

// -----

gpu.module @device {
llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<49152 x i8>
llvm.func @fine(%x: !llvm.ptr<1>, %n: i64) attributes {gpu.kernel, nvvm.kernel} {
  llvm.return
}
}
