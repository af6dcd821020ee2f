//===- setjmp.h - Jumps out of frames, by WebAssembly's exceptions -- C -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// WASI's C library has none of its own. With -mllvm -wasm-enable-sjlj LLVM
// makes exceptions of these calls, and calls SetJmp.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_BUILD_WEB_SETJMP_H
#define SARDONYX_BUILD_WEB_SETJMP_H

#ifdef __cplusplus
extern "C" {
#endif

/* The call of setjmp that is returned to: a number of its frame and one of the
   call; then what is thrown. */
typedef struct {
  void *frame;
  unsigned call;
  struct {
    void *env;
    int value;
  } thrown;
} jmp_buf[1];

int setjmp(jmp_buf env) __attribute__((returns_twice));
__attribute__((noreturn)) void longjmp(jmp_buf env, int value);
#define _setjmp setjmp
#define _longjmp longjmp

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_BUILD_WEB_SETJMP_H */
