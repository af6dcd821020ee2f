//===- Staging.cpp - Pinned memory on the way to a GPU --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Staging.h"
#include <algorithm>
#include <cstring>

using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

/// What small inputs need.
static constexpr int64_t kLeastBytes = int64_t(64) << 10;

Result<bool> sardonyx::runtime::gpu::waitAlways(const Event &event) {
  if (MaybeFailure failure = event.synchronize())
    return *failure;
  return true;
}

Staging::Staging(std::shared_ptr<Device> device, int64_t mostBytes)
    : device(std::move(device)), mostBytes(mostBytes) {}

static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

MaybeFailure Staging::forgetCopies() {
  for (Piece &piece : pieces) {
    piece.used = 0;
    piece.isRead = false;
  }
  // The same copies have the same places each time.
  current = 0;
  const int64_t bytes = std::min(wanted, mostBytes);
  wanted = 0;
  if (bytes > 0 && (!pieces[0].memory || pieces[0].memory->size() < bytes))
    return allocate(bytes);
  return std::nullopt;
}

const void *Staging::hold(const void *from, int64_t bytes) {
  if (bytes > mostBytes)
    return nullptr;
  wanted += rounded(bytes);
  Piece &piece = pieces[current];
  if (!piece.memory)
    (void)allocate(bytes); // copy() tells of what is wrong
  if (!piece.memory || piece.used + bytes > piece.memory->size())
    return nullptr;
  char *place = static_cast<char *>(piece.memory->data()) + piece.used;
  memcpy(place, from, static_cast<size_t>(bytes));
  piece.used += rounded(bytes);
  return place;
}

MaybeFailure Staging::waitFor(Piece &piece, const Wait &wait, bool &goesOn) {
  if (!piece.isRead)
    return std::nullopt;
  Result<bool> done = wait(*piece.event);
  if (!done)
    return done.failure();
  goesOn = *done;
  piece.isRead = !goesOn;
  return std::nullopt;
}

/// Goes on to the other piece, once nothing reads it any more.
MaybeFailure Staging::turn(Stream &stream, const Wait &wait, bool &goesOn) {
  Piece &full = pieces[current], &next = pieces[1 - current];
  if (!full.event) {
    Result<std::unique_ptr<Event>> event = Event::create(device);
    if (!event)
      return event.failure();
    full.event = std::move(*event);
  }
  if (MaybeFailure failure = stream.record(*full.event))
    return failure;
  full.isRead = true;
  if (MaybeFailure failure = waitFor(next, wait, goesOn); failure || !goesOn)
    return failure;
  next.used = 0;
  current = 1 - current;
  return std::nullopt;
}

/// Makes pieces of at least `bytes`, once nothing reads those that are there.
MaybeFailure Staging::enlarge(Stream &stream, int64_t bytes, const Wait &wait,
                              bool &goesOn) {
  if (pieces[0].memory) {
    for (int i = 0; i < 2; ++i)
      if (MaybeFailure failure = turn(stream, wait, goesOn); failure || !goesOn)
        return failure;
    if (MaybeFailure failure = waitFor(pieces[1 - current], wait, goesOn);
        failure || !goesOn)
      return failure;
  }
  return allocate(bytes);
}

/// Makes pieces of at least `bytes` of those that nothing reads.
MaybeFailure Staging::allocate(int64_t bytes) {
  int64_t size = kLeastBytes;
  while (size < bytes)
    size *= 2;
  size = std::min(size, mostBytes);
  for (Piece &piece : pieces) {
    piece.memory = nullptr;
    Result<std::unique_ptr<PinnedMemory>> memory =
        PinnedMemory::allocate(device, size);
    if (!memory)
      return memory.failure();
    piece.memory = std::move(*memory);
    piece.used = 0;
  }
  return std::nullopt;
}

MaybeFailure Staging::copy(Stream &stream, CUdeviceptr to, const void *from,
                           int64_t bytes, const Wait &wait) {
  bool goesOn = true;
  const int64_t wanted = std::min(bytes, mostBytes);
  if (bytes > 0 && (!pieces[0].memory || !pieces[1].memory ||
                    pieces[0].memory->size() < wanted))
    if (MaybeFailure failure = enlarge(stream, wanted, wait, goesOn);
        failure || !goesOn)
      return failure;
  auto *source = static_cast<const char *>(from);
  for (int64_t done = 0; done < bytes;) {
    const int64_t size = pieces[current].memory->size();
    const int64_t part = std::min(bytes - done, size);
    if (pieces[current].used + part > size)
      if (MaybeFailure failure = turn(stream, wait, goesOn); failure || !goesOn)
        return failure;
    Piece &piece = pieces[current];
    char *place = static_cast<char *>(piece.memory->data()) + piece.used;
    memcpy(place, source + done, static_cast<size_t>(part));
    if (MaybeFailure failure = stream.copyToDevice(
            to + static_cast<CUdeviceptr>(done), place, part))
      return failure;
    piece.used += rounded(part);
    done += part;
  }
  return std::nullopt;
}
