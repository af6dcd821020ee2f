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

/** The element types of tensors, numbered as in onnx.TensorProto.DataType. */
typedef enum sdx_element_type {
  SDX_UNDEFINED = 0, /* of what is no tensor */
  SDX_FLOAT = 1,
  SDX_UINT8 = 2,
  SDX_INT8 = 3,
  SDX_UINT16 = 4,
  SDX_INT16 = 5,
  SDX_INT32 = 6,
  SDX_INT64 = 7,
  SDX_STRING = 8, /* sdx_string */
  SDX_BOOL = 9,
  SDX_FLOAT16 = 10,
  SDX_DOUBLE = 11,
  SDX_UINT32 = 12,
  SDX_UINT64 = 13,
  SDX_COMPLEX64 = 14,
  SDX_COMPLEX128 = 15,
  SDX_BFLOAT16 = 16,
  SDX_FLOAT8E4M3FN = 17,
  SDX_FLOAT8E4M3FNUZ = 18,
  SDX_FLOAT8E5M2 = 19,
  SDX_FLOAT8E5M2FNUZ = 20,
  SDX_UINT4 = 21, /* a byte for each, as of all that are smaller than one */
  SDX_INT4 = 22,
  SDX_FLOAT4E2M1 = 23,
  SDX_FLOAT8E8M0 = 24,
  SDX_UINT2 = 25,
  SDX_INT2 = 26,
  SDX_FLOAT6E2M3 = 27,
  SDX_FLOAT6E3M2 = 28
} sdx_element_type;

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
  int32_t type; /* an sdx_element_type */
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
