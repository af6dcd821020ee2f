//===- HalfConversions.h - Half float conversions ---------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_RUNTIME_HALFCONVERSIONS_H
#define SARDONYX_RUNTIME_HALFCONVERSIONS_H

#include <cstdint>

namespace sardonyx {
namespace runtime {

/// Round to nearest, ties to even. Exact for a double that is a float.
uint16_t halfFromDouble(double value);
uint16_t bfloatFromDouble(double value);
float floatFromHalf(uint16_t half);

// With the calling convention of compiler-rt.
#if defined(__x86_64__) || defined(__aarch64__)
_Float16 truncsfhf2(float value);
_Float16 truncdfhf2(double value);
float extendhfsf2(_Float16 value);
double extendhfdf2(_Float16 value);
__bf16 truncsfbf2(float value);
__bf16 truncdfbf2(double value);
#endif

} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_RUNTIME_HALFCONVERSIONS_H
