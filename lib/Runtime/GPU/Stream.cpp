//===- Stream.cpp - Work in order on a GPU --------------------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/GPU/Stream.h"

using namespace sardonyx;
using namespace sardonyx::cuda;
using namespace sardonyx::runtime::gpu;

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Event>> Event::create(std::shared_ptr<Device> device,
                                             bool isTimed) {
  std::unique_ptr<Event> event(new Event);
  event->device = device;
  if (MaybeFailure failure =
          device->call("cannot create an event", [&](const Functions &f) {
            return f.cuEventCreate(&event->event,
                                   isTimed ? 0 : CU_EVENT_DISABLE_TIMING);
          })) {
    event->event = nullptr;
    return *failure;
  }
  return event;
}

Event::~Event() {
  if (event)
    device->release(
        [&](const Functions &f) { return f.cuEventDestroy(event); });
}

MaybeFailure Event::synchronize() const {
  return device->call("cannot wait for an event", [&](const Functions &f) {
    return f.cuEventSynchronize(event);
  });
}

Result<bool> Event::isDone() const {
  CUresult code = device->attempt(
      [&](const Functions &f) { return f.cuEventQuery(event); });
  if (code == CUDA_ERROR_NOT_READY)
    return false;
  if (MaybeFailure failure = device->check("cannot ask for an event", code))
    return *failure;
  return true;
}

Result<float> Event::elapsed(const Event &start, const Event &end) {
  float milliseconds = 0;
  if (MaybeFailure failure = start.device->call(
          "cannot tell elapsed time", [&](const Functions &f) {
            return f.cuEventElapsedTime(&milliseconds, start.event, end.event);
          }))
    return *failure;
  return milliseconds;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<Device> device,
                                               int priority) {
  std::unique_ptr<Stream> stream(new Stream);
  stream->owner = device;
  if (MaybeFailure failure =
          device->call("cannot create a stream", [&](const Functions &f) {
            return f.cuStreamCreateWithPriority(
                &stream->stream, CU_STREAM_NON_BLOCKING, priority);
          })) {
    stream->stream = nullptr;
    return *failure;
  }
  return stream;
}

std::unique_ptr<Stream> Stream::borrow(std::shared_ptr<Device> device,
                                       CUstream stream) {
  std::unique_ptr<Stream> borrowed(new Stream);
  borrowed->owner = std::move(device);
  borrowed->stream = stream;
  borrowed->isBorrowed = true;
  return borrowed;
}

Stream::~Stream() {
  if (stream && !isBorrowed)
    owner->release(
        [&](const Functions &f) { return f.cuStreamDestroy(stream); });
}

static MaybeFailure refuseSize(int64_t size) {
  return Failure{FailureKind::InvalidArgument,
                 "cannot copy or fill " + std::to_string(size) +
                     " elements of device memory"};
}

MaybeFailure Stream::copyToDevice(CUdeviceptr to, const void *from,
                                  int64_t bytes) {
  if (bytes <= 0)
    return bytes ? refuseSize(bytes) : std::nullopt;
  return owner->call("cannot copy to the device", [&](const Functions &f) {
    return f.cuMemcpyHtoDAsync(to, from, static_cast<size_t>(bytes), stream);
  });
}

MaybeFailure Stream::copyToHost(void *to, CUdeviceptr from, int64_t bytes) {
  if (bytes <= 0)
    return bytes ? refuseSize(bytes) : std::nullopt;
  return owner->call("cannot copy from the device", [&](const Functions &f) {
    return f.cuMemcpyDtoHAsync(to, from, static_cast<size_t>(bytes), stream);
  });
}

MaybeFailure Stream::copyOnDevice(CUdeviceptr to, CUdeviceptr from,
                                  int64_t bytes) {
  if (bytes <= 0)
    return bytes ? refuseSize(bytes) : std::nullopt;
  return owner->call("cannot copy on the device", [&](const Functions &f) {
    return f.cuMemcpyDtoDAsync(to, from, static_cast<size_t>(bytes), stream);
  });
}

MaybeFailure Stream::fillBytes(CUdeviceptr to, uint8_t value, int64_t bytes) {
  if (bytes <= 0)
    return bytes ? refuseSize(bytes) : std::nullopt;
  return owner->call("cannot fill device memory", [&](const Functions &f) {
    return f.cuMemsetD8Async(to, value, static_cast<size_t>(bytes), stream);
  });
}

MaybeFailure Stream::fillWords(CUdeviceptr to, uint32_t value, int64_t count) {
  if (count <= 0)
    return count ? refuseSize(count) : std::nullopt;
  return owner->call("cannot fill device memory", [&](const Functions &f) {
    return f.cuMemsetD32Async(to, value, static_cast<size_t>(count), stream);
  });
}

MaybeFailure Stream::record(const Event &event) {
  return owner->call("cannot record an event", [&](const Functions &f) {
    return f.cuEventRecord(event.handle(), stream);
  });
}

MaybeFailure Stream::wait(const Event &event) {
  return owner->call("cannot wait for an event", [&](const Functions &f) {
    return f.cuStreamWaitEvent(stream, event.handle(), /*flags=*/0);
  });
}

MaybeFailure Stream::synchronize() {
  MaybeFailure failure =
      owner->call("cannot wait for a stream", [&](const Functions &f) {
        return f.cuStreamSynchronize(stream);
      });
  if (!failure)
    owner->noteEnd(stream);
  return failure;
}
