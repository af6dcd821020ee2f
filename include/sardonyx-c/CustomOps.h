/*===- CustomOps.h - Operators from shared libraries --------------- C -*-===*\
|*                                                                            *|
|* Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.      *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* What a library of custom operators includes; it links to nothing of        *|
|* Sardonyx. It exports one function:                                         *|
|*                                                                            *|
|*   int sardonyx_register_custom_ops(const sdx_op_api *api,                  *|
|*                                    sdx_op_registry *registry);             *|
|*                                                                            *|
|* which calls api->add for each operator. docs/howto/CustomOps.md shows one. *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef SARDONYX_C_CUSTOMOPS_H
#define SARDONYX_C_CUSTOMOPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of this interface. A library made for another is refused.
#define SDX_OP_ABI_VERSION 1

/// The library's entry point, by name.
#define SDX_OP_ENTRY_POINT "sardonyx_register_custom_ops"

/// Element types, numbered as in onnx.TensorProto.DataType. Elements of less
/// than a byte take a byte each; a bool is a byte that is 0 or 1.
typedef enum sdx_op_type {
  SDX_OP_UNDEFINED = 0,
  SDX_OP_FLOAT = 1,
  SDX_OP_UINT8 = 2,
  SDX_OP_INT8 = 3,
  SDX_OP_UINT16 = 4,
  SDX_OP_INT16 = 5,
  SDX_OP_INT32 = 6,
  SDX_OP_INT64 = 7,
  SDX_OP_STRING = 8, /* sdx_op_string */
  SDX_OP_BOOL = 9,
  SDX_OP_FLOAT16 = 10,
  SDX_OP_DOUBLE = 11,
  SDX_OP_UINT32 = 12,
  SDX_OP_UINT64 = 13,
  SDX_OP_BFLOAT16 = 16,
  SDX_OP_FLOAT8E4M3FN = 17,
  SDX_OP_FLOAT8E4M3FNUZ = 18,
  SDX_OP_FLOAT8E5M2 = 19,
  SDX_OP_FLOAT8E5M2FNUZ = 20,
  SDX_OP_UINT4 = 21,
  SDX_OP_INT4 = 22,
  SDX_OP_FLOAT4E2M1 = 23,
  SDX_OP_FLOAT8E8M0 = 24,
  SDX_OP_UINT2 = 25,
  SDX_OP_INT2 = 26,
  SDX_OP_FLOAT6E2M3 = 27,
  SDX_OP_FLOAT6E3M2 = 28
} sdx_op_type;

/// A text in UTF-8, not ended by a zero.
typedef struct sdx_op_string {
  const char *data;
  size_t size;
} sdx_op_string;

/// What one call of an operator's functions is about: a node with its
/// attributes, the types of its inputs, and in a run their data. It is good
/// for that call only, and so is all that it gives.
typedef struct sdx_op_call sdx_op_call;
typedef struct sdx_op_registry sdx_op_registry;

/// The same inputs may give other results (a random number, a sensor), or the
/// call does something besides: it is made in each run, in order, also where
/// nobody reads the results.
#define SDX_OP_STATEFUL 1u
/// `compute` must not be called by two threads at a time. Without this flag it
/// is, where several threads run models.
#define SDX_OP_ONE_THREAD 2u

/// An operator. Functions return 0, or anything else after api->fail(). They
/// must not keep what they are given, and no exception may leave them.
typedef struct sdx_op {
  /// SDX_OP_ABI_VERSION.
  uint32_t abi_version;
  /// SDX_OP_STATEFUL, SDX_OP_ONE_THREAD.
  uint32_t flags;
  /// As the nodes of models have them. Copied.
  const char *domain, *name;
  /// The first version of the domain's operators that means this one; at least
  /// 1. A model gets the newest that its opset import allows.
  int64_t since_version;
  /// How many a node may have, those that it leaves out in between included;
  /// -1 as the most is any number.
  int32_t min_inputs, max_inputs, min_outputs, max_outputs;
  /// Passed to all functions.
  void *user;
  /// Tells the types of results by api->set_output_type from the types of the
  /// inputs and the attributes. It must tell all ranks; sizes may be left open
  /// (-1). Null: the model declares the types. Called when a model is compiled
  /// or loaded, by any thread.
  int32_t (*infer)(void *user, sdx_op_call *call);
  /// Makes what `compute` of one node keeps from run to run. May be null.
  int32_t (*create)(void *user, sdx_op_call *call, void **state);
  /// Takes that back, when no session needs it any more. May be null.
  void (*destroy)(void *user, void *state);
  /// Computes the results: asks api->output for the memory of each and writes
  /// all of it.
  int32_t (*compute)(void *user, void *state, sdx_op_call *call);
} sdx_op;

/// Functions for libraries. Later versions of the interface only add some at
/// the end. Indices count from 0, and an input or output that is left out has
/// one, too.
typedef struct sdx_op_api {
  /// SDX_OP_ABI_VERSION of Sardonyx.
  uint32_t abi_version;

  /// Registers an operator; what `op` points to is copied, but for `user`.
  int32_t (*add)(sdx_op_registry *registry, const sdx_op *op);
  /// Has the registration fail with this sentence.
  void (*fail_registration)(sdx_op_registry *registry, const char *text);

  /// Has the call fail with this sentence. The first one counts.
  void (*fail)(sdx_op_call *call, const char *text);

  /* The node. */
  /// Empty where it has no name.
  const char *(*node_name)(sdx_op_call *call);
  /// The version of the operator's domain that the model imports.
  int64_t (*opset_version)(sdx_op_call *call);
  int32_t (*input_count)(sdx_op_call *call);
  int32_t (*output_count)(sdx_op_call *call);
  /// Whether it is not left out.
  int32_t (*has_input)(sdx_op_call *call, int32_t index);
  int32_t (*has_output)(sdx_op_call *call, int32_t index);

  /* Attributes: 1, or 0 where the node has none of this name and kind. */
  int32_t (*attribute_int)(sdx_op_call *call, const char *name, int64_t *value);
  int32_t (*attribute_float)(sdx_op_call *call, const char *name, float *value);
  int32_t (*attribute_string)(sdx_op_call *call, const char *name,
                              sdx_op_string *value);
  int32_t (*attribute_ints)(sdx_op_call *call, const char *name,
                            const int64_t **values, size_t *count);
  int32_t (*attribute_floats)(sdx_op_call *call, const char *name,
                              const float **values, size_t *count);
  int32_t (*attribute_strings)(sdx_op_call *call, const char *name,
                               const sdx_op_string **values, size_t *count);
  int32_t (*attribute_tensor)(sdx_op_call *call, const char *name,
                              int32_t *type, int32_t *rank,
                              const int64_t **sizes, const void **data);

  /* Types. */
  /// SDX_OP_UNDEFINED for what is not there or not known.
  int32_t (*input_type)(sdx_op_call *call, int32_t index);
  /// -1 where it is not known.
  int32_t (*input_rank)(sdx_op_call *call, int32_t index);
  /// So many sizes; -1 for one that only the run knows.
  const int64_t *(*input_sizes)(sdx_op_call *call, int32_t index);
  /// In `infer` only. Nothing happens for a result that the node leaves out.
  int32_t (*set_output_type)(sdx_op_call *call, int32_t index, int32_t type,
                             int32_t rank, const int64_t *sizes);

  /* Runs: in `compute` only. */
  /// The elements, row by row; null for an input that is left out.
  const void *(*input_data)(sdx_op_call *call, int32_t index);
  /// Memory for a result of this type and shape, aligned to 64 bytes; null
  /// where it cannot be, and then the call has failed. Once for each. That of a
  /// tensor of strings is not to be written: see set_string.
  void *(*output)(sdx_op_call *call, int32_t index, int32_t type, int32_t rank,
                  const int64_t *sizes);
  /// Sets an element, by its place in row order, of a result of strings. All
  /// are empty at first. The text is copied.
  int32_t (*set_string)(sdx_op_call *call, int32_t index, int64_t element,
                        const char *text, size_t size);
  /// Memory that is taken back after the call and counts against the session's
  /// memory limit; null where there is none, and then the call has failed.
  void *(*scratch)(sdx_op_call *call, int64_t bytes);
} sdx_op_api;

typedef int32_t (*sdx_op_entry_point)(const sdx_op_api *api,
                                      sdx_op_registry *registry);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_C_CUSTOMOPS_H */
