//===- Staging.h - Pinned memory on the way to a GPU ------------*- C++ -*-===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SARDONYX_LIB_RUNTIME_GPU_STAGING_H
#define SARDONYX_LIB_RUNTIME_GPU_STAGING_H

#include "lib/Runtime/GPU/Stream.h"
#include <functional>
#include <memory>

namespace sardonyx {
namespace runtime {
namespace gpu {

/// Copies from the host to the device by way of two pieces of pinned memory,
/// one of which is filled while the device reads the other. Sources may change
/// when a copy returns. For one stream and one thread at a time.
class Staging {
public:
  /// Waits until an event is done; false: something has ended the wait.
  using Wait = std::function<Result<bool>(const Event &event)>;

  /// Pieces have up to `mostBytes`.
  Staging(std::shared_ptr<Device> device, int64_t mostBytes);
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  /// Adds copies of all bytes to the stream's work, or of less where a wait was
  /// ended.
  MaybeFailure copy(Stream &stream, cuda::CUdeviceptr to, const void *from,
                    int64_t bytes, const Wait &wait);

  /// A copy of the bytes in pinned memory, which stays until forgetCopies(), or
  /// null where there is no room for it: there is next time.
  const void *hold(const void *from, int64_t bytes);

  /// The stream has done all of its work.
  MaybeFailure forgetCopies();

private:
  struct Piece {
    std::unique_ptr<PinnedMemory> memory;
    int64_t used = 0;
    /// Recorded behind the copies from it.
    std::unique_ptr<Event> event;
    bool isRead = false;
  };
  MaybeFailure allocate(int64_t bytes);
  MaybeFailure enlarge(Stream &stream, int64_t bytes, const Wait &wait,
                       bool &goesOn);
  MaybeFailure turn(Stream &stream, const Wait &wait, bool &goesOn);
  MaybeFailure waitFor(Piece &piece, const Wait &wait, bool &goesOn);

  std::shared_ptr<Device> device;
  const int64_t mostBytes;
  Piece pieces[2];
  unsigned current = 0;
  /// What hold() was asked for since the last forgetCopies().
  int64_t wanted = 0;
};

/// Waits for an event on this thread whatever happens.
Result<bool> waitAlways(const Event &event);

} // namespace gpu
} // namespace runtime
} // namespace sardonyx

#endif // SARDONYX_LIB_RUNTIME_GPU_STAGING_H
