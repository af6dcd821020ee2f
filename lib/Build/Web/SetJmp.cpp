//===- SetJmp.cpp - Jumps out of frames, by WebAssembly's exceptions ------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What LLVM calls where code calls setjmp and longjmp: these functions are its
// interface
// (llvm/lib/Objects/WebAssembly/WebAssemblyLowerEmscriptenEHSjLj.cpp).
//
//===----------------------------------------------------------------------===//

#include <setjmp.h>

// The kind of exception that is a longjmp: its address of what is thrown.
__asm__(".globl __c_longjmp\n"
        ".tagtype __c_longjmp i32\n"
        "__c_longjmp:\n");

/// The number of that kind in LLVM.
static constexpr int kLongJmp = 1;

extern "C" {

/// setjmp, the `call`-th of the function whose frame is `frame`.
void __wasm_setjmp(jmp_buf env, unsigned call, void *frame) {
  env->frame = frame;
  env->call = call;
}

/// Which call of setjmp in this frame a longjmp returns from; 0: it goes on.
unsigned __wasm_setjmp_test(jmp_buf env, void *frame) {
  return env->frame == frame ? env->call : 0;
}

void __wasm_longjmp(jmp_buf env, int value) {
  env->thrown.env = env;
  env->thrown.value = value ? value : 1;
  __builtin_wasm_throw(kLongJmp, &env->thrown);
}
}
