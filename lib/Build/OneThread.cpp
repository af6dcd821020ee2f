//===- OneThread.cpp - Files of models without threads --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files that are built for one thread are linked with --wrap=pthread_create.
//
//===----------------------------------------------------------------------===//

#include <cerrno>

extern "C" __attribute__((visibility("hidden"))) int
__wrap_pthread_create(void *, const void *, void *(*)(void *), void *) {
  return EAGAIN;
}
