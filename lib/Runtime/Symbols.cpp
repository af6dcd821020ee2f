//===- Symbols.cpp - What compiled code may link against ------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx/Runtime/Symbols.h"
#include "HalfConversions.h"
#include "sardonyx-c/RuntimeABI.h"
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace sardonyx::runtime;

#define ADDRESS(f) {#f, reinterpret_cast<void *>(&f)}
#define NAMED(name, f) {name, reinterpret_cast<void *>(&f)}
// libm's functions are overloaded in C++.
#define FLOAT1(fn)                                                             \
  {#fn "f",                                                                    \
   reinterpret_cast<void *>(static_cast<float (*)(float)>(&::fn##f))},         \
  {                                                                            \
    #fn, reinterpret_cast<void *>(static_cast<double (*)(double)>(&::fn))      \
  }
#define FLOAT2(fn)                                                             \
  {#fn "f",                                                                    \
   reinterpret_cast<void *>(static_cast<float (*)(float, float)>(&::fn##f))},  \
  {                                                                            \
    #fn, reinterpret_cast<void *>(                                             \
             static_cast<double (*)(double, double)>(&::fn))                   \
  }

extern "C" {
#define DO(name) void name(const int64_t *words);
#include "RuntimeFunctions.inc"
#undef DO
// In libgcc and compiler-rt alike.
float __powisf2(float, int);
double __powidf2(double, int);
}

static const Symbol table[] = {
    ADDRESS(sdx_rt_parallel_for),
    ADDRESS(sdx_rt_threads),
    ADDRESS(sdx_rt_alloc),
    ADDRESS(sdx_rt_alloc_for),
    ADDRESS(sdx_rt_scratch),
    ADDRESS(sdx_rt_free),
    ADDRESS(sdx_rt_arena),
    ADDRESS(sdx_rt_output),
    ADDRESS(sdx_rt_check),
    ADDRESS(sdx_rt_check_failed),
    ADDRESS(sdx_rt_poll),
    ADDRESS(sdx_rt_copy),
    ADDRESS(sdx_rt_clock),
    ADDRESS(sdx_rt_record),
    ADDRESS(sdx_rt_observe),
    ADDRESS(sdx_rt_device_alloc),
    ADDRESS(sdx_rt_device_free),
    ADDRESS(sdx_rt_device_arena),
    ADDRESS(sdx_rt_device_output),
    ADDRESS(sdx_rt_device_failure),
    ADDRESS(sdx_rt_device_copy),
    ADDRESS(sdx_rt_launch),
#define DO(name) ADDRESS(name),
#include "RuntimeFunctions.inc"
#undef DO
    NAMED("memcpy", ::memcpy),
    NAMED("memmove", ::memmove),
    NAMED("memset", ::memset),
    NAMED("memcmp", ::memcmp),
    NAMED("abort", ::abort),
    FLOAT1(acos),
    FLOAT1(acosh),
    FLOAT1(asin),
    FLOAT1(asinh),
    FLOAT1(atan),
    FLOAT1(atanh),
    FLOAT1(cbrt),
    FLOAT1(ceil),
    FLOAT1(cos),
    FLOAT1(cosh),
    FLOAT1(erf),
    FLOAT1(erfc),
    FLOAT1(exp),
    FLOAT1(exp2),
    FLOAT1(expm1),
    FLOAT1(fabs),
    FLOAT1(floor),
    FLOAT1(lgamma),
    FLOAT1(log),
    FLOAT1(log10),
    FLOAT1(log1p),
    FLOAT1(log2),
    FLOAT1(nearbyint),
    FLOAT1(rint),
    FLOAT1(round),
    FLOAT1(sin),
    FLOAT1(sinh),
    FLOAT1(sqrt),
    FLOAT1(tan),
    FLOAT1(tanh),
    FLOAT1(tgamma),
    FLOAT1(trunc),
    FLOAT2(atan2),
    FLOAT2(copysign),
    FLOAT2(fmax),
    FLOAT2(fmin),
    FLOAT2(fmod),
    FLOAT2(pow),
    FLOAT2(remainder),
    NAMED("fmaf", ::fmaf),
    {"fma", reinterpret_cast<void *>(
                static_cast<double (*)(double, double, double)>(&::fma))},
    NAMED("ldexpf", ::ldexpf),
    {"ldexp",
     reinterpret_cast<void *>(static_cast<double (*)(double, int)>(&::ldexp))},
    NAMED("roundevenf", ::roundevenf),
    NAMED("roundeven", ::roundeven),
    NAMED("sincosf", ::sincosf),
    NAMED("sincos", ::sincos),
    ADDRESS(__powisf2),
    ADDRESS(__powidf2),
#if defined(__x86_64__) || defined(__aarch64__)
    NAMED("__truncsfhf2", truncsfhf2),
    NAMED("__gnu_f2h_ieee", truncsfhf2),
    NAMED("__truncdfhf2", truncdfhf2),
    NAMED("__extendhfsf2", extendhfsf2),
    NAMED("__gnu_h2f_ieee", extendhfsf2),
    NAMED("__extendhfdf2", extendhfdf2),
    NAMED("__truncsfbf2", truncsfbf2),
    NAMED("__truncdfbf2", truncdfbf2),
#endif
};

const Symbol *sardonyx::runtime::symbols(size_t &count) {
  count = sizeof(table) / sizeof(table[0]);
  return table;
}
