//===- Stream.h - Work in order on a GPU ------------------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_STREAM_H
#define SARDONYX_LIB_RUNTIME_GPU_STREAM_H

#include "lib/Runtime/GPU/Device.h"

namespace sardonyx {
namespace runtime {
namespace gpu {

/// A point in a stream's work that others can wait for.
class Event {
public:
  /// Only timed events can tell elapsed time; they cost more.
  static Result<std::unique_ptr<Event>> create(std::shared_ptr<Device> device,
                                               bool isTimed = false);
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  /// Waits until the work before the event's last record is done. An event that
  /// was never recorded is done.
  MaybeFailure synchronize() const;
  Result<bool> isDone() const;
  /// Milliseconds between two timed events that are done.
  static Result<float> elapsed(const Event &start, const Event &end);

  cuda::CUevent handle() const { return event; }

private:
  Event() = default;

  std::shared_ptr<Device> device;
  cuda::CUevent event = nullptr;
};

/// A queue of work that is done in order. What functions add to it is done
/// later; memory must live until then. Sizes are in bytes, and none is no work.
class Stream {
public:
  /// A stream of its own, which never waits for the process's default stream.
  /// Lower numbers go first.
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Device> device,
                                                int priority = 0);
  /// A stream of the caller's, which outlives this.
  static std::unique_ptr<Stream> borrow(std::shared_ptr<Device> device,
                                        cuda::CUstream stream);
  /// Does not wait for the work; the driver ends it before the stream goes.
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  MaybeFailure copyToDevice(cuda::CUdeviceptr to, const void *from,
                            int64_t bytes);
  MaybeFailure copyToHost(void *to, cuda::CUdeviceptr from, int64_t bytes);
  MaybeFailure copyOnDevice(cuda::CUdeviceptr to, cuda::CUdeviceptr from,
                            int64_t bytes);
  MaybeFailure fillBytes(cuda::CUdeviceptr to, uint8_t value, int64_t bytes);
  /// `to` is a multiple of 4, `count` a number of words.
  MaybeFailure fillWords(cuda::CUdeviceptr to, uint32_t value, int64_t count);

  MaybeFailure record(const Event &event);
  /// What comes next waits for the event's last record.
  MaybeFailure wait(const Event &event);
  /// Waits on this thread until all is done.
  MaybeFailure synchronize();

  cuda::CUstream handle() const { return stream; }
  const std::shared_ptr<Device> &device() const { return owner; }

private:
  Stream() = default;

  std::shared_ptr<Device> owner;
  cuda::CUstream stream = nullptr;
  bool isBorrowed = false;
};

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_STREAM_H
