//===- RuntimeABI.h - What compiled models call --------------------- C -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that compiled code calls, and the two entry points that a
// compiled model has. Plain C: an ahead-of-time compiled model needs nothing
// but the runtime library behind this header.
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_C_RUNTIMEABI_H
#define SARDONYX_C_RUNTIMEABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One chunk of a parallel loop: iterations [begin, end).
typedef void (*sdx_rt_loop_body)(int64_t begin, int64_t end, void *env);

/// Calls `body` on disjoint chunks that cover [0, n), on up to as many threads
/// as the current run may use, and returns when all are done. Threads begin
/// with as many iterations each; chunks hold at least half of `grain` (but the
/// last). Inside a body it runs inline.
void sdx_rt_parallel_for(int64_t n, int64_t grain, sdx_rt_loop_body body,
                         void *env);

/// How many threads the current run may use, at least one.
int64_t sdx_rt_threads(void);

/// `bytes` of memory aligned to 64, from the current run's pool. Fails the run
/// when there is none. What is not freed is reclaimed when the run ends.
void *sdx_rt_alloc(int64_t bytes);
/// The same, with a name for the message, "node 'conv1'".
void *sdx_rt_alloc_for(int64_t bytes, const char *node);
/// The same for a kernel, or for a thread's part of one, that frees it before
/// it is over: the calling thread's scratch memory, the same for one kernel
/// after the other.
void *sdx_rt_scratch(int64_t bytes);
void sdx_rt_free(void *memory);

/// The run's planned arena of at least `bytes`, aligned to 64. In steady state
/// it is the same memory in each run and nothing is allocated.
void *sdx_rt_arena(int64_t bytes);

/// Memory for result `index` of the given shape: the caller's buffer, which is
/// checked to fit, or new.
void *sdx_rt_output(int64_t index, int64_t rank, const int64_t *sizes);

/// What a failed run means to the caller. The last: a list from which a tensor
/// has its rank has another length than the code was made for.
enum {
  SDX_RT_FAILED = 0,
  SDX_RT_INVALID_ARGUMENT = 1,
  SDX_RT_UNSUPPORTED = 2,
  SDX_RT_OTHER_RANK = 3
};

/// Fails the run with `message`, in which {0} to {3} stand for the numbers; the
/// failure is of one of the kinds above. Does not return within a run: it
/// leaves the host program, or a parallel loop's chunk and with it the loop.
void sdx_rt_check_failed(const char *message, int64_t kind, int64_t value0,
                         int64_t value1, int64_t value2, int64_t value3);

/// The same where `ok` is 0; nothing where it is not.
void sdx_rt_check(int64_t ok, const char *message, int64_t kind, int64_t value0,
                  int64_t value1, int64_t value2, int64_t value3);

/// Called at the beginning of each trip of a loop that may take long: leaves
/// the run if something wants it ended. `trip` counts from 1 where the number
/// of the loop's trips may be limited and is 0 elsewhere; `loop`, which may be
/// null, names the loop in a message.
void sdx_rt_poll(int64_t trip, const char *loop);

/// Copies a tensor of elements of `elementBytes` and of any strides from
/// `source` to `target`, the addresses of its first element. `layout` holds its
/// `rank` sizes, then as many strides of the source, then those of the target,
/// all counted in elements.
void sdx_rt_copy(int64_t elementBytes, int64_t rank, const void *source,
                 void *target, const int64_t *layout);

/// The functions of the runtime that compute on strings and lists take words:
/// first the address of a text that names the node, "node 'x' (StringConcat)",
/// or of an empty one; then for each operand that is a tensor the address of
/// its elements, its rank and its sizes, for one that is a number the number;
/// then the results like tensors. What each computes stands beside it in
/// lib/Runtime.
typedef void (*sdx_rt_function)(const int64_t *words);

/// Runs with kernels on a device. All that these functions start happens on the
/// device in their order, later than they return unless they say otherwise.
/// Device memory is aligned to 256 bytes. `node`, which may be null, names what
/// is computed, "node 'x' (Conv)". A run without a device fails in each.

/// `bytes` of device memory, until the run ends or frees it. Fails the run when
/// there is none.
void *sdx_rt_device_alloc(int64_t bytes, const char *node);
void sdx_rt_device_free(void *memory);

/// The run's planned arena on the device, of at least `bytes`. In steady state
/// it is the same memory in each run and nothing is allocated.
void *sdx_rt_device_arena(int64_t bytes);

/// Device memory for result `index` of the given shape, as sdx_rt_output gives
/// memory of the host. The caller finds the result where he wants it.
void *sdx_rt_device_output(int64_t index, int64_t rank, const int64_t *sizes);

/// The run's failure record on the device: 6 words of 64 bits, which are 0 when
/// the run begins. A check of a kernel that fails sets the first from 0 to 1;
/// who has done so writes the number of the message and four values.
void *sdx_rt_device_failure(void);

/// What a copy reads and writes.
enum {
  /// Host to device. The source may change when the call returns.
  SDX_RT_TO_DEVICE = 1,
  /// Device to host. Waits, until the bytes are there, and fails the run where
  /// a check has failed.
  SDX_RT_TO_HOST = 2,
  SDX_RT_ON_DEVICE = 3,
  /// Device to host; the bytes are there after the next copy that waits.
  SDX_RT_TO_HOST_LATER = 4
};
void sdx_rt_device_copy(int64_t kind, void *target, const void *source,
                        int64_t bytes);

/// A tensor map, by which a kernel copies boxes of a tensor in device memory
/// (TMA), as words. Dimensions are counted from the innermost one on, at
/// most 5.
enum {
  /// The address of the first element.
  SDX_RT_MAP_ADDRESS = 0,
  /// The type of elements, the number of dimensions from bit 8 on, from bit 16
  /// on the bytes of which each row of a box is swizzled: 0, 32, 64 or 128; and
  /// SDX_RT_MAP_IMAGE.
  SDX_RT_MAP_FORM = 1,
  /// Elements of each dimension.
  SDX_RT_MAP_SIZES = 2,
  /// Bytes from one element to the next of each dimension but the first.
  SDX_RT_MAP_STRIDES = 7,
  /// Elements of a box; of an image the channels and the pixels.
  SDX_RT_MAP_BOX = 11,
  /// Of an image, whose pixels follow each other in a bounding box (im2col):
  /// the
  /// box's corners, from the image's beginning and end on, 16 bits for each
  /// dimension but the first and the last, and the steps between pixels, 8 bits
  /// for each dimension.
  SDX_RT_MAP_LOWER = 13,
  SDX_RT_MAP_UPPER = 14,
  SDX_RT_MAP_STEPS = 15,
  SDX_RT_MAP_WORDS = 16
};
/// Of SDX_RT_MAP_FORM.
enum { SDX_RT_MAP_IMAGE = 1 << 24 };
/// Types of a tensor map's elements. f32 is rounded to tf32 where it says so.
enum {
  SDX_RT_MAP_U8 = 0,
  SDX_RT_MAP_F16 = 1,
  SDX_RT_MAP_BF16 = 2,
  SDX_RT_MAP_F32 = 3,
  SDX_RT_MAP_TF32 = 4,
  SDX_RT_MAP_I32 = 5
};

/// Starts the kernel of this position in the model's image. `size` holds the
/// blocks in x, y and z, the threads of a block in x, y and z, the bytes of
/// shared memory beside what the kernel declares, and how many of its
/// parameters are tensor maps; no blocks are no work. Of the `count` words of
/// `args` the first describe these maps, SDX_RT_MAP_WORDS each. Each of the
/// others holds a parameter in its low bytes; its other bytes are zero.
void sdx_rt_launch(int64_t kernel, const int64_t *size, int64_t count,
                   const int64_t *args);

/// Nanoseconds of a clock that never goes back.
int64_t sdx_rt_clock(void);

/// Step `site` of the host program, which began at `begin` of that clock, is
/// done; on a device it is waited for. Only code that is compiled for profiling
/// calls it.
void sdx_rt_record(int64_t site, int64_t begin, int64_t flops, int64_t bytes);

/// Types of numbers that are observed.
enum { SDX_RT_F32 = 0, SDX_RT_F16 = 1, SDX_RT_BF16 = 2, SDX_RT_F64 = 3 };

/// Adds numbers to what the calling thread sees of the observed tensor `site`:
/// the first `count` of each of `rows` rows that begin `stride` numbers apart.
/// `what`: the kinds of observations (sardonyx/Runtime/Observation.h) and,
/// from bit 8 on, the numbers' type. Only code that is compiled to observe
/// calls it.
void sdx_rt_observe(int64_t site, int64_t what, const void *data, int64_t rows,
                    int64_t stride, int64_t count);

/// Entry points of a compiled model, `sdx_init` and `sdx_main`: args[i] points
/// to {void *data; int64_t sizes[rank]} of the function's i-th argument.
typedef void (*sdx_entry_point)(void **args);

#ifdef __cplusplus
}
#endif

#endif // SARDONYX_C_RUNTIMEABI_H
