//===- Values.h - What goes in and comes out, in C ------------------ C -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_C_VALUES_H
#define SARDONYX_C_VALUES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdx_session sdx_session;
typedef struct sdx_error sdx_error;
typedef struct sdx_results sdx_results;

typedef enum {
  SDX_INVALID_ARGUMENT = 0,
  SDX_NO_SUCH_FILE = 1,
  SDX_INVALID_MODEL = 2,
  SDX_UNSUPPORTED = 3,
  SDX_FAILED = 4
} sdx_error_kind;

/** An element of a tensor of strings: UTF-8, not ended by a zero. */
typedef struct {
  const char *data;
  size_t size;
} sdx_string;

/** Elements of the types 14 and 15. */
typedef struct {
  float real, imaginary;
} sdx_complex64;
typedef struct {
  double real, imaginary;
} sdx_complex128;

/** A tensor in the caller's memory, contiguous and row by row. One of strings
    (type 8) holds sdx_string. */
typedef struct {
  int32_t type; /* as in onnx.TensorProto.DataType */
  size_t rank;
  const int64_t *shape;
  void *data; /* for results NULL: the session provides the memory */
} sdx_tensor;

/* Values of any type. */

typedef enum {
  SDX_TENSOR = 0,
  SDX_SEQUENCE = 1,
  SDX_NOTHING = 2, /* what an optional holds that holds nothing */
  SDX_MAP = 3
} sdx_value_kind;

/** A tensor; or a sequence of `count` items, which are tensors or maps; or a
    map, which has two items, both tensors with one dimension: its keys, int64
    or strings, and its values. Results have the keys in ascending order, inputs
    in any. What an optional holds is a tensor, a sequence or SDX_NOTHING. */
typedef struct sdx_value {
  sdx_value_kind kind;
  sdx_tensor tensor;
  size_t count;
  const struct sdx_value *items;
} sdx_value;

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_C_VALUES_H */
