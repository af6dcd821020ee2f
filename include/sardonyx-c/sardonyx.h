//===- sardonyx.h - The C interface --------------------------------- C -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   sdx_error *error = NULL;
//   sdx_session *session = sdx_session_create("model.onnx", NULL, &error);
//   if (!session) { puts(sdx_error_message(error)); sdx_error_free(error); }
//
// Handles are opaque. A function that can fail takes `sdx_error **error`, which
// may be NULL, and sets it only when it fails. Strings that functions return
// belong to the handle that they were asked of.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_C_SARDONYX_H
#define SARDONYX_C_SARDONYX_H

#include "sardonyx-c/Values.h"

#if defined(_WIN32)
#define SDX_API __declspec(dllexport)
#else
#define SDX_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdx_options sdx_options;
typedef struct sdx_run_options sdx_run_options;

/* Errors. */

SDX_API sdx_error_kind sdx_error_get_kind(const sdx_error *error);
SDX_API const char *sdx_error_message(const sdx_error *error);
SDX_API void sdx_error_free(sdx_error *error);

/* Options; NULL stands for the defaults wherever options are asked for. */

SDX_API sdx_options *sdx_options_create(void);
SDX_API void sdx_options_free(sdx_options *options);
/** 0: one for each physical core. */
SDX_API void sdx_options_set_threads(sdx_options *options, unsigned threads);
/** Operators that models may use: those of a shared library (CustomOps.h), the
 * functions in an ONNX file, or the functions in an MLIR file. 0 is success. */
SDX_API int sdx_options_add_custom_ops_library(sdx_options *options,
                                               const char *path,
                                               sdx_error **error);
SDX_API int sdx_options_add_custom_functions(sdx_options *options,
                                             const char *path,
                                             sdx_error **error);
SDX_API int sdx_options_add_custom_mlir(sdx_options *options, const char *path,
                                        sdx_error **error);
SDX_API void sdx_options_set_cache(sdx_options *options, int enabled,
                                   const char *folder_or_null);

/** How exact f32 is. SDX_NUMERICS_F32, the default, keeps errors within twice
    those of plain sums; SDX_NUMERICS_FAST also takes what loses more. */
typedef enum {
  SDX_NUMERICS_EXACT = 0,
  SDX_NUMERICS_F32 = 1,
  SDX_NUMERICS_FAST = 2
} sdx_numerics;
/** Loading fails where `numerics` is none of these. */
SDX_API void sdx_options_set_numerics(sdx_options *options,
                                      sdx_numerics numerics);

/** What operands of products and convolutions of f32 may be rounded to where
    that is faster: to 11 bits (TF32, on devices), to f16, which ends at 65504,
    to bf16, or to the sum of two bf16 (BF16X3, on devices). Sums stay f32.
   Processors take bf16 where they multiply such numbers, and f16 for weights
   that come from memory for few rows. The default is SDX_PRECISION_F32. */
typedef enum sdx_precision {
  SDX_PRECISION_F32 = 0,
  SDX_PRECISION_TF32 = 1,
  SDX_PRECISION_F16 = 2,
  SDX_PRECISION_BF16 = 3,
  SDX_PRECISION_BF16X3 = 4
} sdx_precision;
/** Loading fails where `precision` is none of these. */
SDX_API void sdx_options_set_precision(sdx_options *options,
                                       sdx_precision precision);

/** Has kernels run on the GPU of NVIDIA's of this number, as CUDA's driver
    counts. `memory_limit`: bytes of its memory that weights, runs and results
    may take; 0: what there is. `stream`: a CUstream that all work is given to,
    which outlives the session; NULL: the session has its own. Where that is not
    possible, sessions are on the processor if `may_use_cpu` is not 0, and
    loading fails otherwise. docs/howto/GPU.md tells more. */
SDX_API void sdx_options_set_cuda(sdx_options *options, int device,
                                  int64_t memory_limit, void *stream,
                                  int may_use_cpu);

/** Bytes that packed weights, runs and results may take together; 0: what the
    machine has. */
SDX_API void sdx_options_set_memory_limit(sdx_options *options, int64_t bytes);
/** Seconds that compiling may take; 0: as long as it likes. */
SDX_API void sdx_options_set_compile_timeout(sdx_options *options,
                                             double seconds);

/** When models are compiled. SDX_COMPILE_WAIT, the default: before they are
    loaded. SDX_COMPILE_BACKGROUND: to code that is not optimised, sooner; a
    thread compiles the rest, and runs go by that as soon as it is there. */
typedef enum sdx_compile {
  SDX_COMPILE_WAIT = 0,
  SDX_COMPILE_BACKGROUND = 1
} sdx_compile;
/** Loading fails where `compile` is none of these. */
SDX_API void sdx_options_set_compile(sdx_options *options, sdx_compile compile);

/** The processor to compile for, in LLVM's spelling ("x86-64-v3"); NULL: this
    one. Loading fails where there is no such processor. */
SDX_API void sdx_options_set_cpu(sdx_options *options, const char *name);
/** Compiles for this size of a named dimension; the session takes no other.
    Loading fails where no input has a dimension of this name. */
SDX_API void sdx_options_set_dimension(sdx_options *options, const char *name,
                                       int64_t size);
/** Adds a value of the model's main graph, by its name, to those that runs give
    in the place of its outputs. What only others need is not computed. */
SDX_API void sdx_options_add_output(sdx_options *options, const char *name);

/** Told what a model, or the inputs of a run, have wrong that keeps nothing
   from running: a sentence, which is valid during the call. Threads that load
   and run models call it, several at a time where they do. */
typedef void (*sdx_log_function)(void *user, const char *message);
SDX_API void sdx_options_set_log(sdx_options *options,
                                 sdx_log_function function, void *user);
/** Has sessions record when each step of each run begins and ends. */
SDX_API void sdx_options_set_profile(sdx_options *options, int enabled);

/** Stands for the host's memory where CUDA devices are counted. */
#define SDX_HOST (-1)

/* Sessions. */

SDX_API sdx_session *sdx_session_create(const char *path,
                                        const sdx_options *options,
                                        sdx_error **error);
SDX_API sdx_session *sdx_session_create_from_bytes(const void *data,
                                                   size_t size,
                                                   const sdx_options *options,
                                                   sdx_error **error);
/** Waits for what SDX_COMPILE_BACKGROUND has a thread compile, so many seconds
    or, where they are negative, as long as it takes: 1 when it is there, 0
   where it is not yet, -1 where the session goes on by code that is not
   optimised. `error` tells why then. */
SDX_API int sdx_session_wait_for_compile(sdx_session *session, double seconds,
                                         sdx_error **error);
/** Threads that run the session may go on. */
SDX_API void sdx_session_free(sdx_session *session);

/** The number of the CUDA device that the session runs on; SDX_HOST: none. */
SDX_API int sdx_session_device(const sdx_session *session);

SDX_API size_t sdx_session_input_count(const sdx_session *session);
SDX_API size_t sdx_session_output_count(const sdx_session *session);
/** NULL where there is no such input or output. */
SDX_API const char *sdx_session_input_name(const sdx_session *session,
                                           size_t index);
SDX_API const char *sdx_session_output_name(const sdx_session *session,
                                            size_t index);
/** "tensor(float)", "seq(map(int64,tensor(float)))", as onnxruntime spells it;
    NULL where there is no such input or output. */
SDX_API const char *sdx_session_input_type_name(const sdx_session *session,
                                                size_t index);
SDX_API const char *sdx_session_output_type_name(const sdx_session *session,
                                                 size_t index);
/** Of tensors an sdx_element_type; 0 for all else. */
SDX_API int32_t sdx_session_input_type(const sdx_session *session,
                                       size_t index);
SDX_API int32_t sdx_session_output_type(const sdx_session *session,
                                        size_t index);
/** Rank, or -1 where the model does not say; up to `capacity` sizes are written
    to `sizes`, -1 for open dimensions. */
SDX_API int64_t sdx_session_input_shape(const sdx_session *session,
                                        size_t index, int64_t *sizes,
                                        size_t capacity);
SDX_API int64_t sdx_session_output_shape(const sdx_session *session,
                                         size_t index, int64_t *sizes,
                                         size_t capacity);

/** What the model file says of itself under a name: "producer_name",
    "graph_name", "domain", "description", "model_version" or one of its own;
    NULL: nothing. */
SDX_API const char *sdx_session_metadata(const sdx_session *session,
                                         const char *name);

/* Runs. */

/** Runs the model; any number of threads may at a time. `memory` is NULL or has
    an entry for each output. NULL if it fails. */
SDX_API sdx_results *sdx_session_run(sdx_session *session,
                                     const sdx_tensor *inputs,
                                     size_t input_count,
                                     const sdx_tensor *memory,
                                     sdx_error **error);
/** The same with options, which may be NULL. */
SDX_API sdx_results *
sdx_session_run_with_options(sdx_session *session, const sdx_tensor *inputs,
                             size_t input_count, const sdx_tensor *memory,
                             const sdx_run_options *options, sdx_error **error);

/** The same with tensors on the session's CUDA device. `input_devices` is NULL
   or tells for each input the number of the device that its data lies on, or
    SDX_HOST; what the process's default stream has to do comes before the run.
    `memory_devices` is NULL or tells the same for each output, `memory` being
    NULL or without data where the session is to give the memory there. */
SDX_API sdx_results *
sdx_session_run_on_device(sdx_session *session, const sdx_tensor *inputs,
                          const int *input_devices, size_t input_count,
                          const sdx_tensor *memory, const int *memory_devices,
                          const sdx_run_options *options, sdx_error **error);

/** Runs a model whose inputs may be of any type; `options` may be NULL. NULL if
    it fails. */
SDX_API sdx_results *sdx_session_run_values(sdx_session *session,
                                            const sdx_value *inputs,
                                            size_t input_count,
                                            const sdx_run_options *options,
                                            sdx_error **error);

/** Runs a model on tensors by the names of inputs. The results are those of
    `output_names`, in that order, or all where `output_count` is 0; `options`
    may be NULL. NULL if it fails. */
SDX_API sdx_results *
sdx_session_run_named(sdx_session *session, const char *const *input_names,
                      const sdx_tensor *inputs, size_t input_count,
                      const char *const *output_names, size_t output_count,
                      const sdx_run_options *options, sdx_error **error);

/** A step of a run: a call of a kernel, or a copy. */
typedef struct {
  size_t run;         /* counts the runs of the profile, from 0 */
  const char *kernel; /* its name, and what it computes in a word or two */
  const char *form;
  int64_t begin, end; /* nanoseconds of a steady clock */
  double flops, bytes;
} sdx_profile_step;
typedef void (*sdx_profile_function)(void *user, const sdx_profile_step *step);
/** Tells `function` the steps that a session with sdx_options_set_profile has
    recorded, those of each run in order, and begins anew. Gives the number of
    runs. */
SDX_API size_t sdx_session_take_profile(sdx_session *session,
                                        sdx_profile_function function,
                                        void *user);

/* What can end a run before it is done. */

SDX_API sdx_run_options *sdx_run_options_create(void);
SDX_API void sdx_run_options_free(sdx_run_options *options);
/** While it is not 0, runs with these options end, and none begins. Any thread
    and any signal handler may call it. */
SDX_API void sdx_run_options_set_terminate(sdx_run_options *options,
                                           int terminate);
/** Seconds that a run may take; 0: as long as it likes. */
SDX_API void sdx_run_options_set_timeout(sdx_run_options *options,
                                         double seconds);
/** Trips that any one Loop may take; 0: any number. */
SDX_API void sdx_run_options_set_max_trip_count(sdx_run_options *options,
                                                int64_t trips);

SDX_API size_t sdx_results_count(const sdx_results *results);
/** Valid until the results are freed. A result that is no tensor has the type
    0. */
SDX_API sdx_tensor sdx_results_get(const sdx_results *results, size_t index);
/** The same for results of any type. */
SDX_API sdx_value sdx_results_get_value(const sdx_results *results,
                                        size_t index);
/** The number of the CUDA device that a result lies on, or SDX_HOST. */
SDX_API int sdx_results_get_device(const sdx_results *results, size_t index);
SDX_API void sdx_results_free(sdx_results *results);

SDX_API const char *sdx_version(void);

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_C_SARDONYX_H */
