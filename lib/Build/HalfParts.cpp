//===- HalfParts.cpp - Conversions of short floats by their usual names ---===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What LLVM calls where the processor has no instruction; not every libgcc has
// them all.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/HalfConversions.h"

using namespace sardonyx;

#define HIDDEN __attribute__((weak, visibility("hidden")))

extern "C" {
HIDDEN _Float16 __truncsfhf2(float value) { return runtime::truncsfhf2(value); }
HIDDEN _Float16 __truncdfhf2(double value) {
  return runtime::truncdfhf2(value);
}
HIDDEN float __extendhfsf2(_Float16 value) {
  return runtime::extendhfsf2(value);
}
HIDDEN double __extendhfdf2(_Float16 value) {
  return runtime::extendhfdf2(value);
}
HIDDEN __bf16 __truncsfbf2(float value) { return runtime::truncsfbf2(value); }
HIDDEN __bf16 __truncdfbf2(double value) { return runtime::truncdfbf2(value); }
}
