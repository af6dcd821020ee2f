//===- StartParts.cpp - What compilers' start files bring -----------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files are linked without those of a compiler or of the C library's
// development package (crtbegin.o, libc_nonshared.a).
//
//===----------------------------------------------------------------------===//

using Handler = void (*)();

extern "C" {
int __register_atfork(Handler prepare, Handler parent, Handler child,
                      void *object);

/// Tells the C library whose destructors and handlers are whose.
extern void *__dso_handle __attribute__((visibility("hidden")));
__attribute__((weak)) void *__dso_handle = &__dso_handle;

__attribute__((weak, visibility("hidden"))) int
pthread_atfork(Handler prepare, Handler parent, Handler child) noexcept {
  return __register_atfork(prepare, parent, child, __dso_handle);
}
}
