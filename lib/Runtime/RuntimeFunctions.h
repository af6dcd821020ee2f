//===- RuntimeFunctions.h - Functions on strings and lists ------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the words of each are stands where it is defined.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_RUNTIMEFUNCTIONS_H
#define SARDONYX_LIB_RUNTIME_RUNTIMEFUNCTIONS_H

#include <cstdint>

#define SARDONYX_RUNTIME_FUNCTIONS(DO)                                         \
  DO(sdx_rt_list_concat)                                                       \
  DO(sdx_rt_list_concat_sizes)                                                 \
  DO(sdx_rt_list_erase)                                                        \
  DO(sdx_rt_list_get)                                                          \
  DO(sdx_rt_list_insert)                                                       \
  DO(sdx_rt_list_length)                                                       \
  DO(sdx_rt_list_make)                                                         \
  DO(sdx_rt_list_sizes)                                                        \
  DO(sdx_rt_list_split)                                                        \
  DO(sdx_rt_random_uniform)                                                    \
  DO(sdx_rt_string_concat)                                                     \
  DO(sdx_rt_string_is_no_stop_word)                                            \
  DO(sdx_rt_string_matches)                                                    \
  DO(sdx_rt_string_of_bf16)                                                    \
  DO(sdx_rt_string_of_bool)                                                    \
  DO(sdx_rt_string_of_f16)                                                     \
  DO(sdx_rt_string_of_f32)                                                     \
  DO(sdx_rt_string_of_f64)                                                     \
  DO(sdx_rt_string_of_i64)                                                     \
  DO(sdx_rt_string_of_u64)                                                     \
  DO(sdx_rt_string_parse_f32)                                                  \
  DO(sdx_rt_string_parse_f64)                                                  \
  DO(sdx_rt_string_parse_i64)                                                  \
  DO(sdx_rt_string_parse_u64)                                                  \
  DO(sdx_rt_string_ranks)                                                      \
  DO(sdx_rt_string_split_counts)                                               \
  DO(sdx_rt_string_split_parts)                                                \
  DO(sdx_rt_string_to_case)

extern "C" {
#define SARDONYX_DECLARE(name) void name(const int64_t *words);
SARDONYX_RUNTIME_FUNCTIONS(SARDONYX_DECLARE)
#undef SARDONYX_DECLARE
}

#endif // SARDONYX_LIB_RUNTIME_RUNTIMEFUNCTIONS_H
