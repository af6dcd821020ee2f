//===- Artifact.h - A model that was built ahead of time ------------ C -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an artifact of `sardonyx build` exports: one constant, from which all
// else is reached. The header that is made with it wraps this for its model.
// Nothing here is ever changed, only added to; the sizes that structs begin
// with tell what is there.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_C_ARTIFACT_H
#define SARDONYX_C_ARTIFACT_H

#include "sardonyx-c/Values.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sdx_artifact;

/** How a model is opened; NULL stands for zeros. */
typedef struct {
  size_t size;          /* of this struct */
  uint64_t threads;     /* that a run may use; 0: what it was built for */
  int64_t memory_limit; /* in bytes, for runs and results; 0: the machine's */
  /** Not NULL: what the constants in memory must have, by XXH3. A model looks
      when it is opened if they are few, else when it first runs. */
  const uint64_t *weights_hash;
  /** Of a model whose kernels run on a GPU: its number, as CUDA's driver
     counts, bytes of its memory that weights, runs and results may take (0:
     what there is), and a CUstream that all work is given to and that outlives
     the model (NULL: each run has its own). */
  int device;
  int64_t device_memory_limit;
  void *stream;
  /** Not 0: each kernel is launched by itself, and no graph made of runs that
      repeat. */
  int without_graphs;
} sdx_open_options;

/** What can end a run before it is done; NULL stands for zeros. */
typedef struct {
  size_t size; /* of this struct */
  /** The run ends when this is not 0; any thread may set it. */
  const unsigned char *terminate;
  double timeout;         /* in seconds; 0: as long as it likes */
  int64_t max_trip_count; /* of any one Loop; 0: any number */
  /** Asked every some milliseconds; not 0 ends the run. */
  int (*interrupted)(void *argument);
  void *argument;
  /** Not 0: gives the system the memory that is kept for the next run. */
  int release_memory;
} sdx_run_limits;

/** What an artifact can do. Functions that fail set `*error`, which may be
    NULL, and give NULL. Strings live as long as what they were asked of. */
typedef struct {
  size_t size; /* of this struct */

  /** Makes a model ready to run; any number of times. */
  sdx_session *(*open)(const struct sdx_artifact *artifact,
                       const sdx_open_options *options, sdx_error **error);
  void (*close)(sdx_session *model);

  size_t (*input_count)(const sdx_session *model);
  size_t (*output_count)(const sdx_session *model);
  const char *(*input_name)(const sdx_session *model, size_t index);
  const char *(*output_name)(const sdx_session *model, size_t index);
  /** What the model file says of itself under a name: "producer_name",
      "graph_name", "domain", "description", "model_version", or one of its own;
      NULL: nothing. */
  const char *(*metadata)(const sdx_session *model, const char *name);
  /** Inputs, outputs and metadata in the library's own form. */
  const void *(*description)(const sdx_session *model, size_t *bytes);

  /** Any number of threads may run a model at a time. `memory` is NULL or has
      an entry for each output, whose `data` may be NULL. */
  sdx_results *(*run)(sdx_session *model, const sdx_value *inputs,
                      size_t input_count, const sdx_tensor *memory,
                      const sdx_run_limits *limits, sdx_error **error);
  size_t (*result_count)(const sdx_results *results);
  sdx_value (*result)(const sdx_results *results, size_t index);
  void (*free_results)(sdx_results *results);

  /** Bytes of the memory limit that are held. */
  int64_t (*bytes_held)(const sdx_session *model);
  void (*release_memory)(sdx_session *model);

  sdx_error_kind (*error_kind)(const sdx_error *error);
  const char *(*error_message)(const sdx_error *error);
  void (*free_error)(sdx_error *error);

  /** run() with tensors on the model's CUDA device. `input_devices` is NULL or
      tells for each input the number of the device that its data lies on, or
      -1 for the host, what is no tensor being the host's; `memory_devices` the
      same for each output, `memory` being NULL or without data where the model
      is to give the memory there. What the process's default stream has to do
      comes before the run. */
  sdx_results *(*run_on_device)(sdx_session *model, const sdx_value *inputs,
                                const int *input_devices, size_t input_count,
                                const sdx_tensor *memory,
                                const int *memory_devices,
                                const sdx_run_limits *limits,
                                sdx_error **error);
  /** The number of the CUDA device that a result lies on, and that a model runs
      on; -1: none. */
  int (*result_device)(const sdx_results *results, size_t index);
  int (*device)(const sdx_session *model);
} sdx_functions;

/** The code of a model for one kind of processor. */
typedef struct {
  const char *processor; /* "x86-64-v3" */
  const char *features;  /* "avx2,fma": what a processor must have */
  void (*main)(void **arguments);
  /** As lib/Model/Artifact.cpp packs it. */
  const void *description;
  uint64_t description_bytes;
} sdx_artifact_code;

/** The code of a model whose kernels run on a kind of GPU. */
typedef struct {
  sdx_artifact_code code;
  void (*init)(void **arguments); /* NULL: there is nothing to prepare */
  const char *images;             /* "sm_90a cubin, sm_90a ptx" */
} sdx_device_code;

/** The library's own: what uses CUDA's driver. */
struct sdx_device_runtime;

#define SDX_ARTIFACT_MAGIC "sardonyx model 1"

typedef struct sdx_artifact {
  char magic[16];
  const sdx_functions *functions;
  const char *name;
  uint64_t threads; /* 0: one for each core */
  /** Constants: in memory, or in a file beside the artifact. */
  const void *weights;
  const char *weights_file;
  uint64_t weights_bytes;
  uint64_t weights_hash; /* of the file, by XXH3 */
  /** The one to take is the first that the processor can run. */
  const sdx_artifact_code *codes;
  uint64_t code_count;
  /** Code for GPUs, which is taken in the place of the above where there is
      any: the best that the device and the processor can run. */
  const struct sdx_device_runtime *devices;
  const sdx_device_code *device_codes;
  uint64_t device_code_count;
} sdx_artifact;

#ifdef __cplusplus
}
#endif

#endif /* SARDONYX_C_ARTIFACT_H */
